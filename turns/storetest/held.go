package storetest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func helds() []promise {
	return []promise{
		{"a reply is held with its content, its calls open and no end", aReplyIsHeld},
		{"a sweep holds a reply as an ending does, and settles nothing", aSweepHolds},
		{"an outcome that is given closes its call though the reply is held", aHeldReplysCallIsClosedAsGiven},
		{"a held reply keeps the slot and frees the conversation", aHeldReplyKeepsTheSlot},
		{"held replies are read oldest first, a page at a time, of one tenant", heldRepliesAreRead},
		{"a held reply of unreadable options is read without them", aHeldReplyOfNonsenseIsRead},
		{"a lookup is due once its time has come, and then after a wait", aLookupIsDueInTime},
		{"the wait for a lookup doubles up to a bound, and is spread", theWaitForALookupDoubles},
		{"a reply that nobody can be asked for is never due", aReplyOfNobodyIsNeverDue},
		{"due lookups are bounded, the longest due first", dueLookupsAreBounded},
		{"of many that take due lookups at once, each is given to one", eachLookupIsGivenToOne},
		{"a lookup is woken by its turn and generation", aLookupIsWoken},
		{"nothing is woken that is not held, or can't be asked for, or is another tenant's", nothingElseIsWoken},
	}
}

// holding is the ending of a claim whose outcome is unknown; its call stays open, and it is looked up in an hour.
func holding(c turns.Claim, stored uint32, pieces ...turns.Piece) turns.Ending {
	e := completing(c, stored, pieces...)
	e.Verb, e.Status, e.StopReason, e.Call, e.Usage, e.LookupIn = turns.VerbHold, turns.StatusHeld, "", nil, turns.Usage{}, hour
	return e
}

// sweepingAside is the sweep that holds a claim's reply.
func sweepingAside(c turns.Claim, length uint32, pieces ...turns.Piece) turns.Sweeping {
	s := sweeping(c, length, pieces...)
	s.Status, s.Reason, s.Calls, s.Usage, s.LookupIn = turns.StatusHeld, "", nil, turns.Usage{}, hour
	return s
}

// held is a conversation with a reply that is held.
func (w *world) held() (conversation, turns.Claim) {
	w.t.Helper()
	c, claim := w.fresh()
	w.finish(holding(claim, 0, opening("ab")))
	return c, claim
}

// due makes every lookup due that is to come.
func (w *world) due() {
	w.exec("UPDATE turns SET next_lookup_at = create_time WHERE next_lookup_at IS NOT NULL")
}

func (w *world) lookups(limit int) []turns.HeldReply {
	w.t.Helper()
	held, err := w.Store.DueLookups(w.ctx, time.Minute, hour, limit)
	require.NoError(w.t, err)
	return held
}

func (w *world) heldOf(q turns.HeldQuery) []turns.HeldReply {
	w.t.Helper()
	held, err := w.Store.HeldReplies(w.ctx, q)
	require.NoError(w.t, err)
	return held
}

func aReplyIsHeld(t *testing.T, w *world) {
	c, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	result := w.end(holding(claim, length, opening("abc")))
	require.Equal(t, turns.EndResult{Won: true}, result, "it has not ended")
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{turns.StatusHeld, turns.Reason(""), uint32(4), true}, []any{r.Status, r.Reason, r.Length, r.EndTime.IsZero()})
	sameLog(t, []turns.Piece{opening("abc")}, r.Content)
	require.True(t, r.Settled)
	require.Zero(t, w.count("SELECT count(*) FROM reply_chunks"))
	equal(t, openOf(claim.Call), w.readCall(claim, claim.Call.ID), ageless)
	w.unchanged(func() { require.False(t, w.end(holding(claim, length, opening("abc"))).Won) })
}

func aSweepHolds(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	w.bury(w.worker)
	require.True(t, w.sweep(sweepingAside(claim, 3, opening("ab"))))
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, []any{turns.StatusHeld, uint32(3), true, false}, []any{r.Status, r.Length, r.EndTime.IsZero(), r.Settled})
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE end_time IS NULL"))
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM turns WHERE next_lookup_at > create_time"))
	w.unchanged(func() { require.False(t, w.sweep(sweepingAside(claim, 3, opening("ab")))) })
}

