package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func times() []promise {
	return []promise{
		{"times come from one clock, in microseconds and UTC", timesAreMicroseconds},
		{"a time that was answered reads back the same", timesReadBack},
		{"durations keep their microseconds", durationsKeepMicroseconds},
		{"a deadline counts from the claim", aDeadlineCountsFromTheClaim},
	}
}

func timesAreMicroseconds(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	r := w.read(c, claim.Reply.ID)
	stored := w.conversation(c)
	st := w.lookup(c, claim.Turn)
	for _, at := range []time.Time{r.CreateTime, r.EndTime, stored.CreateTime, stored.UpdateTime, st.Turn.CreateTime} {
		require.Equal(t, time.UTC, at.Location())
		require.Equal(t, at, at.Truncate(time.Microsecond))
	}
	require.Equal(t, r.CreateTime, stored.CreateTime, "one statement has one time")
	require.Equal(t, r.CreateTime, st.Turn.CreateTime)
}

func timesReadBack(t *testing.T, w *world) {
	c := newConversation()
	claim := w.first(c)
	created := w.claim(claim).CreateTime
	ended := w.end(completing(claim, 0, whole("a"))).EndTime
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, created, r.CreateTime)
	require.Equal(t, ended, r.EndTime)
	require.True(t, w.list(turns.ConversationQuery{})[0].UpdateTime.Equal(w.conversation(c).UpdateTime))
}

func durationsKeepMicroseconds(t *testing.T, w *world) {
	c := newConversation()
	claim := w.first(c)
	claim.Reply.Waited = 1234567 * time.Microsecond
	w.win(claim)
	e := abandoning(claim, 0, turns.ReasonProviderError)
	e.RetryAfter = 7654321 * time.Microsecond
	w.finish(e)
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, claim.Reply.Waited, r.Waited)
	require.Equal(t, e.RetryAfter, r.RetryAfter)
}

func aDeadlineCountsFromTheClaim(t *testing.T, w *world) {
	claim := w.first(newConversation())
	claim.Reply.Deadline = time.Microsecond
	w.win(claim)
	_, waiting := w.fresh()
	require.Eventually(t, func() bool { return len(w.stale(turns.StaleQuery{})) > 0 }, 10*time.Second, time.Millisecond)
	stale := w.stale(turns.StaleQuery{})
	require.Len(t, stale, 1)
	require.Equal(t, claim.Reply.ID, stale[0].Reply.ID)
	require.NotEqual(t, waiting.Reply.ID, stale[0].Reply.ID)
}
