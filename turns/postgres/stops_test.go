package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// uncommitted is one of the store's statements that another worker has sent, which changed its rows and whose commit
// hangs.
func (d database) uncommitted(t *testing.T, sql string, args pgx.NamedArgs) session {
	t.Helper()
	s := d.begin(t, "SELECT 1")
	require.EqualValues(t, 1, s.exec(sql, args).RowsAffected(), "the statement is won but for its commit")
	return s
}

func (d database) uncommittedStop(t *testing.T, c turns.Claim) session {
	t.Helper()
	return d.uncommitted(t, requestStop, stopArgs(c.Key, c.Turn, 0, turns.TurnID{}))
}

func stops(t *testing.T, d database, c turns.Claim) func() (turns.Reply, error) {
	return func() (turns.Reply, error) { return d.store.RequestStop(t.Context(), c.Key, c.Turn, 0, turns.TurnID{}) }
}

func selects(t *testing.T, d database, s turns.Selection) func() (bool, error) {
	return func() (bool, error) { return d.store.Select(t.Context(), s) }
}

// choosing makes a superseded claim's reply live in the place of the claim that superseded it.
func choosing(old, live turns.Claim) turns.Selection {
	return turns.Selection{Key: old.Key, ExpectVersion: live.ExpectVersion + 1, Turn: old.Turn, Select: old.Reply.ID, Supersede: live.Reply.ID}
}

func TestAStopThatWaitedForAClaimStopsWhatWasClaimed(t *testing.T) {
	d := open(t)
	first := d.orphan(t, d.win(t, newClaim(d.worker(t))))
	second := again(first)
	second.Reply.Owner = d.worker(t)

	reply := afterWait(t, d, d.uncommittedClaim(t, second), stops(t, d, first))
	require.Equal(t, second.Reply.ID, reply.ID, "which is not in the snapshot that the stop began with")
	require.True(t, reply.CancelRequested)
	results, err := d.store.Checkpoint(t.Context(), []turns.Checkpoint{tail(second)})
	require.NoError(t, err)
	require.Equal(t, []turns.CheckpointResult{{Held: true, CancelRequested: true}}, results)
}

func TestAStopThatWaitedForARegenerateStopsItsGeneration(t *testing.T) {
	d := open(t)
	first := d.complete(t, d.win(t, newClaim(d.worker(t))))
	second := regenerating(first)

	reply := afterWait(t, d, d.uncommittedClaim(t, second), stops(t, d, first))
	require.Equal(t, second.Reply.ID, reply.ID)
	require.True(t, reply.CancelRequested)
	require.Equal(t, 2, d.count(t, `SELECT cancelled_generation FROM turns WHERE role = 'user'`))
}

func TestAStopThatWaitedForACompletionLeavesItAlone(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	args, err := endingArgs([]turns.Ending{completing(c)})
	require.NoError(t, err)

	reply := afterWait(t, d, d.uncommitted(t, end, args), stops(t, d, c))
	require.Equal(t, turns.StatusComplete, reply.Status)
	require.False(t, reply.CancelRequested)
	require.Zero(t, d.count(t, `SELECT cancelled_generation FROM turns WHERE role = 'user'`))
	require.Equal(t, 1, d.count(t, `SELECT version FROM conversations`))
}

func TestAStopThatWaitedForASweepBindsTheNextAttempt(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `UPDATE turns SET status = 'abandoned', reason = 'lease_expired', end_time = now() WHERE role = 'assistant'`)

	reply := afterWait(t, d, s, stops(t, d, c))
	require.Equal(t, turns.ReasonLeaseExpired, reply.Reason)
	next := again(c)
	next.ExpectVersion++
	won, err := claims(t, d, next)()
	require.NoError(t, err)
	require.False(t, won)
}

func TestAClaimThatWaitedForAStopIsLost(t *testing.T) {
	d := open(t)
	c := d.orphan(t, d.win(t, newClaim(d.worker(t))))
	next := again(c)
	next.Reply.Owner = d.worker(t)

	require.False(t, afterWait(t, d, d.uncommittedStop(t, c), claims(t, d, next)))
	require.Equal(t, 2, d.count(t, `SELECT count(*) FROM turns`))
}

// The version alone refuses most claims of a stopped generation; this one is refused by its user turn.
func TestAClaimLooksAtTheStopUnderTheLockOfItsTurn(t *testing.T) {
	d := open(t)
	c := d.orphan(t, d.win(t, newClaim(d.worker(t))))
	next := again(c)
	next.Reply.Owner = d.worker(t)
	s := d.begin(t, `UPDATE turns SET cancelled_generation = 1 WHERE role = 'user'`)

	require.False(t, afterWait(t, d, s, claims(t, d, next)))
	require.Equal(t, 1, d.count(t, `SELECT version FROM conversations`), "nothing of it is written")
}

