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

func ask(ctx context.Context, a *admission, who Caller) *asked {
	q := &asked{done: make(chan struct{})}
	go func() {
		defer close(q.done)
		q.waited, q.err = a.take(ctx, who)
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

// waits tells a delivery that waits for its place, or has it.
func (q *asked) waits(t *testing.T) bool {
	t.Helper()
	if !q.answered() {
		return true
	}
	require.NoError(t, q.err)
	return false
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
		waited, err := a.take(t.Context(), Caller{})
		require.NoError(t, err)
		require.False(t, waited, "a free place is given at once")
		first, second := ask(t.Context(), a, Caller{}), ask(t.Context(), a, Caller{})
		require.False(t, first.answered())
		require.Equal(t, 2, a.queued())
		require.False(t, a.try(Caller{}), "nobody overtakes")
		a.leave(Caller{})
		require.True(t, first.answered())
		require.NoError(t, first.err)
		require.True(t, first.waited, "it must look again")
		require.False(t, second.answered())
		a.leave(Caller{})
		require.True(t, second.answered())
		a.leave(Caller{})
		require.True(t, a.try(Caller{}), "the last one gave it back")
	})
}

func TestBeyondTheQueueADeliveryIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1}
		require.True(t, a.try(Caller{}))
		code, wait := codeOf(t, ask(t.Context(), a, Caller{}))
		require.Equal(t, CodeOverloaded, code)
		require.Positive(t, wait)
		a.room = 1
		ask(t.Context(), a, Caller{})
		code, _ = codeOf(t, ask(t.Context(), a, Caller{}))
		require.Equal(t, CodeOverloaded, code)
		a.close()
	})
}

func TestAWaitForAPlaceEndsByTimeAndWithItsSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1, room: 2}
		require.True(t, a.try(Caller{}))
		ctx, leave := context.WithCancel(t.Context())
		gone, patient := ask(ctx, a, Caller{}), ask(t.Context(), a, Caller{})
		leave()
		code, wait := codeOf(t, gone)
		require.Equal(t, CodeOverloaded, code)
		require.Positive(t, wait)
		require.Equal(t, 1, a.queued(), "its room is free again")
		time.Sleep(queueTime)
		require.True(t, patient.answered())
		code, _ = codeOf(t, patient)
		require.Equal(t, CodeOverloaded, code)
		a.leave(Caller{})
		require.True(t, a.try(Caller{}), "nobody who left was given the place")
	})
}

func TestADrainSendsAwayWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1, room: 2}
		require.True(t, a.try(Caller{}))
		one, two := ask(t.Context(), a, Caller{}), ask(t.Context(), a, Caller{})
		a.close()
		for _, q := range []*asked{one, two, ask(t.Context(), a, Caller{})} {
			code, _ := codeOf(t, q)
			require.Equal(t, CodeDraining, code)
		}
		a.leave(Caller{})
		a.held.Wait()
		require.False(t, a.try(Caller{}))
	})
}

func TestAPlaceThatIsInheritedGoesToNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1, room: 1}
		require.True(t, a.try(Caller{}))
		waiting := ask(t.Context(), a, Caller{})
		require.True(t, a.inherit(Caller{}))
		a.leave(Caller{}) // of the one that was stopped
		require.False(t, waiting.answered(), "its place has been taken already")
		a.leave(Caller{})
		require.True(t, waiting.answered())
		a.leave(Caller{})
		require.True(t, a.try(Caller{}))
		a.close()
		require.False(t, a.inherit(Caller{}))
		code, _ := codeOf(t, ask(t.Context(), a, Caller{}))
		require.Equal(t, CodeDraining, code)
	})
}

func TestASubjectThatHasAsManyPlacesAsItMayIsRefusedAndKeepsNobodyOutOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 3, room: 2, each: 2}
		hot, other := Caller{Tenant: "acme", Subject: "hot"}, Caller{Tenant: "acme", Subject: "other"}
		for range 2 {
			require.False(t, ask(t.Context(), a, hot).waits(t))
		}
		refused := ask(t.Context(), a, hot)
		code, wait := codeOf(t, refused)
		require.Equal(t, CodeOverloaded, code, "a place is free, but not for it")
		require.Positive(t, wait)
		require.False(t, a.try(hot))
		require.Equal(t, hot, a.wanting(hot))
		require.False(t, ask(t.Context(), a, other).waits(t))
		require.Zero(t, a.wanting(other), "it would take anybody's")

		queued := ask(t.Context(), a, other)
		require.False(t, queued.answered())
		third := ask(t.Context(), a, other)
		code, _ = codeOf(t, third)
		require.Equal(t, CodeOverloaded, code, "who waits counts too, so that the queue has room for others")
		a.leave(hot)
		require.True(t, queued.answered())
		require.NoError(t, queued.err)
		a.leave(hot)
		a.leave(other)
		a.leave(other)
		require.Empty(t, a.of, "who has nothing is forgotten")
	})
}

func TestWhoGivesUpWaitingHasNoPlaceToHisName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &admission{places: 1, room: 1, each: 1}
		one, two := Caller{Subject: "one"}, Caller{Subject: "two"}
		require.True(t, a.try(one))
		code, _ := codeOf(t, ask(t.Context(), a, two))
		require.Equal(t, CodeOverloaded, code)
		require.Equal(t, map[Caller]int{one: 1}, a.of)
		a.leave(one)
		require.True(t, a.try(two))
	})
}

func TestAPlaceIsInheritedBeyondItsSubjectsShare(t *testing.T) {
	a := &admission{places: 2, each: 1}
	one := Caller{Subject: "one"}
	require.True(t, a.try(one))
	require.False(t, a.try(one))
	require.True(t, a.inherit(one))
	a.leave(one)
	a.leave(one)
	require.Empty(t, a.of)
}
