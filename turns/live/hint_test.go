package live_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

// starts is the first piece of a block that goes on.
func starts(s string) turns.Piece {
	return turns.Piece{Kind: turns.KindText, Starts: true, Text: s}
}

// following runs a hub with one follower of the shelf's reply.
func following(t *testing.T, s *shelf, play func(r *running, h *heard)) heard {
	t.Helper()
	var h heard
	synctest.Test(t, func(t *testing.T) {
		r := run(t.Context(), s, 1<<10)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			h = listen(func(yield func(turns.Event, error) bool) {
				for e, err := range r.Follow(ctx, key, s.reply.ID, 0) {
					if e, ok := e.(turns.Grew); ok {
						r.change(func() { h.next = e.Next })
					}
					if !yield(e, err) {
						return
					}
				}
			}, 0)
		})
		time.Sleep(100 * time.Millisecond) // the bubble's clock: the mirror is there and was read
		synctest.Wait()
		play(r, &h)
		synctest.Wait()
		cancel()
		wg.Wait()
		r.end()
		require.Zero(t, r.watched[s.reply.ID], "what was watched is let go of")
	})
	return h
}

// deliver hands hints to the hub and waits until it has done what they make it do.
func (r *running) deliver(hints ...live.Hint) {
	r.handler.Take(hints)
	time.Sleep(20 * time.Millisecond)
	synctest.Wait()
}

func inFlight(s *shelf, stored string) *shelf {
	s.reply.Epoch = 2
	if stored != "" {
		if err := s.log.Append(starts(stored)); err != nil {
			panic(err)
		}
	}
	return s
}

func TestPiecesAreTakenWhereTheyMeetTheMirrorsEndAndNowhereElse(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	id := s.reply.ID
	piece := func(from uint32, epoch int64, word string) live.Hint {
		return live.Hint{Reply: id, Epoch: epoch, From: from, Pieces: []turns.Piece{text(0, word)}}
	}
	following(t, s, func(r *running, h *heard) {
		reached := func(n uint32) {
			t.Helper()
			r.change(func() { require.Equal(t, n, h.next) })
		}
		reached(5)
		r.deliver(piece(5, 1, "dead "), piece(5, 3, "unborn "), piece(5, 2, "\xffhalf"))
		reached(5)
		r.deliver(piece(9, 2, "three "))
		reached(5) // what comes before it is not there yet
		r.deliver(piece(5, 2, "two "))
		reached(15) // and now both are
		r.deliver(piece(5, 2, "two three f"), piece(12, 2, "ee four "))
		reached(20)
	})
}

func TestTheEndComesFromTheRowAndNeverFromAHint(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	h := following(t, s, func(r *running, _ *heard) {
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 2, Ended: true, Length: 99})
	})
	require.Nil(t, h.ended)
	require.ErrorIs(t, h.err, context.Canceled)
	require.Equal(t, "one ", h.text)
}

func TestAPieceThatLiedEndsTheStreamWithABadCursorAndNoEnd(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	h := following(t, s, func(r *running, _ *heard) {
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 2, From: 5, Pieces: []turns.Piece{text(0, "lie ")}})
		s.complete(t, turns.Piece{Kind: turns.KindText, Text: "two three", Ends: true})
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 2, Length: s.log.Len(), Ended: true})
	})
	require.Nil(t, h.ended)
	require.ErrorIs(t, h.err, turns.ErrInvalidCursor)
}

func TestShownPiecesThatAreStoredLaterAreNotShownAgain(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	h := following(t, s, func(r *running, _ *heard) {
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 2, From: 5, Pieces: []turns.Piece{text(0, "two ")}})
		s.complete(t, turns.Piece{Kind: turns.KindText, Text: "two three", Ends: true})
		r.deliver(live.Hint{Reply: s.reply.ID, Ended: true})
	})
	require.NoError(t, h.err)
	require.Equal(t, "one two three", h.text)
	require.NotNil(t, h.ended)
}

func TestAnAbandonedReplyEndsWithTheLengthThatWasKept(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	h := following(t, s, func(r *running, _ *heard) {
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 2, From: 5, Pieces: []turns.Piece{text(0, "two ")}})
		s.change(func() { s.reply.Status, s.reply.Reason = turns.StatusAbandoned, turns.ReasonLeaseExpired })
		r.deliver(live.Hint{Reply: s.reply.ID, Ended: true})
	})
	require.NoError(t, h.err)
	require.Equal(t, "one two ", h.text, "what its owner had shown and lost stays shown")
	require.Equal(t, uint32(5), h.ended.Length, "and is void")
}

func TestAHintThatTellsNothingNewReadsNothing(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	following(t, s, func(r *running, _ *heard) {
		before := s.count()
		for range 100 {
			r.handler.Take([]live.Hint{{Reply: s.reply.ID, Epoch: 2, Length: 5}, {Reply: turns.ReplyID{UUID: uuid.New()}, Ended: true}})
		}
		synctest.Wait()
		require.Equal(t, before, s.count())
		for range 100 {
			r.handler.Take([]live.Hint{{Reply: s.reply.ID, Epoch: 2, Length: 6}})
		}
		synctest.Wait()
		require.Equal(t, before+1, s.count(), "a flood of hints is one read")
		for range 1000 {
			r.handler.Take([]live.Hint{{Reply: s.reply.ID, Epoch: 2, Length: 6}})
			time.Sleep(time.Millisecond)
		}
		require.Less(t, s.count()-before, 250, "and one that goes on is a read now and then")
	})
}

