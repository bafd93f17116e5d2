package live_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// paragraph is enough text for a log to be trimmed after some.
var paragraph = strings.Repeat("grüße ", 4<<10)

func TestAnOwnersLogKeepsItsTailAndAllThatIsNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		log := newHub(s).Open(key, s.reply)
		must(t, log.Append(starts("")))
		for range 40 {
			must(t, log.Append(text(0, paragraph)))
		}
		require.Zero(t, log.First(), "nothing is stored yet")
		stored := log.Len() / 4
		log.Stored(stored)
		require.LessOrEqual(t, log.First(), stored)
		require.Greater(t, log.First()+4, stored)
		pieces, length := log.Tail(stored)
		require.Equal(t, log.Len(), length)
		require.NotEmpty(t, pieces)
		log.Stored(log.Len())
		require.InDelta(t, 64<<10, log.Len()-log.First(), 4)
		require.True(t, log.HasContent())
		pieces, length = log.Tail(0)
		require.Empty(t, pieces, "what memory has let go of is not made up")
		require.Equal(t, log.Len(), length)
	})
}

func TestAShortLogIsKeptWhole(t *testing.T) {
	s := newShelf()
	log := newHub(s).Open(key, s.reply)
	must(t, log.Append(starts(strings.Repeat("x", 200<<10))))
	log.Stored(log.Len())
	require.Zero(t, log.First())
}

// grow makes a long log, a part at a time, in the store and maybe in an owner's memory.
func grow(t *testing.T, s *shelf, log turns.LiveLog) (want string) {
	for i := range 60 {
		p := text(0, paragraph)
		if i == 0 {
			p = starts(paragraph)
		}
		want += paragraph
		s.change(func() { must(t, s.log.Append(p)) })
		if log != nil {
			must(t, log.Append(p))
			log.Stored(log.Len())
		}
		time.Sleep(100 * time.Millisecond)
	}
	return want
}

func TestAFollowerFurtherBackThanMemoryReadsFromTheStoreUntilItReachesIt(t *testing.T) {
	for name, owned := range map[string]bool{"on the owner": true, "on a mirror": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				r := run(t.Context(), s, 0)
				var log turns.LiveLog
				if owned {
					log = r.Open(key, s.reply)
				}
				first := r.follow(t.Context(), s)
				want := grow(t, s, log)
				late := r.follow(t.Context(), s)
				time.Sleep(3 * time.Second)
				synctest.Wait()
				s.complete(t, turns.Piece{Kind: turns.KindText, Ends: true})
				if owned {
					must(t, log.Append(turns.Piece{Kind: turns.KindText, Ends: true}))
					log.End(s.reply)
				}
				for _, h := range []heard{first(), late()} {
					require.NoError(t, h.err)
					require.True(t, want == h.text, "every byte once")
					require.NotNil(t, h.ended)
					require.LessOrEqual(t, h.biggest, 64<<10+3)
				}
				r.end()
			})
		})
	}
}

func TestAnEndedReplyIsReplayedInBoundedEvents(t *testing.T) {
	s := newShelf()
	must(t, s.log.Append(whole(0, strings.Repeat(paragraph, 20))))
	s.reply = ended(s.reply, s.log.Len())
	h := listen(newHub(s).Follow(t.Context(), key, s.reply.ID, 0), 0)
	require.NoError(t, h.err)
	require.Equal(t, s.log.Len(), h.next)
	require.LessOrEqual(t, h.biggest, 64<<10+3)
}

func TestStreamsPastTheLimitAreRefusedAndWelcomeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		r := run(t.Context(), s, 0)
		log := r.Open(key, s.reply)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { listen(r.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		}
		synctest.Wait()
		h := listen(r.Follow(t.Context(), key, s.reply.ID, 0), 0)
		require.Equal(t, turns.CodeOverloaded, turns.CodeOf(h.err))
		var refused *turns.Error
		require.True(t, errors.As(h.err, &refused))
		require.Positive(t, refused.RetryAfter)
		s.change(func() { s.reply = ended(s.reply, 0) })
		log.End(s.reply)
		wg.Wait()
		h = listen(r.Follow(t.Context(), key, s.reply.ID, 0), 0)
		require.NoError(t, h.err)
		r.end()
	})
}

func TestAReplyThatItsDatabaseHasLostEndsAsAbandoned(t *testing.T) {
	for name, owned := range map[string]bool{"its owner moved it": true, "it was mirrored": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				must(t, s.log.Append(starts("shown")))
				r := run(t.Context(), s, 0)
				var log turns.LiveLog
				if owned {
					log = r.Open(key, s.reply)
					must(t, log.Append(starts("shown")))
				}
				heardAll := r.follow(t.Context(), s)
				synctest.Wait()
				s.change(func() { s.gone = true })
				if owned {
					log.Move()
				}
				h := heardAll()
				require.NoError(t, h.err)
				require.Equal(t, turns.StatusAbandoned, h.ended.Status)
				require.Equal(t, turns.ReasonLeaseExpired, h.ended.Reason)
				require.Zero(t, h.ended.Length, "what was shown is void")
				require.Equal(t, s.reply.ID, h.ended.ID)
				h = listen(r.Follow(t.Context(), key, s.reply.ID, 0), 0)
				require.ErrorIs(t, h.err, turns.ErrNotFound, "who comes later never saw it")
				r.end()
			})
		})
	}
}

func TestARowThatOnlySeemedGoneIsFollowedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		r := run(t.Context(), s, 0)
		heardAll := r.follow(t.Context(), s)
		time.Sleep(100 * time.Millisecond)
		s.change(func() { s.blind = true })
		time.Sleep(10 * time.Second)
		require.Less(t, s.count(), 100, "it is looked for once a tick")
		s.change(func() {
			s.blind = false
			s.reply = ended(s.reply, 0)
		})
		h := heardAll()
		require.NoError(t, h.err)
		require.Equal(t, turns.StatusComplete, h.ended.Status)
		require.Equal(t, 1, h.started)
		r.end()
	})
}

func TestALostRowThatItsOwnerPutsBackIsFollowedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		must(t, s.log.Append(starts("shown ")))
		r := run(t.Context(), s, 0)
		heardAll := r.follow(t.Context(), s)
		time.Sleep(100 * time.Millisecond)
		s.change(func() { s.gone = true })
		time.Sleep(6 * time.Second) // until the owner's lease holds again, which its claim needs
		s.change(func() {
			s.gone = false
			must(t, s.log.Append(text(0, "and put back")))
			s.reply = ended(s.reply, s.log.Len())
		})
		h := heardAll()
		require.NoError(t, h.err)
		require.Equal(t, turns.StatusComplete, h.ended.Status)
		require.Equal(t, "shown and put back", h.text)
		require.Less(t, s.count(), 50, "it is looked for once a tick")
		r.end()
	})
}

func TestALogWithAHoleIsNotReadOverAndOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		r := run(t.Context(), s, 0)
		heardAll := r.follow(t.Context(), s)
		time.Sleep(100 * time.Millisecond)
		s.change(func() {
			s.hole = true
			must(t, s.log.Append(starts("word")))
		})
		time.Sleep(10 * time.Second)
		require.Less(t, s.count(), 100)
		s.complete(t, turns.Piece{Kind: turns.KindText, Ends: true})
		h := heardAll()
		require.NoError(t, h.err)
		require.Equal(t, "word", h.text)
		require.NotNil(t, h.ended, "its content is read whole in the end")
		r.end()
	})
}
