package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// held is a claim whose reply is held, due to be asked for.
func (d database) held(t *testing.T) turns.Claim {
	t.Helper()
	c := d.win(t, newClaim(d.worker(t)))
	require.NoError(t, d.setHeld(t, c))
	require.NoError(t, d.exec(t.Context(), `UPDATE turns SET next_lookup_at = create_time WHERE status = 'held'`))
	return c
}

func TestAnAdoptionThatWaitedForAStopIsLost(t *testing.T) {
	d := open(t)
	c := d.held(t)
	s := d.begin(t, `UPDATE turns SET cancel_requested = true WHERE role = 'assistant'`)

	result := afterWait(t, d, s, func() (turns.EndResult, error) { return d.store.ResolveHeld(t.Context(), adopting(c)) })
	require.Zero(t, result)
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM provider_calls WHERE class = ''`), "nor is its call closed")
}

func TestANoteThatWaitedForATakeoverIsNotTaken(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `UPDATE turns SET epoch = 2, owner = gen_random_uuid() WHERE role = 'assistant'`)

	results := afterWait(t, d, s, func() ([]turns.NoteResult, error) {
		return d.store.NoteCalls(t.Context(), []turns.CallNote{{Fence: fenceOf(c), Call: c.Call.ID, Session: "s"}})
	})
	require.Equal(t, []turns.NoteResult{{}}, results)
	require.Zero(t, d.count(t, `SELECT count(*) FROM provider_calls WHERE session <> ''`))
}

func TestAReplacementThatWaitedForAnEndingLeavesNothing(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `UPDATE turns SET status = 'complete', end_time = now() WHERE role = 'assistant'`)

	result := afterWait(t, d, s, func() (turns.ClaimResult, error) { return d.store.Replace(t.Context(), replacing(c, 1)) })
	require.Zero(t, result)
	require.Equal(t, 2, d.count(t, `SELECT count(*) FROM turns`))
	require.Equal(t, 1, d.count(t, `SELECT version FROM conversations`))
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM provider_calls WHERE class = ''`))
}

func TestAReplacementWhoseClaimIsLostLeavesItsReplyAsItWas(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	r := replacing(c, 1)
	r.Claim.Reply.ID = c.Reply.ID // the key of another row, which the claim alone notices

	result, err := d.store.Replace(t.Context(), r)
	require.NoError(t, err)
	require.Zero(t, result)
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM turns WHERE status = 'in_flight' AND replaced_by IS NULL`))
}

// As a claim does: so the two can't wait for each other.
func TestAReplacementLocksItsConversationBeforeItsReply(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	for _, rows := range []string{`conversations`, `turns WHERE role = 'user'`} {
		s := d.begin(t, `SELECT 1 FROM `+rows+` FOR UPDATE`)
		r := replacing(c, 1)
		r.Ending.StoredLength = 9 // so that it is lost, and can be tried again
		done := start(func() (turns.ClaimResult, error) { return d.store.Replace(t.Context(), r) })
		d.waiting(t)
		free := d.count(t, `SELECT count(*) FROM (SELECT 1 FROM turns WHERE role = 'assistant' FOR UPDATE SKIP LOCKED) f`)
		require.Equal(t, 1, free, rows)
		s.commit()
		a := await(t, done)
		require.NoError(t, a.err)
		require.Zero(t, a.value)
	}
}

func TestALookupThatAnotherHasLockedIsPassedOver(t *testing.T) {
	d := open(t)
	first, second := d.held(t), d.held(t)
	s := d.begin(t, `SELECT 1 FROM turns WHERE id = $1 FOR UPDATE`, [16]byte(first.Reply.ID.UUID))
	a := await(t, start(func() ([]turns.HeldReply, error) {
		return d.store.DueLookups(t.Context(), time.Hour, time.Hour, 10)
	}))
	require.NoError(t, a.err)
	require.Len(t, a.value, 1)
	require.Equal(t, second.Reply.ID, a.value[0].Reply.ID)
	s.commit()
}
