package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func (d database) uncommittedReturn(t *testing.T, sql string, e turns.Ending) session {
	t.Helper()
	args, err := returnArgs(e, 0)
	require.NoError(t, err)
	return d.uncommitted(t, sql, args)
}

func (d database) uncommittedRevival(t *testing.T, r turns.Revival) session {
	t.Helper()
	args, err := revivalArgs(r, 0)
	require.NoError(t, err)
	return d.uncommitted(t, revive, args)
}

func salvages(t *testing.T, d database, c turns.Claim) func() (bool, error) {
	return func() (bool, error) { return d.store.Salvage(t.Context(), completing(c)) }
}

func settles(t *testing.T, d database, c turns.Claim) func() (bool, error) {
	return func() (bool, error) { return d.store.Settle(t.Context(), completing(c)) }
}

func revives(t *testing.T, d database, r turns.Revival) func() (bool, error) {
	return func() (bool, error) { return d.store.Revive(t.Context(), r) }
}

// orphaned is a swept first reply, and a living worker.
func (d database) orphaned(t *testing.T) (turns.Claim, turns.WorkerID) {
	t.Helper()
	return d.orphan(t, d.win(t, newClaim(d.worker(t)))), d.worker(t)
}

func TestASalvageThatWaitedForAClaimIsLost(t *testing.T) {
	d := open(t)
	c, living := d.orphaned(t)
	next := again(c)
	next.Reply.Owner = living

	require.False(t, afterWait(t, d, d.uncommittedClaim(t, next), salvages(t, d, c)))
	reply, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	require.NoError(t, err)
	require.Equal(t, turns.ReasonLeaseExpired, reply.Reason)
	require.False(t, reply.Settled, "so that it can still be settled")
	require.Equal(t, 2, d.count(t, `SELECT version FROM conversations`), "the claim's, and no more")

	won, err := settles(t, d, c)()
	require.NoError(t, err)
	require.True(t, won)
}

func TestAClaimThatWaitedForASalvageIsLost(t *testing.T) {
	d := open(t)
	c, living := d.orphaned(t)
	next, later := again(c), after(c)
	next.Reply.Owner, later.Reply.Owner = living, living

	require.False(t, afterWait(t, d, d.uncommittedReturn(t, salvage, completing(c)), claims(t, d, next)))
	won, err := claims(t, d, later)()
	require.NoError(t, err)
	require.False(t, won, "what was built without the salvaged reply is another request")
}

func TestARevivalThatWaitedForAClaimIsLost(t *testing.T) {
	d := open(t)
	c, living := d.orphaned(t)
	next, r := again(c), reviving(c)
	next.Reply.Owner, r.Owner = living, living

	require.False(t, afterWait(t, d, d.uncommittedClaim(t, next), revives(t, d, r)))
	require.Zero(t, d.count(t, `SELECT count(*) FROM reply_chunks`))
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM provider_calls WHERE class = ''`), "the claim's, and no more")
}

func TestAReturnThatWaitedForALaterTurnIsLost(t *testing.T) {
	d := open(t)
	c, living := d.orphaned(t)
	later := after(c)
	later.Reply.Owner = living

	require.False(t, afterWait(t, d, d.uncommittedClaim(t, later), salvages(t, d, c)))
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM turns WHERE reason = 'lease_expired'`))
}

func TestAReturnThatWaitedForAStopIsLost(t *testing.T) {
	d := open(t)
	for _, back := range []func(turns.Claim, turns.WorkerID) func() (bool, error){
		func(c turns.Claim, _ turns.WorkerID) func() (bool, error) { return salvages(t, d, c) },
		func(c turns.Claim, living turns.WorkerID) func() (bool, error) {
			r := reviving(c)
			r.Owner = living
			return revives(t, d, r)
		},
	} {
		c, living := d.orphaned(t)
		require.False(t, afterWait(t, d, d.uncommittedStop(t, c), back(c, living)))
	}
}

func TestARevivalThatWaitedForItsOwnersBurialIsLost(t *testing.T) {
	d := open(t)
	c, living := d.orphaned(t)
	r := reviving(c)
	r.Owner = living
	s := d.begin(t, `UPDATE workers SET dead = true WHERE NOT dead`)

	require.False(t, afterWait(t, d, s, revives(t, d, r)))
	require.Equal(t, 1, d.count(t, `SELECT version FROM conversations`))
}

