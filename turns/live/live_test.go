package live_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var key = turns.ConversationKey{1}

// shelf is a store of one reply, as far as a hub sees it.
type shelf struct {
	mu    sync.Mutex
	reply turns.Reply
	log   turns.Log
	down  error
	reads int
	marks []turns.FollowMark
	// onMark is called with each mark; nil is nothing.
	onMark func()
	gap    bool // ReadLogs skips the first bytes of what is new
	gone   bool // the row has vanished
	blind  bool // ReadLogs finds nothing
	line   map[turns.TurnID]turns.LineView
	// lineReads counts ReadLine, and lineFails is what it fails with.
	lineReads int
	lineFails error
	hole      bool // ReadLogs finds the row and nothing of its log
}

func (s *shelf) ReadReply(context.Context, turns.ConversationKey, turns.ReplyID) (turns.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return turns.Reply{}, s.down
	}
	if s.gone {
		return turns.Reply{}, turns.NotFound("reply", "")
	}
	reply := s.reply
	reply.Length = s.log.Len()
	reply.Content, _, _ = s.log.From(0, 0)
	return reply, nil
}

func (s *shelf) FindTurn(context.Context, turns.ConversationKey, turns.RowID) (turns.UserTurn, error) {
	return turns.UserTurn{}, turns.TurnDeleted()
}

func (s *shelf) ReadLogs(_ context.Context, positions []turns.LogPosition) ([]turns.LogView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.down != nil {
		return nil, s.down
	}
	views := make([]turns.LogView, len(positions))
	for i, p := range positions {
		if s.gone || s.blind {
			continue
		}
		from := p.From
		if s.gap {
			from += 3
		}
		views[i] = turns.LogView{Reply: s.reply, From: from}
		if !s.hole {
			views[i].Pieces, _, _ = s.log.From(from, p.Max)
		}
		views[i].Reply.Length = s.log.Len()
	}
	return views, nil
}

// ReadLine answers with what a test has set for a turn.
func (s *shelf) ReadLine(_ context.Context, places []turns.LinePlace) ([]turns.LineView, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineReads++
	views := make([]turns.LineView, len(places))
	for i, p := range places {
		views[i] = s.line[p.Turn]
	}
	return views, s.lineFails
}

func (s *shelf) MarkFollowed(_ context.Context, marks []turns.FollowMark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = append(s.marks, marks...)
	if s.onMark != nil {
		s.onMark()
	}
	return nil
}

func (s *shelf) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// complete ends the reply with a last piece.
func (s *shelf) complete(t *testing.T, last turns.Piece) {
	t.Helper()
	s.change(func() {
		must(t, s.log.Append(last))
		s.reply = ended(s.reply, s.log.Len())
	})
}

// count is how often ReadLogs was called.
func (s *shelf) count() (n int) {
	s.change(func() { n = s.reads })
	return n
}

func newShelf() *shelf {
	return &shelf{reply: turns.Reply{ID: turns.ReplyID{UUID: uuid.New()}, Status: turns.StatusInFlight}}
}

func newHub(s *shelf) *live.Hub {
	return live.New(live.Config{Store: s, Logger: slog.New(slog.DiscardHandler), Tick: 250 * time.Millisecond,
		Heartbeat: 15 * time.Second, Patience: 15 * time.Second})
}

func text(block uint32, s string) turns.Piece {
	return turns.Piece{Block: block, Kind: turns.KindText, Text: s}
}

func whole(block uint32, s string) turns.Piece {
	return turns.Piece{Block: block, Kind: turns.KindText, Starts: true, Text: s, Ends: true}
}

// heard is what a follower got.
type heard struct {
	text       string
	next       uint32
	pieces     int
	biggest    int
	started    int
	heartbeats int
	ended      *turns.Reply
	err        error
}

func listen(events iter.Seq2[turns.Event, error], from uint32) (h heard) {
	h.next = from
	for e, err := range events {
		if err != nil {
			h.err = err
			return h
		}
		switch e := e.(type) {
		case turns.Started:
			h.started++
		case turns.Grew:
			if e.Offset != h.next {
				h.err = errors.New("a gap or a repeat")
				return h
			}
			h.text, h.next, h.pieces = h.text+e.Piece.Text, e.Next, h.pieces+1
			h.biggest = max(h.biggest, len(e.Piece.Text))
		case turns.Heartbeat:
			h.heartbeats++
		case turns.Ended:
			h.ended = &e.Reply
		}
	}
	return h
}

func ended(r turns.Reply, length uint32) turns.Reply {
	r.Status, r.Length = turns.StatusComplete, length
	return r
}

