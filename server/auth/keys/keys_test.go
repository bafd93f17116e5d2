package keys_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/server/auth/keys"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lifetime = 10 * time.Second

// shelf is where keys are kept. Its clock is an hour ahead of this process's.
type shelf struct {
	mu    sync.Mutex
	keys  map[string]access.Key
	down  error
	reads int
	gate  chan struct{} // reads wait for it, if not nil
}

const ahead = time.Hour

func (s *shelf) FindKey(ctx context.Context, id string) (access.Key, time.Time, error) {
	s.mu.Lock()
	s.reads++
	k, ok := s.keys[id]
	down, gate := s.down, s.gate
	s.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return access.Key{}, time.Time{}, ctx.Err()
		}
	}
	switch {
	case down != nil:
		return access.Key{}, time.Time{}, down
	case !ok:
		return access.Key{}, time.Time{}, access.ErrNotFound
	}
	return k, time.Now().Add(ahead), nil
}

func (s *shelf) put(text access.Text, change ...func(*access.Key)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: "acme", Subject: "ann", Scopes: []access.Scope{access.ScopeRead}}
	for _, c := range change {
		c(&k)
	}
	if s.keys == nil {
		s.keys = map[string]access.Key{}
	}
	s.keys[k.ID] = k
}

func (s *shelf) revoke(text access.Text) {
	s.put(text, func(k *access.Key) { k.RevokeTime = time.Now() })
}

func (s *shelf) read() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// play runs a test with a store of one key, in time of its own.
func play(t *testing.T, lifetime time.Duration, test func(*testing.T, *shelf, *keys.Keys, access.Text)) {
	synctest.Test(t, func(t *testing.T) {
		s, text := &shelf{}, access.Mint()
		s.put(text)
		k, err := keys.New(keys.Config{Store: s, Lifetime: lifetime})
		require.NoError(t, err)
		test(t, s, k, text)
	})
}

func refused(t *testing.T, k *keys.Keys, token, why string) {
	t.Helper()
	_, err := k.Authenticate(t.Context(), token)
	require.Equal(t, turns.CodeUnauthenticated, turns.CodeOf(err))
	require.ErrorContains(t, err, why)
	require.NotContains(t, err.Error(), token)
}

func taken(t *testing.T, k *keys.Keys, text access.Text) {
	t.Helper()
	id, err := k.Authenticate(t.Context(), text.Reveal())
	require.NoError(t, err)
	require.Equal(t, auth.Identity{Caller: turns.Caller{Tenant: "acme", Subject: "ann"}, Scopes: []access.Scope{access.ScopeRead}}, id)
}

func TestAKeyIsReadOnceALifetime(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		for range 100 {
			taken(t, k, text)
		}
		require.Equal(t, 1, s.read())
		time.Sleep(lifetime)
		taken(t, k, text)
		require.Equal(t, 2, s.read())
	})
}

func TestARevokedKeyIsRefusedWithinTheLifetime(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		taken(t, k, text)
		s.revoke(text)
		time.Sleep(lifetime)
		refused(t, k, text.Reveal(), "revoked")
	})
}

func TestALifetimeOfZeroAsksEachTime(t *testing.T) {
	play(t, 0, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		taken(t, k, text)
		s.revoke(text)
		refused(t, k, text.Reveal(), "revoked")
		require.Equal(t, 2, s.read())
	})
}

func TestAKeyExpiresAtItsTimeByTheDatabasesClockEvenFromMemory(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		s.put(text, func(k *access.Key) { k.ExpireTime = time.Now().Add(ahead + lifetime/2) })
		taken(t, k, text)
		time.Sleep(lifetime/2 - time.Millisecond)
		taken(t, k, text)
		time.Sleep(time.Millisecond)
		refused(t, k, text.Reveal(), "expired")
		require.Equal(t, 1, s.read())
		old := access.Mint()
		s.put(old, func(k *access.Key) { k.ExpireTime = time.Now() })
		refused(t, k, old.Reveal(), "expired")
	})
}

func TestAnUnknownKeyAndOneOfAnotherSecretAreRefusedInTheSameWords(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		other := access.Mint()
		s.put(other, func(k *access.Key) { k.Hash = text.Hash(); k.RevokeTime = time.Now() })
		unknown := access.Mint()
		_, none := k.Authenticate(t.Context(), unknown.Reveal())
		_, wrong := k.Authenticate(t.Context(), other.Reveal())
		require.Equal(t, none, wrong, "that it is revoked is for its owner alone")
		refused(t, k, unknown.Reveal(), "no such API key")
	})
}