func TestASweepAndARevivalTakeTurnsByTheEpoch(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	require.NoError(t, d.exec(t.Context(), `UPDATE turns SET deadline_at = now() WHERE role = 'assistant'`))
	sw := sweeping(c)
	sw.Verb, sw.Reason = turns.VerbExpire, turns.ReasonDeadline
	won, err := revives(t, d, reviving(c))()
	require.NoError(t, err)
	require.False(t, won, "it is still in flight")
	sweeps := func(sw turns.Sweeping) func() (bool, error) {
		return func() (bool, error) { return d.store.Sweep(t.Context(), sw) }
	}
	won, err = sweeps(sw)()
	require.NoError(t, err)
	require.True(t, won)

	s := d.uncommittedRevival(t, reviving(c))
	won, err = sweeps(sw)()
	require.NoError(t, err)
	require.False(t, won, "before the revival's commit")
	s.commit()
	won, err = sweeps(sw)()
	require.NoError(t, err)
	require.False(t, won, "and after it")

	reply, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	require.NoError(t, err)
	require.Equal(t, turns.StatusInFlight, reply.Status)
	require.EqualValues(t, 2, reply.Epoch)
	require.Equal(t, tail(c).Pieces, reply.Content)
}

func TestASettlementThatWaitedForARevivalIsLost(t *testing.T) {
	d := open(t)
	c, living := d.orphaned(t)
	r := reviving(c)
	r.Owner = living

	require.False(t, afterWait(t, d, d.uncommittedRevival(t, r), settles(t, d, c)))
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM provider_calls WHERE class = ''`), "its call is open again")
}

func TestWhatWaitedForASettlementIsLost(t *testing.T) {
	d := open(t)
	for _, late := range []func(*testing.T, database, turns.Claim) func() (bool, error){settles, salvages} {
		c, _ := d.orphaned(t)
		require.False(t, afterWait(t, d, d.uncommittedReturn(t, settle, completing(c)), late(t, d, c)))
		require.Equal(t, 1, d.count(t, `SELECT version FROM conversations WHERE conversation_key = $1`, [16]byte(c.Key)))
	}
}

func TestASettlementNeverWaitsForItsConversation(t *testing.T) {
	d := open(t)
	c, _ := d.orphaned(t)
	s := d.begin(t, `SELECT 1 FROM conversations FOR UPDATE`)

	a := await(t, start(settles(t, d, c)))
	require.NoError(t, a.err)
	require.True(t, a.value)
	s.commit()
}

func TestOneLogBeginsWithAnother(t *testing.T) {
	text := func(block uint32, text string, ends bool) turns.Piece {
		return turns.Piece{Block: block, Kind: turns.KindText, Starts: true, Text: text, Ends: ends}
	}
	tool := turns.Piece{Kind: turns.KindToolUse, Starts: true, ToolUseID: "1", ToolName: "n"}
	other := tool
	other.ToolUseID = "2"
	type log = []turns.Piece
	for _, c := range []struct {
		long, short log
		begins      bool
	}{
		{nil, nil, true},
		{log{text(0, "ab", true)}, nil, true},
		{nil, log{text(0, "", false)}, false},
		{log{text(0, "ab", false)}, log{text(0, "ab", false)}, true},
		{log{text(0, "abé", true)}, log{text(0, "ab", false)}, true},
		{log{text(0, "ab", true), text(1, "c", false)}, log{text(0, "ab", false)}, true},
		{log{text(0, "ab", true), text(1, "c", false)}, log{text(0, "ab", true)}, true},
		{log{text(0, "abc", true)}, log{text(0, "ab", true)}, false},
		{log{text(0, "ab", false)}, log{text(0, "ab", true)}, false},
		{log{text(0, "a", true)}, log{text(0, "ab", false)}, false},
		{log{text(0, "é", true)}, log{text(0, "è", false)}, false},
		{log{tool}, log{tool}, true},
		{log{other}, log{tool}, false},
		{log{tool}, log{text(0, "", false)}, false},
	} {
		long, err := turns.LogOf(c.long)
		require.NoError(t, err)
		short, err := turns.LogOf(c.short)
		require.NoError(t, err)
		require.Equal(t, c.begins, begins(long, short), "%v begins with %v", c.long, c.short)
	}
}