func aHeldReplysCallIsClosedAsGiven(t *testing.T, w *world) {
	_, claim := w.fresh()
	p := permitFor(claim, 2)
	require.True(t, w.permit(p).Granted)
	e := holding(claim, 0)
	e.Call = closing(claim.Key, claim.Call.ID, turns.ClassTransient)
	w.finish(e)
	held := w.heldOf(turns.HeldQuery{Tenant: claim.Tenant, Limit: 10})
	require.Len(t, held, 1)
	equal(t, []turns.OpenCall{openOf(p.Call)}, held[0].OpenCalls, ageless)
	equal(t, e.Call.Usage, held[0].Reply.Usage)
}

func aHeldReplyKeepsTheSlot(_ *testing.T, w *world) {
	c, claim := w.held()
	w.lose(w.again(c, claim.Turn))
	w.win(w.next(c))
}

func heldRepliesAreRead(t *testing.T, w *world) {
	var want []turns.ReplyID
	for range 3 {
		_, claim := w.held()
		want = append(want, claim.Reply.ID)
	}
	w.fresh()
	strange := w.win(w.first(conversationOf("intruder", newReplyID().UUID)))
	w.finish(holding(strange, 0))
	w.exec("UPDATE turns SET create_time = (SELECT min(create_time) FROM turns) WHERE id IN (%s, %s)", want[0].UUID, want[1].UUID)
	var got []turns.ReplyID
	q := turns.HeldQuery{Tenant: "tenant", Limit: 1}
	for page := w.heldOf(q); len(page) > 0; page = w.heldOf(q) {
		require.Len(t, page, 1)
		require.Nil(t, page[0].Reply.Content)
		require.Equal(t, turns.StatusHeld, page[0].Reply.Status)
		require.Equal(t, turns.OnAmbiguousHold, page[0].Reply.OnAmbiguous)
		require.Len(t, page[0].OpenCalls, 1)
		got = append(got, page[0].Reply.ID)
		q.AfterTime, q.AfterID = page[0].Reply.CreateTime, page[0].Reply.ID
	}
	require.ElementsMatch(t, want, got)
	require.Equal(t, want[2], got[2])
	require.Equal(t, strange.Key, w.heldOf(turns.HeldQuery{Tenant: "intruder", Limit: 10})[0].Key)
}

func aHeldReplyOfNonsenseIsRead(t *testing.T, w *world) {
	_, claim := w.held()
	w.exec("UPDATE turns SET options = '{' WHERE id = %s", claim.Reply.ID.UUID)
	held := w.heldOf(turns.HeldQuery{Tenant: "tenant", Limit: 10})
	require.Len(t, held, 1)
	require.Equal(t, claim.Reply.ID, held[0].Reply.ID)
}

func aLookupIsDueInTime(t *testing.T, w *world) {
	_, claim := w.held()
	require.Empty(t, w.lookups(10))
	w.due()
	held := w.lookups(10)
	require.Len(t, held, 1)
	require.Equal(t, []any{claim.Key, claim.Reply.ID, 1}, []any{held[0].Key, held[0].Reply.ID, held[0].Lookups})
	equal(t, []turns.OpenCall{openOf(claim.Call)}, held[0].OpenCalls, ageless)
	w.unchanged(func() { require.Empty(t, w.lookups(10)) })
	equal(t, held, w.heldOf(turns.HeldQuery{Tenant: "tenant", Limit: 10}), ageless, cmpopts.IgnoreFields(turns.Reply{}, "Age"))
}

// wait is how long it is until the one held reply is due again.
func (w *world) wait() time.Duration {
	w.t.Helper()
	const column = "SELECT next_lookup_at FROM turns WHERE status = 'held'"
	rows, err := w.Query(w.ctx, column)
	require.NoError(w.t, err)
	if us, ok := rows[0][0].(int64); ok {
		return time.Until(time.UnixMicro(us))
	}
	return time.Until(rows[0][0].(time.Time))
}