func TestARegenerateLooksAtWhatItSupersedesUnderItsLock(t *testing.T) {
	d := open(t)
	c := d.complete(t, d.win(t, newClaim(d.worker(t))))
	s := d.begin(t, `UPDATE turns SET status = 'abandoned', reason = 'superseded' WHERE role = 'assistant'`)

	require.False(t, afterWait(t, d, s, claims(t, d, regenerating(c))))
	require.Equal(t, 1, d.count(t, `SELECT version FROM conversations`), "nothing of it is written")
	require.Zero(t, d.count(t, `SELECT slot_version FROM turns WHERE role = 'user'`))
}

func TestASelectThatWaitedForARegenerateIsLost(t *testing.T) {
	d := open(t)
	first := d.complete(t, d.win(t, newClaim(d.worker(t))))
	second := d.complete(t, d.win(t, regenerating(first)))
	third := regenerating(second)
	third.NextSeq = second.NextSeq + 1

	require.False(t, afterWait(t, d, d.uncommittedClaim(t, third), selects(t, d, choosing(first, second))))
	require.Equal(t, 2, d.count(t, `SELECT count(*) FROM turns WHERE reason = 'superseded'`))
}

func TestARegenerateThatWaitedForASelectIsLost(t *testing.T) {
	d := open(t)
	first := d.complete(t, d.win(t, newClaim(d.worker(t))))
	second := d.complete(t, d.win(t, regenerating(first)))
	third := regenerating(second)
	third.NextSeq = second.NextSeq + 1

	require.False(t, afterWait(t, d, d.uncommitted(t, selectReply, selectArgs(choosing(first, second))), claims(t, d, third)))
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM turns WHERE status = 'complete'`))
}

// One update of two rows meets the unique index in whatever order the rows lie; this must be won in both.
func TestASelectIsWonInWhateverOrderItsRowsLie(t *testing.T) {
	d := open(t)
	first := d.complete(t, d.win(t, newClaim(d.worker(t))))
	second := d.complete(t, d.win(t, regenerating(first)))
	there, back := choosing(first, second), choosing(second, first)
	for version := second.ExpectVersion + 1; version < 8; version += 2 {
		there.ExpectVersion, back.ExpectVersion = version, version+1
		for _, sel := range []turns.Selection{there, back} {
			won, err := selects(t, d, sel)()
			require.NoError(t, err)
			require.True(t, won)
		}
	}
}

// Whoever locks rows of a conversation locks it first, so that no two of them wait for each other.
func TestTheConversationIsLockedBeforeItsTurns(t *testing.T) {
	d := open(t)
	living := d.worker(t)
	for _, c := range []struct {
		name string
		end  func(testing.TB, turns.Claim) turns.Claim
		send func(first, second turns.Claim) func() (bool, error)
	}{
		{"claim", d.orphan, func(_, second turns.Claim) func() (bool, error) {
			next := again(second)
			next.NextSeq, next.Reply.Owner = second.NextSeq+1, living
			return claims(t, d, next)
		}},
		{"regenerate", d.complete, func(_, second turns.Claim) func() (bool, error) {
			next := regenerating(second)
			next.NextSeq = second.NextSeq + 1
			return claims(t, d, next)
		}},
		{"select", d.complete, func(first, second turns.Claim) func() (bool, error) { return selects(t, d, choosing(first, second)) }},
		{"stop", d.orphan, func(first, _ turns.Claim) func() (bool, error) {
			return func() (bool, error) { _, err := stops(t, d, first)(); return true, err }
		}},
		{"revive", d.orphan, func(_, second turns.Claim) func() (bool, error) {
			r := reviving(second)
			r.Owner = living
			return revives(t, d, r)
		}},
		{"salvage", d.orphan, func(_, second turns.Claim) func() (bool, error) { return salvages(t, d, second) }},
	} {
		first := d.complete(t, d.win(t, newClaim(d.worker(t))))
		second := c.end(t, d.win(t, regenerating(first)))
		s := d.begin(t, `SELECT 1 FROM conversations WHERE conversation_key = $1 FOR UPDATE`, [16]byte(first.Key))
		done := start(c.send(first, second))
		d.waiting(t)
		require.Equal(t, 3, d.count(t, `SELECT count(*) FROM (SELECT 1 FROM turns WHERE conversation_key = $1
			FOR UPDATE SKIP LOCKED) free`, [16]byte(first.Key)), c.name)
		s.commit()
		a := await(t, done)
		require.NoError(t, a.err, c.name)
		require.True(t, a.value, c.name)
	}
}
