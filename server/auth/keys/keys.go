// Package keys knows callers by API keys. What it has read of a key it takes as true for a lifetime, so that a key which is
// revoked is refused within that, and an active caller costs the database one read in that time.
package keys

import (
	"context"
	"errors"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

const (
	// maxKnown bounds the keys that are remembered, and maxUnknown apart from them the ids that are none, so that a flood of
	// made-up keys does not push out the real ones.
	maxKnown   = 16384
	maxUnknown = 4096
	// missesPerSecond bounds the reads that find no key, and missesAtOnce how many may come together. The checksum of a key
	// is no secret, so anybody can make up ids that have to be looked for.
	missesPerSecond = 50
	missesAtOnce    = 200
	// readsAtOnce bounds the reads under way for ids that are not known here. More wait for one of them, and ask then whether
	// too many were made up meanwhile.
	readsAtOnce = 64
	// readTime bounds one read, however long its callers would wait.
	readTime = 5 * time.Second
)

// Finder is the part of access.Store that finding out takes.
type Finder interface {
	FindKey(ctx context.Context, id string) (access.Key, time.Time, error)
}

// Config says where keys are, and for how long one that was read is taken as it was. A lifetime of 0 asks each time.
type Config struct {
	Store    Finder
	Lifetime time.Duration
}

// Keys is an auth.Authenticator. Make it by New; it is safe for concurrent use.
type Keys struct {
	cfg     Config
	known   *lru.Cache[string, entry]
	unknown *lru.Cache[string, time.Time] // when it was looked for
	misses  *rate.Limiter
	reads   singleflight.Group
	places  chan struct{} // one for each read under way
}

var _ auth.Authenticator = (*Keys)(nil)

// entry is a key as it was read at a time of this process's clock. It ends as many moments after that as it had left by the
// database's.
type entry struct {
	key  access.Key
	read time.Time
	left time.Duration // until it expires; 0 is never
	gone string        // why it was no good already
}

// New makes one with nothing in its memory.
func New(cfg Config) (*Keys, error) {
	if cfg.Store == nil || cfg.Lifetime < 0 {
		return nil, errors.New("keys need a store, and a lifetime that is not negative")
	}
	known, err := lru.New[string, entry](maxKnown)
	if err != nil {
		return nil, err
	}
	unknown, err := lru.New[string, time.Time](maxUnknown)
	if err != nil {
		return nil, err
	}
	return &Keys{cfg: cfg, known: known, unknown: unknown, misses: rate.NewLimiter(missesPerSecond, missesAtOnce),
		places: make(chan struct{}, readsAtOnce)}, nil
}

// Authenticate implements auth.Authenticator. A key of another secret and one that does not exist are refused in the same
// words; only its owner hears that a key was revoked or has expired.
func (k *Keys) Authenticate(ctx context.Context, token string) (auth.Identity, error) {
	text, err := access.ParseText(token)
	if err != nil {
		return auth.Identity{}, auth.Refuse("this is no API key: send the whole key, as it was printed when it was created")
	}
	e, err := k.find(ctx, text.ID())
	switch {
	case errors.Is(err, access.ErrNotFound):
		return auth.Identity{}, auth.Refuse("there is no such API key")
	case err != nil:
		return auth.Identity{}, err
	case !e.key.Matches(text):
		return auth.Identity{}, auth.Refuse("there is no such API key")
	}
	if gone := e.ended(time.Now()); gone != "" {
		return auth.Identity{}, auth.Refuse("this API key is " + gone + "; ask for a new one")
	}
	return auth.Identity{Caller: turns.Caller{Tenant: turns.Tenant(e.key.Tenant), Subject: e.key.Subject}, Scopes: e.key.Scopes}, nil
}

// ended says why a key is no good.
func (e entry) ended(now time.Time) string {
	if e.gone == "" && e.left > 0 && now.Sub(e.read) >= e.left {
		return "expired"
	}
	return e.gone
}

// find gives a key from memory, or reads it; those who want the same at once share one read. access.ErrNotFound says that there
// is none, and a turns.Error that nobody could find out now.
func (k *Keys) find(ctx context.Context, id string) (entry, error) {
	old, seen := k.known.Get(id)
	if seen && k.fresh(old.read) {
		return old, nil
	}
	if at, found := k.unknown.Get(id); found && k.fresh(at) {
		return entry{}, access.ErrNotFound
	}
	if err := k.flooded(); !seen && err != nil {
		return entry{}, err
	}
	// The read is for all who wait for it, so that it doesn't end with the caller who came first.
	read, err, _ := k.reads.Do(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
		defer cancel()
		if seen {
			return k.read(ctx, id)
		}
		return k.readNew(ctx, id)
	})
	e, _ := read.(entry)
	return e, err
}

// flooded refuses to look for an id that is not known here, once too many were made up.
func (k *Keys) flooded() error {
	if k.misses.Tokens() >= 1 {
		return nil
	}
	return &turns.Error{Code: turns.CodeOverloaded, RetryAfter: time.Second,
		Problem: "too many API keys were sent that do not exist; one that was not used here lately has to wait"}
}

// readNew reads a key that is not known here, when there is a place for that.
func (k *Keys) readNew(ctx context.Context, id string) (entry, error) {
	select {
	case k.places <- struct{}{}:
		defer func() { <-k.places }()
	case <-ctx.Done():
		return entry{}, turns.Unavailable(ctx.Err())
	}
	if err := k.flooded(); err != nil {
		return entry{}, err
	}
	return k.read(ctx, id)
}

func (k *Keys) fresh(at time.Time) bool { return time.Since(at) < k.cfg.Lifetime }

// read asks the store, and remembers what it says. Its time is taken before, so that nothing is believed for longer than its
// lifetime after it was so.
func (k *Keys) read(ctx context.Context, id string) (entry, error) {
	began := time.Now()
	key, now, err := k.cfg.Store.FindKey(ctx, id)
	switch {
	case errors.Is(err, access.ErrNotFound):
		k.misses.Allow()
		k.known.Remove(id)
		k.unknown.Add(id, began)
		return entry{}, access.ErrNotFound
	case err != nil && turns.CodeOf(err) == turns.CodeStoreUnavailable:
		return entry{}, err
	case err != nil:
		return entry{}, turns.Unavailable(err)
	}
	e := entry{key: key, read: began, gone: key.Ended(now)}
	if !key.ExpireTime.IsZero() {
		e.left = key.ExpireTime.Sub(now)
	}
	k.known.Add(id, e)
	k.unknown.Remove(id)
	return e, nil
}
