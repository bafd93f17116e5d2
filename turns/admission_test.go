package turns

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// asked is a delivery that asks for a place; done closes once it has its answer.
type asked struct {
	done   chan struct{}
	waited bool
	err    error
}

func ask(ctx context.Context, a *admission) *asked {
	q := &asked{done: make(chan struct{})}
	go func() {
		defer close(q.done)
		q.waited, q.err = a.take(ctx)
	}()
	synctest.Wait()
	return q
}

func (q *asked) answered() bool {
	synctest.Wait()
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

func codeOf(t *testing.T, q *asked) (Code, time.Duration) {
	t.Helper()
	<-q.done
	var e *Error
	require.ErrorAs(t, q.err, &e)
	return e.Code, e.RetryAfter
}

func TestPlacesAreGivenInTheOrderInWhichTheyWereAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1, room: 2}
		waited, err := a.take(t.Context())
		require.NoError(t, err)
		require.False(t, waited, "a free place is given at once")
		first, second := ask(t.Context(), a), ask(t.Context(), a)
		require.False(t, first.answered())
		require.Equal(t, 2, a.queued())
		require.False(t, a.try(), "nobody overtakes")
		a.leave()
		require.True(t, first.answered())
		require.NoError(t, first.err)
		require.True(t, first.waited, "it must look again")
		require.False(t, second.answered())
		a.leave()
		require.True(t, second.answered())
		a.leave()
		require.True(t, a.try(), "the last one gave it back")
	})
}

func TestBeyondTheQueueADeliveryIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1}
		require.True(t, a.try())
		code, wait := codeOf(t, ask(t.Context(), a))
		require.Equal(t, CodeOverloaded, code)
		require.Positive(t, wait)
		a.room = 1
		ask(t.Context(), a)
		code, _ = codeOf(t, ask(t.Context(), a))
		require.Equal(t, CodeOverloaded, code)
		a.close()
	})
}

func TestAWaitForAPlaceEndsByTimeAndWithItsSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1, room: 2}
		require.True(t, a.try())
		ctx, leave := context.WithCancel(t.Context())
		gone, patient := ask(ctx, a), ask(t.Context(), a)
		leave()
		code, wait := codeOf(t, gone)
		require.Equal(t, CodeOverloaded, code)
		require.Positive(t, wait)
		require.Equal(t, 1, a.queued(), "its room is free again")
		time.Sleep(queueTime)
		require.True(t, patient.answered())
		code, _ = codeOf(t, patient)
		require.Equal(t, CodeOverloaded, code)
		a.leave()
		require.True(t, a.try(), "nobody who left was given the place")
	})
}

func TestADrainSendsAwayWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1, room: 2}
		require.True(t, a.try())
		one, two := ask(t.Context(), a), ask(t.Context(), a)
		a.close()
		for _, q := range []*asked{one, two, ask(t.Context(), a)} {
			code, _ := codeOf(t, q)
			require.Equal(t, CodeDraining, code)
		}
		a.leave()
		a.held.Wait()
		require.False(t, a.try())
	})
}

func TestAPlaceThatIsInheritedGoesToNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1, room: 1}
		require.True(t, a.try())
		waiting := ask(t.Context(), a)
		require.True(t, a.inherit())
		a.leave() // of the one that was stopped
		require.False(t, waiting.answered(), "its place has been taken already")
		a.leave()
		require.True(t, waiting.answered())
		a.leave()
		require.True(t, a.try())
		a.close()
		require.False(t, a.inherit())
		code, _ := codeOf(t, ask(t.Context(), a))
		require.Equal(t, CodeDraining, code)
	})
}