func TestAFollowerOfTheOwnerHearsEverythingOnceAndThenTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		hub := newHub(s)
		log := hub.Open(key, s.reply)
		var early, late heard
		var wg sync.WaitGroup
		wg.Go(func() { early = listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		synctest.Wait()
		require.NoError(t, log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: "one "}))
		synctest.Wait()
		require.NoError(t, log.Append(text(0, "two ")))
		wg.Go(func() { late = listen(hub.Follow(t.Context(), key, s.reply.ID, 5), 5) })
		synctest.Wait()
		require.NoError(t, log.Append(turns.Piece{Kind: turns.KindText, Text: "three", Ends: true}))
		log.End(ended(s.reply, 15))
		wg.Wait()
		require.Equal(t, "one two three", early.text)
		require.Equal(t, "two three", late.text)
		for _, h := range []heard{early, late} {
			require.NoError(t, h.err)
			require.Equal(t, 1, h.started)
			require.Equal(t, turns.StatusComplete, h.ended.Status)
			require.Equal(t, uint32(15), h.next)
		}
	})
}

func TestAReplyThatWasEndedFromOutsideAndStillRunsHereIsFollowedToItsEnd(t *testing.T) {
	for name, read := range map[string]turns.Reply{
		"swept": {Status: turns.StatusAbandoned, Reason: turns.ReasonLeaseExpired, Length: 5},
		"held":  {Status: turns.StatusHeld, Length: 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShelf()
				hub := newHub(s)
				log := hub.Open(key, s.reply)
				begun := turns.Piece{Kind: turns.KindText, Starts: true, Text: "one "}
				must(t, log.Append(begun))
				read.ID, read.Content = s.reply.ID, []turns.Piece{begun}
				var h heard
				var wg sync.WaitGroup
				wg.Go(func() { h = listen(hub.Replay(t.Context(), key, read, 0), 0) })
				synctest.Wait()
				must(t, log.Append(turns.Piece{Kind: turns.KindText, Text: "two", Ends: true}))
				log.End(ended(s.reply, 9))
				wg.Wait()
				require.NoError(t, h.err)
				require.Equal(t, "one two", h.text)
				require.Equal(t, turns.StatusComplete, h.ended.Status)
			})
		})
	}
}

func TestASlowFollowerGetsBiggerPiecesAndHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		hub := newHub(s)
		log := hub.Open(key, s.reply)
		release := make(chan struct{})
		var h heard
		var wg sync.WaitGroup
		wg.Go(func() {
			h = listen(func(yield func(turns.Event, error) bool) {
				for e, err := range hub.Follow(t.Context(), key, s.reply.ID, 0) {
					if _, grew := e.(turns.Grew); grew {
						<-release
					}
					if !yield(e, err) {
						return
					}
				}
			}, 0)
		})
		require.NoError(t, log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: "x"}))
		synctest.Wait()
		for range 1000 {
			require.NoError(t, log.Append(text(0, "x")))
		}
		log.End(ended(s.reply, 1002))
		close(release)
		wg.Wait()
		require.Equal(t, uint32(1002), h.next)
		require.LessOrEqual(t, h.pieces, 3, "what came while it slept is merged")
	})
}

func TestAMirrorIsFedFromTheStoreOncePerTickForAllItsFollowers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShelf()
		must(t, s.log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: "stored "}))
		hub := newHub(s)
		var wg, loops sync.WaitGroup
		loops.Go(func() { _ = hub.Run(ctx) })
		results := make([]heard, 20)
		for i := range results {
			wg.Go(func() { results[i] = listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		}
		time.Sleep(time.Second) // the bubble's clock
		synctest.Wait()
		require.Equal(t, 5, s.count(), "at once, and then each tick")
		s.change(func() { must(t, s.log.Append(turns.Piece{Kind: turns.KindText, Text: "later", Ends: true})) })
		time.Sleep(250 * time.Millisecond)
		s.change(func() { s.reply = ended(s.reply, s.log.Len()) })
		wg.Wait()
		for _, h := range results {
			require.NoError(t, h.err)
			require.Equal(t, "stored later", h.text)
			require.NotNil(t, h.ended)
		}
		reads := s.count()
		time.Sleep(time.Second)
		require.Equal(t, reads, s.count(), "without followers nothing is read")
		cancel()
		loops.Wait()
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func TestC78SilenceIsFilledWithHeartbeatsThatTakeNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		hub := newHub(s)
		log := hub.Open(key, s.reply)
		var h heard
		var wg sync.WaitGroup
		wg.Go(func() { h = listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		time.Sleep(5*time.Minute + time.Second)
		log.End(ended(s.reply, 0))
		wg.Wait()
		require.Equal(t, 20, h.heartbeats)
		require.Zero(t, h.next)
	})
}

func TestFollowersOfALogThatMovedGoOnFromTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		hub := newHub(s)
		log := hub.Open(key, s.reply)
		must(t, log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: "shown and stored"}))
		var h heard
		var wg sync.WaitGroup
		wg.Go(func() { h = listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		synctest.Wait()
		s.complete(t, whole(0, "shown and stored"))
		log.Move()
		wg.Wait()
		require.NoError(t, h.err)
		require.Equal(t, "shown and stored", h.text)
		require.Equal(t, 1, h.started, "the same reply is not started twice")
		require.NotNil(t, h.ended)
	})
}

