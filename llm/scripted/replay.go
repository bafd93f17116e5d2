package scripted

import (
	"crypto/sha256"
	"sync"
	"time"
)

// What is stored of generations that a key can bring back.
const (
	maxStored        = 10_000
	maxStoredBytes   = 256 << 20
	defaultRetention = 24 * time.Hour
)

// replayKey is a key within its credential. The credential is kept as a hash.
type replayKey struct {
	credential [sha256.Size]byte
	key        string
}

type stored struct {
	at      replayKey
	path    string
	body    string // SHA-256
	created time.Time
	gen     *generation
}

// replays remembers generations by key, the oldest of them forgotten first.
type replays struct {
	mu    sync.Mutex
	byKey map[replayKey]*stored
	order []*stored
	bytes int
}

// verdict is what a key means for a request.
type verdict int

const (
	verdictNew verdict = iota
	verdictReplay
	verdictConflict
)

// find joins the generation of an earlier request with the key, or makes a new one with create and remembers it.
func (r *replays) find(want stored, retention time.Duration, create func() *generation) (*generation, verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.byKey[want.at]; old != nil && want.created.Sub(old.created) < retention {
		same := old.path == want.path && old.body == want.body
		switch {
		case same && old.gen.join():
			return old.gen, verdictReplay
		case !same && !old.gen.isFailed():
			return nil, verdictConflict
		}
	}
	want.gen = create()
	r.remember(&want)
	return want.gen, verdictNew
}

func (r *replays) remember(s *stored) {
	if r.byKey == nil {
		r.byKey = make(map[replayKey]*stored)
	}
	r.byKey[s.at] = s
	r.order = append(r.order, s)
	r.bytes += s.gen.plan.bytes()
	for len(r.order) > maxStored || r.bytes > maxStoredBytes && len(r.order) > 1 {
		oldest := r.order[0]
		r.order[0] = nil
		r.order = r.order[1:]
		r.bytes -= oldest.gen.plan.bytes()
		if r.byKey[oldest.at] == oldest {
			delete(r.byKey, oldest.at)
		}
	}
}

func (e Endpoint) retention() time.Duration {
	if e.RetentionS == 0 {
		return defaultRetention
	}
	return time.Duration(e.RetentionS) * time.Second
}
