package live_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// wait hears a turn in line up to its end, and the places that it was told.
func wait(events iter.Seq2[turns.Event, error]) (places []int, h heard) {
	rest := func(yield func(turns.Event, error) bool) {
		for e, err := range events {
			if q, ok := e.(turns.Queued); ok {
				places = append(places, q.Position)
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
	h = listen(rest, 0)
	return places, h
}

func TestPlacesInLineAreReadOnceATickForAllAndEachChangeIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShelf()
		hub := newHub(s)
		first, second := turns.TurnID{UUID: uuid.New()}, turns.TurnID{UUID: uuid.New()}
		s.line = map[turns.TurnID]turns.LineView{first: {Found: true, Waiting: true}, second: {Found: true, Waiting: true, Position: 1}}
		var wg, loops sync.WaitGroup
		loops.Go(func() { _ = hub.Run(ctx) })
		places, results := make([][]int, 20), make([]heard, 20)
		for i := range results {
			wg.Go(func() {
				places[i], results[i] = wait(hub.FollowTurn(t.Context(), key, []turns.TurnID{first, second}[i%2]))
			})
		}
		time.Sleep(16 * time.Second) // the bubble's clock: a heartbeat comes, and no place is told again
		synctest.Wait()
		var reads int
		s.change(func() { reads = s.lineReads })
		require.LessOrEqual(t, reads, 16*4+4)
		s.change(func() {
			s.line[first], s.line[second] = turns.LineView{Found: true, Reply: s.reply.ID}, turns.LineView{Found: true, Waiting: true}
		})
		hub.LineMoved(key)
		synctest.Wait()
		s.complete(t, whole(0, "hello"))
		s.change(func() { s.line[second] = turns.LineView{Found: true, Reply: s.reply.ID} })
		wg.Wait()
		for i, h := range results {
			require.NoError(t, h.err)
			require.Equal(t, "hello", h.text)
			require.Equal(t, 1, h.started)
			require.Positive(t, h.heartbeats)
			require.Equal(t, [][]int{{0}, {1, 0}}[i%2], places[i])
		}
		s.change(func() { reads = s.lineReads })
		time.Sleep(time.Second)
		s.change(func() { require.Equal(t, reads, s.lineReads, "without followers nothing is read") })
		cancel()
		loops.Wait()
	})
}

func TestWhoWaitsInLineIsLetGoByADrainAndByAStoreThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShelf()
		hub := newHub(s)
		turn := turns.TurnID{UUID: uuid.New()}
		s.line = map[turns.TurnID]turns.LineView{turn: {Found: true, Waiting: true}}
		var wg, loops sync.WaitGroup
		loops.Go(func() { _ = hub.Run(ctx) })
		var h heard
		wg.Go(func() { _, h = wait(hub.FollowTurn(t.Context(), key, turn)) })
		synctest.Wait()
		s.change(func() { s.lineFails = turns.Unavailable(errors.New("no database")) })
		wg.Wait()
		require.ErrorIs(t, h.err, turns.ErrStoreUnavailable)
		s.change(func() { s.lineFails = nil })
		wg.Go(func() { _, h = wait(hub.FollowTurn(t.Context(), key, turn)) })
		synctest.Wait()
		hub.Drain()
		wg.Wait()
		require.Equal(t, turns.CodeDraining, turns.CodeOf(h.err))
		_, h = wait(hub.FollowTurn(t.Context(), key, turn))
		require.Equal(t, turns.CodeDraining, turns.CodeOf(h.err))
		cancel()
		loops.Wait()
	})
}