func TestAStalledLogLetsGoOfItsFollowersAndKeepsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		hub := newHub(s)
		log := hub.Open(key, s.reply)
		var first, second heard
		var wg sync.WaitGroup
		wg.Go(func() { first = listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		synctest.Wait()
		log.Stall(errors.New("no database"))
		wg.Wait()
		require.ErrorIs(t, first.err, turns.ErrStoreUnavailable)
		require.Nil(t, first.ended)
		wg.Go(func() { second = listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		synctest.Wait()
		log.End(ended(s.reply, 0))
		wg.Wait()
		require.NoError(t, second.err)
		require.NotNil(t, second.ended)
	})
}

func TestAMirrorWhoseStoreStaysAwayLetsItsFollowersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShelf()
		hub := newHub(s)
		var wg, loops sync.WaitGroup
		loops.Go(func() { _ = hub.Run(ctx) })
		var h heard
		wg.Go(func() { h = listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		synctest.Wait()
		s.change(func() { s.down = turns.Unavailable(errors.New("no database")) })
		begun := time.Now()
		wg.Wait()
		require.ErrorIs(t, h.err, turns.ErrStoreUnavailable)
		require.InDelta(t, 15, time.Since(begun).Seconds(), 1)
		cancel()
		loops.Wait()
	})
}

func TestAMirrorAnnouncesItsFollowersThreeTimesAGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShelf()
		s.reply.DisconnectGrace = 30 * time.Second
		hub := newHub(s)
		var wg, loops sync.WaitGroup
		loops.Go(func() { _ = hub.Run(ctx) })
		wg.Go(func() { listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		time.Sleep(61 * time.Second)
		synctest.Wait()
		s.change(func() {
			require.Len(t, s.marks, 7)
			require.Equal(t, 30*time.Second, s.marks[0].For)
			s.reply = ended(s.reply, 0)
		})
		wg.Wait()
		cancel()
		loops.Wait()
	})
}

func TestAMarkOutlastsTheNextLookHoweverShortTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShelf()
		s.reply.DisconnectGrace = time.Millisecond
		hub := newHub(s)
		var wg, loops sync.WaitGroup
		loops.Go(func() { _ = hub.Run(ctx) })
		hub.Connected(true) // from here on mirrors are read for hints, and else once a second
		synctest.Wait()
		joined := time.Now()
		var marked []time.Time
		s.onMark = func() { marked = append(marked, time.Now()) }
		wg.Go(func() { listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		s.change(func() {
			require.WithinDuration(t, joined, marked[0], 10*time.Millisecond, "as soon as somebody follows")
			for i, at := range marked[1:] {
				require.Less(t, at.Sub(marked[i]), s.marks[i].For, "the owner never finds one that has run out")
			}
			require.LessOrEqual(t, len(marked), 21, "and is told no more often than is of use")
			s.reply = ended(s.reply, 0)
		})
		wg.Wait()
		cancel()
		loops.Wait()
	})
}

func TestAnOwnersLogSaysWhoWatchesAndSinceWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		hub := newHub(s)
		log := hub.Open(key, s.reply)
		opened := time.Now()
		time.Sleep(time.Second)
		n, since := log.Watched()
		require.Zero(t, n)
		require.Equal(t, opened, since)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { listen(hub.Follow(ctx, key, s.reply.ID, 0), 0) })
		synctest.Wait()
		n, _ = log.Watched()
		require.Equal(t, 1, n)
		time.Sleep(time.Second)
		cancel()
		wg.Wait()
		n, since = log.Watched()
		require.Zero(t, n)
		require.Equal(t, 2*time.Second, since.Sub(opened))
	})
}