func TestAMirrorIsReadEachSecondWithoutHintsAndEachTickWithoutABus(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	following(t, s, func(r *running, _ *heard) {
		reads := func(d time.Duration) int {
			before := s.count()
			time.Sleep(d)
			synctest.Wait()
			return s.count() - before
		}
		require.InDelta(t, 10, reads(10*time.Second), 1)
		r.handler.Connected(false)
		require.InDelta(t, 40, reads(10*time.Second), 1)
		before := s.count()
		r.handler.Connected(true)
		synctest.Wait()
		require.Equal(t, before+1, s.count(), "what may have been missed is read at once")
	})
}

func TestOnlyTheOwnerIsToldOfAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		r := run(t.Context(), s, 0)
		synctest.Wait()
		log := r.Open(key, s.reply)
		other := turns.ReplyID{UUID: uuid.New()}
		r.deliver(live.Hint{Reply: s.reply.ID, Stop: true}, live.Hint{Reply: other, Stop: true}, live.Hint{Reply: s.reply.ID})
		require.Equal(t, []turns.ReplyID{s.reply.ID}, r.stops)
		r.HintStop(s.reply.ID)
		r.HintStop(other)
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, [][]live.Hint{{{Reply: other, Stop: true}}}, r.sent(), "only what runs elsewhere is passed on")
		require.Equal(t, []turns.ReplyID{s.reply.ID, s.reply.ID}, r.stops, "and what runs here is told here")
		log.Move()
		r.deliver(live.Hint{Reply: s.reply.ID, Stop: true})
		require.Len(t, r.stops, 2)
		require.Zero(t, r.watched[s.reply.ID])
		r.end()
	})
}

func TestWhatHappensInATickIsPublishedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		r := run(t.Context(), s, 0)
		synctest.Wait()
		var logs []turns.LiveLog
		for range 100 {
			reply := s.reply
			reply.ID = turns.ReplyID{UUID: uuid.New()}
			logs = append(logs, r.Open(key, reply))
		}
		for _, log := range logs {
			must(t, log.Append(starts("word")))
			log.Stored(5)
			log.Stored(5)
		}
		time.Sleep(time.Second)
		sent := r.sent()
		require.Len(t, sent, 1, "one checkpoint, one publishing")
		require.Len(t, sent[0], 100)
		for _, log := range logs {
			time.Sleep(time.Millisecond)
			log.End(ended(s.reply, 5))
		}
		time.Sleep(time.Second)
		require.LessOrEqual(t, len(r.sent()), 2, "endings are told at most once a tick")
		r.end()
	})
}

func TestPiecesArePublishedInOrderWithoutSealsAndWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		s.reply.Epoch = 7
		r := run(t.Context(), s, 1<<10)
		synctest.Wait()
		log := r.Open(key, s.reply)
		must(t, log.Append(turns.Piece{Kind: turns.KindThinking, Starts: true, Text: "hm", Ends: true, Seal: "secret"}))
		must(t, log.Append(turns.Piece{Block: 1, Kind: turns.KindText, Starts: true}))
		for range 1000 {
			must(t, log.Append(text(1, "seven 7")))
		}
		time.Sleep(10 * time.Millisecond)
		copied := new(turns.Log)
		for _, hints := range r.sent() {
			for _, h := range hints {
				require.Equal(t, int64(7), h.Epoch)
				require.Equal(t, copied.Len(), h.From)
				for _, p := range h.Pieces {
					require.Empty(t, p.Seal)
					require.LessOrEqual(t, len(p.Text), 1<<10+3)
					must(t, copied.Append(p))
				}
			}
		}
		require.Equal(t, log.Len(), copied.Len())
		r.end()
	})
}

func TestWhoFollowedFromAfarGoesOnWithTheLogOnceItRunsHere(t *testing.T) {
	s := inFlight(newShelf(), "")
	h := following(t, s, func(r *running, _ *heard) {
		log := r.Open(key, s.reply)
		must(t, log.Append(whole(0, "ours")))
		synctest.Wait()
		log.End(ended(s.reply, 6))
	})
	require.NoError(t, h.err)
	require.Equal(t, "ours", h.text)
	require.NotNil(t, h.ended)
}

func TestWhoWasShownMoreThanATakeoverBeginsWithBeginsAgain(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	h := following(t, s, func(r *running, _ *heard) {
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 2, From: 5, Pieces: []turns.Piece{text(0, "lost ")}})
		reply := s.reply
		reply.Epoch, reply.Content = 3, []turns.Piece{starts("one ")}
		log := r.Open(key, reply)
		synctest.Wait()
		log.Move()
	})
	require.Nil(t, h.ended)
	require.ErrorIs(t, h.err, turns.ErrInvalidCursor)
}

func TestPiecesThatWaitAreDroppedWhenTheReplyIsTakenOver(t *testing.T) {
	s := inFlight(newShelf(), "one ")
	following(t, s, func(r *running, h *heard) {
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 2, From: 9, Pieces: []turns.Piece{text(0, "dead ")}})
		s.change(func() { s.reply.Epoch = 3 })
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 3, From: 5, Pieces: []turns.Piece{text(0, "not")}})
		r.deliver(live.Hint{Reply: s.reply.ID, Epoch: 3, From: 5, Pieces: []turns.Piece{text(0, "new ")}})
		r.change(func() { require.Equal(t, uint32(9), h.next) })
	})
}
