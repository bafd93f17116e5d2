package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// unstorable is text that this engine can't store.
const unstorable = "a\x00b"

// three is three claims that were won, the second of which the tests spoil something of.
func (d database) three(t *testing.T) []turns.Claim {
	t.Helper()
	worker := d.worker(t)
	return []turns.Claim{d.win(t, newClaim(worker)), d.win(t, newClaim(worker)), d.win(t, newClaim(worker))}
}

func TestACheckpointThatCantBeStoredIsNotHeldAndTheOthersAreStored(t *testing.T) {
	d := open(t)
	claims := d.three(t)
	batch := column(claims, func(c *turns.Claim) turns.Checkpoint { return tail(*c) })
	batch[1].ResponseID = unstorable
	results, err := d.store.Checkpoint(t.Context(), batch)
	require.NoError(t, err)
	require.Equal(t, []turns.CheckpointResult{{Held: true}, {}, {Held: true}}, results)
	require.Equal(t, 2, d.count(t, `SELECT count(*) FROM reply_chunks`))

	results, err = d.store.Checkpoint(t.Context(), batch[1:2])
	require.NoError(t, err)
	require.Equal(t, []turns.CheckpointResult{{}}, results, "alone too")
	row, err := d.store.ReadReply(t.Context(), claims[1].Key, claims[1].Reply.ID)
	require.NoError(t, err)
	require.Equal(t, turns.StatusInFlight, row.Status)
	require.Zero(t, row.Length)
}

func TestAnEndingThatCantBeStoredFailsBesideTheResultsOfTheOthers(t *testing.T) {
	d := open(t)
	batch := column(d.three(t), func(c *turns.Claim) turns.Ending { return completing(*c) })
	batch[1].ProviderCode = unstorable
	results, err := d.store.End(t.Context(), batch)
	require.ErrorContains(t, err, "SQLSTATE 22")
	require.Equal(t, []bool{true, false, true}, column(results, func(r *turns.EndResult) bool { return r.Won }))
	require.Equal(t, 2, d.count(t, `SELECT count(*) FROM turns WHERE status = 'complete'`))
}

func TestAPermitThatCantBeStoredFailsBesideTheResultsOfTheOthers(t *testing.T) {
	d := open(t)
	batch := column(d.three(t), func(c *turns.Claim) turns.CallPermit { return permitFor(*c) })
	batch[1].Call.Key = unstorable
	results, err := d.store.PermitCalls(t.Context(), batch)
	require.ErrorContains(t, err, "SQLSTATE 22")
	require.Equal(t, []turns.PermitResult{{Granted: true, Calls: 2}, {}, {Granted: true, Calls: 2}}, results)
	require.Equal(t, 5, d.count(t, `SELECT count(*) FROM provider_calls`))
}

func TestAnOutcomeThatCantBeStoredFailsAndTheOthersAreStored(t *testing.T) {
	d := open(t)
	batch := column(d.three(t), func(c *turns.Claim) turns.CallOutcome { return *completing(*c).Call })
	batch[1].RequestID = unstorable
	require.ErrorContains(t, d.store.CloseCalls(t.Context(), batch), "SQLSTATE 22")
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM provider_calls WHERE class = ''`))
}

func TestAClaimThatCantBeStoredFailsBesideTheResultsOfTheOthers(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	batch := []turns.Claim{newClaim(worker), newClaim(worker), newClaim(worker), newClaim(worker)}
	batch[1].Subject = unstorable
	batch[2].NewTurn.Parent = newClaim(worker).Turn.Row()
	results, err := d.store.Claim(t.Context(), batch)
	require.ErrorContains(t, err, "SQLSTATE 22")
	require.ErrorIs(t, err, &turns.Error{Code: turns.CodeNotFound})
	require.Equal(t, []bool{true, false, false, true}, column(results, func(r *turns.ClaimResult) bool { return r.Won }))
	require.Equal(t, 2, d.count(t, `SELECT count(*) FROM conversations`))
}