func TestAMirrorOfALogThatChangedInTheStoreIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShelf()
		must(t, s.log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: "one two "}))
		s.reply.Length = s.log.Len()
		hub := newHub(s)
		var wg, loops sync.WaitGroup
		loops.Go(func() { _ = hub.Run(ctx) })
		var h heard
		wg.Go(func() { h = listen(hub.Follow(t.Context(), key, s.reply.ID, 0), 0) })
		synctest.Wait()
		s.change(func() { // a failover has lost a checkpoint, and the log goes on elsewhere
			s.gap = true
			must(t, s.log.Append(turns.Piece{Kind: turns.KindText, Text: "three four", Ends: true}))
			s.reply = ended(s.reply, s.log.Len())
		})
		wg.Wait()
		require.NoError(t, h.err)
		require.Equal(t, "one two three four", h.text, "no byte is skipped")
		cancel()
		loops.Wait()
	})
}

func TestACursorThatCannotBeRightIsRefused(t *testing.T) {
	s := newShelf()
	must(t, s.log.Append(whole(0, "é")))
	s.reply = ended(s.reply, s.log.Len())
	hub := newHub(s)
	for from, bad := range map[uint32]bool{0: false, 1: false, 2: true, 3: false, 4: false, 5: true, 1 << 31: true} {
		h := listen(hub.Follow(t.Context(), key, s.reply.ID, from), from)
		if bad {
			require.ErrorIs(t, h.err, turns.ErrInvalidCursor, "offset %d", from)
			require.Zero(t, h.started)
		} else {
			require.NoError(t, h.err, "offset %d", from)
			require.NotNil(t, h.ended)
		}
	}
	s.reply.Status, s.reply.Reason = turns.StatusAbandoned, turns.ReasonLeaseExpired
	h := listen(hub.Follow(t.Context(), key, s.reply.ID, 99), 99)
	require.NoError(t, h.err, "past the end of an abandoned reply the end is told, with the length that was kept")
	require.Equal(t, uint32(4), h.ended.Length)
}

func TestACursorFromTheLastOwnerWaitsForTheNextOneToCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		hub := newHub(s)
		s.reply.Epoch = 2
		log := hub.Open(key, s.reply) // what the last owner had shown was not stored
		var h heard
		var wg sync.WaitGroup
		wg.Go(func() { h = listen(hub.Follow(t.Context(), key, s.reply.ID, 5), 5) })
		synctest.Wait()
		must(t, log.Append(starts("one ")))
		must(t, log.Append(text(0, "two")))
		log.End(ended(s.reply, log.Len()))
		wg.Wait()
		require.NoError(t, h.err)
		require.Equal(t, "two", h.text)
		require.NotNil(t, h.ended)
	})
}

func TestACursorPastTheLogOfItsOnlyOwnerIsRefused(t *testing.T) {
	s := newShelf()
	hub := newHub(s)
	s.reply.Epoch = 1
	log := hub.Open(key, s.reply)
	must(t, log.Append(starts("one")))
	h := listen(hub.Follow(t.Context(), key, s.reply.ID, 5), 5)
	require.ErrorIs(t, h.err, turns.ErrInvalidCursor)
}

func TestAReplayFromAnyOffsetIsTheRestOfTheReply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShelf()
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "你好", "🦀", "two words"}), 1, 6).Draw(t, "blocks")
		for i, w := range words {
			require.NoError(t, s.log.Append(whole(uint32(i), w)))
		}
		s.reply = ended(s.reply, s.log.Len())
		hub := newHub(s)
		full := listen(hub.Follow(context.Background(), key, s.reply.ID, 0), 0)
		from := uint32(rapid.IntRange(0, int(s.log.Len())).Draw(t, "offset"))
		rest, _, err := s.log.From(from, 0)
		h := listen(hub.Follow(context.Background(), key, s.reply.ID, from), from)
		if err != nil {
			require.ErrorIs(t, h.err, turns.ErrInvalidCursor)
			return
		}
		var want string
		for _, p := range rest {
			want += p.Text
		}
		require.Equal(t, want, h.text)
		require.Equal(t, full.next, h.next)
	})
}

func TestAFollowerThatLeavesLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		hub := newHub(s)
		hub.Open(key, s.reply)
		ctx, cancel := context.WithCancel(t.Context())
		var h heard
		var wg sync.WaitGroup
		wg.Go(func() { h = listen(hub.Follow(ctx, key, s.reply.ID, 0), 0) })
		synctest.Wait()
		cancel()
		wg.Wait()
		require.ErrorIs(t, h.err, context.Canceled)
		for range hub.Follow(t.Context(), key, s.reply.ID, 0) {
			break // an early break must end the follower
		}
	})
}