func theWaitForALookupDoubles(t *testing.T, w *world) {
	w.held()
	waits := map[time.Duration]bool{}
	for n, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		w.due()
		held, err := w.Store.DueLookups(w.ctx, time.Minute, 5*time.Minute, 10)
		require.NoError(t, err)
		require.Equal(t, n+1, held[0].Lookups)
		wait := w.wait()
		require.LessOrEqual(t, wait, want)
		require.GreaterOrEqual(t, wait, want/2-20*time.Second)
		waits[want-wait.Truncate(time.Millisecond)] = true
	}
	require.Greater(t, len(waits), 1, "each wait is another part of its bound")
	w.exec("UPDATE turns SET lookups = 1000000 WHERE status = 'held'")
	w.due()
	require.Len(t, w.lookups(10), 1)
	require.Positive(t, w.wait())
}

func aReplyOfNobodyIsNeverDue(t *testing.T, w *world) {
	_, claim := w.fresh()
	e := holding(claim, 0)
	e.LookupIn = 0
	w.finish(e)
	w.bury(w.worker)
	w.worker = w.register()
	_, swept := w.fresh()
	w.bury(w.worker)
	s := sweepingAside(swept, 0)
	s.LookupIn = 0
	require.True(t, w.sweep(s))
	w.due()
	require.Empty(t, w.lookups(10))
	require.Len(t, w.heldOf(turns.HeldQuery{Tenant: "tenant", Limit: 10}), 2)
}

func dueLookupsAreBounded(t *testing.T, w *world) {
	w.held()
	_, second := w.held()
	_, third := w.held()
	w.due()
	w.exec("UPDATE turns SET next_lookup_at = (SELECT min(start_time) FROM workers) WHERE id = %s", third.Reply.ID.UUID)
	held := w.lookups(1)
	require.Len(t, held, 1)
	require.Equal(t, third.Reply.ID, held[0].Reply.ID)
	require.Len(t, w.lookups(1), 1)
	held = w.lookups(2)
	require.Len(t, held, 1)
	require.Equal(t, second.Reply.ID, held[0].Reply.ID)
	require.Empty(t, w.lookups(2))
}

func eachLookupIsGivenToOne(t *testing.T, w *world) {
	for range 6 {
		w.held()
	}
	w.due()
	var given, failed atomic.Int64
	atOnce(6, func(int) {
		held, err := w.Store.DueLookups(w.ctx, hour, hour, 3)
		if err != nil {
			failed.Add(1)
		}
		given.Add(int64(len(held)))
	})
	require.Zero(t, failed.Load())
	for more := w.lookups(3); len(more) > 0; more = w.lookups(3) { // some were passed over while another had them locked
		given.Add(int64(len(more)))
	}
	require.EqualValues(t, 6, given.Load())
	require.EqualValues(t, 6, w.count("SELECT count(*) FROM turns WHERE lookups = 1"))
}

func (w *world) wake(key turns.ConversationKey, turn turns.TurnID, generation int32) bool {
	w.t.Helper()
	woken, err := w.Store.WakeLookup(w.ctx, key, turn, generation)
	require.NoError(w.t, err)
	return woken
}

func aLookupIsWoken(t *testing.T, w *world) {
	c, claim := w.held()
	w.held()
	require.True(t, w.wake(c.key, claim.Turn, 1))
	held := w.lookups(10)
	require.Len(t, held, 1)
	require.Equal(t, claim.Reply.ID, held[0].Reply.ID)
	require.True(t, w.wake(c.key, claim.Turn, 0), "whichever generation")
	require.True(t, w.wake(c.key, claim.Turn, 0), "again")
	require.Len(t, w.lookups(10), 1)
}

func nothingElseIsWoken(t *testing.T, w *world) {
	c, claim := w.held()
	running, flying := w.fresh()
	nobody, asked := w.held()
	w.exec("UPDATE turns SET next_lookup_at = NULL WHERE id = %s", asked.Reply.ID.UUID)
	w.unchanged(func() {
		require.False(t, w.wake(c.key, claim.Turn, 2))
		require.False(t, w.wake(c.key, newTurnID(), 0))
		require.False(t, w.wake(foreign(c).key, claim.Turn, 0))
		require.False(t, w.wake(running.key, flying.Turn, 0))
		require.False(t, w.wake(nobody.key, asked.Turn, 0))
	})
}