func TestAnUnknownIDIsLookedForOnceALifetimeAndFoundOnceItIsThere(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, _ access.Text) {
		text := access.Mint()
		for range 100 {
			refused(t, k, text.Reveal(), "no such API key")
		}
		require.Equal(t, 1, s.read())
		s.put(text)
		time.Sleep(lifetime)
		taken(t, k, text)
	})
}

func TestWhatIsNoKeyIsRefusedUnread(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		for _, token := range []string{"", "turnd_", "x", text.Reveal()[:40], text.Reveal() + "a", "eyJhbGciOiJub25lIn0.e30."} {
			_, err := k.Authenticate(t.Context(), token)
			require.Equal(t, turns.CodeUnauthenticated, turns.CodeOf(err))
		}
		require.Zero(t, s.read())
	})
}

func TestAFloodOfMadeUpKeysIsBoundedAndKnownKeysGoOn(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		taken(t, k, text)
		limited := 0
		for range 10_000 {
			_, err := k.Authenticate(t.Context(), access.Mint().Reveal())
			if turns.CodeOf(err) == turns.CodeOverloaded {
				limited++
			}
		}
		require.LessOrEqual(t, s.read(), 201)
		require.Equal(t, 10_001, limited+s.read())
		time.Sleep(lifetime)
		for range 10_000 {
			_, _ = k.Authenticate(t.Context(), access.Mint().Reveal())
		}
		taken(t, k, text)
		fresh := access.Mint()
		s.put(fresh)
		_, err := k.Authenticate(t.Context(), fresh.Reveal())
		require.Equal(t, turns.CodeOverloaded, turns.CodeOf(err), "one never seen has to wait")
		time.Sleep(time.Second)
		taken(t, k, fresh)
	})
}

func TestManyKeysThatExistAreNotTakenForAFlood(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, _ access.Text) {
		for range 5000 {
			text := access.Mint()
			s.put(text)
			taken(t, k, text)
		}
	})
}

func TestAFloodThatComesAtOnceIsBoundedAndKeysThatExistWaitForTheirTurn(t *testing.T) {
	for name, c := range map[string]struct {
		exist bool
		reads int
	}{"made up": {false, 264}, "that exist": {true, 2000}} {
		t.Run(name, func(t *testing.T) {
			play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, known access.Text) {
				taken(t, k, known)
				s.gate = make(chan struct{})
				var all sync.WaitGroup
				for range 2000 {
					text := access.Mint()
					if c.exist {
						s.put(text)
					}
					all.Go(func() {
						_, err := k.Authenticate(t.Context(), text.Reveal())
						require.Equal(t, c.exist, err == nil)
					})
				}
				synctest.Wait()
				require.LessOrEqual(t, s.read(), 65, "a slow database is asked for few of them at once")
				taken(t, k, known)
				close(s.gate)
				all.Wait()
				require.LessOrEqual(t, s.read(), 1+c.reads)
			})
		})
	}
}

func TestThoseWhoWantOneKeyAtOnceShareOneRead(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		s.gate = make(chan struct{})
		first, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_, err := k.Authenticate(first, text.Reveal())
			require.NoError(t, err)
		})
		synctest.Wait()
		for range 50 {
			all.Go(func() { taken(t, k, text) })
		}
		cancel()
		synctest.Wait()
		close(s.gate)
		all.Wait()
		require.Equal(t, 1, s.read())
	})
}

func TestWithTheDatabaseDownKnownKeysGoOnForTheirLifetimeAndOthersHearThatItIsDown(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		taken(t, k, text)
		for _, down := range []error{turns.Unavailable(errors.New("refused")), errors.New("odd"), context.DeadlineExceeded} {
			s.down = down
			taken(t, k, text)
			_, err := k.Authenticate(t.Context(), access.Mint().Reveal())
			require.Equal(t, turns.CodeStoreUnavailable, turns.CodeOf(err))
		}
		time.Sleep(lifetime)
		_, err := k.Authenticate(t.Context(), text.Reveal())
		require.Equal(t, turns.CodeStoreUnavailable, turns.CodeOf(err), "never unauthenticated")
		s.down = nil
		taken(t, k, text)
	})
}

func TestADatabaseThatDoesNotAnswerIsGivenUp(t *testing.T) {
	play(t, lifetime, func(t *testing.T, s *shelf, k *keys.Keys, text access.Text) {
		s.gate = make(chan struct{})
		_, err := k.Authenticate(t.Context(), text.Reveal())
		require.Equal(t, turns.CodeStoreUnavailable, turns.CodeOf(err))
	})
}
