package postgres

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// uncommittedClaim is a claim that another worker has sent and whose commit hangs.
func (d database) uncommittedClaim(t *testing.T, c turns.Claim) session {
	t.Helper()
	args, err := claimArgs([]turns.Claim{c})
	require.NoError(t, err)
	s := d.begin(t, "SELECT 1")
	require.EqualValues(t, 1, s.exec(claim, args).RowsAffected(), "the claim is won but for its commit")
	return s
}

func claims(t *testing.T, d database, c turns.Claim) func() (bool, error) {
	return func() (bool, error) {
		results, err := d.store.Claim(t.Context(), []turns.Claim{c})
		return len(results) == 1 && results[0].Won, err
	}
}

func TestAClaimThatWaitedForAnotherOfItsConversationIsLost(t *testing.T) {
	d := open(t)
	first := d.win(t, newClaim(d.worker(t)))
	_, err := d.store.End(t.Context(), []turns.Ending{completing(first)})
	require.NoError(t, err)
	one, other := after(first), after(first)

	require.False(t, afterWait(t, d, d.uncommittedClaim(t, one), claims(t, d, other)))
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM turns WHERE status = 'in_flight'`))
	require.Equal(t, 4, d.count(t, `SELECT count(*) FROM turns`), "the lost turn left nothing")
}

func TestAClaimThatWaitedForTheSameNewConversationIsLost(t *testing.T) {
	d := open(t)
	one := newClaim(d.worker(t))
	other := newClaim(one.Reply.Owner)
	other.Key, other.Conversation = one.Key, one.Conversation

	require.False(t, afterWait(t, d, d.uncommittedClaim(t, one), claims(t, d, other)))
	require.Equal(t, 2, d.count(t, `SELECT count(*) FROM turns`))
}

func TestAClaimSentAgainWaitsForTheLostOneAndTheRowIsOurs(t *testing.T) {
	d := open(t)
	c := newClaim(d.worker(t))

	require.False(t, afterWait(t, d, d.uncommittedClaim(t, c), claims(t, d, c)))
	reply, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	require.NoError(t, err)
	require.Equal(t, c.Reply.Owner, reply.Owner)
	require.Equal(t, turns.StatusInFlight, reply.Status)
}

func TestAClaimThatWaitedForADeleteIsLost(t *testing.T) {
	d := open(t)
	first := d.win(t, newClaim(d.worker(t)))
	_, err := d.store.End(t.Context(), []turns.Ending{completing(first)})
	require.NoError(t, err)

	s := d.begin(t, `UPDATE conversations SET deleted_at = now()`)
	require.False(t, afterWait(t, d, s, claims(t, d, after(first))))
}

func TestAClaimThatWaitedForItsOwnersBurialIsLost(t *testing.T) {
	d := open(t)
	c := newClaim(d.worker(t))

	s := d.begin(t, `UPDATE workers SET dead = true`)
	require.False(t, afterWait(t, d, s, claims(t, d, c)))
	require.Zero(t, d.count(t, `SELECT count(*) FROM conversations`))
}

func TestABurialWaitsForAClaimUnderWayAndARenewalDoesNot(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	s := d.uncommittedClaim(t, newClaim(worker))
	require.NoError(t, d.store.RenewLease(t.Context(), worker, 0), "the renewal is let through")

	buried := afterWait(t, d, s, func() ([]turns.WorkerID, error) { return d.store.BuryWorkers(t.Context()) })
	require.Equal(t, []turns.WorkerID{worker}, buried)
	stale, err := d.store.StaleReplies(t.Context(), turns.StaleQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, stale, 1, "what was claimed before the burial is there to be swept")
}

func TestAWorkerThatRenewedWhileItsBurialWaitedLives(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	require.NoError(t, d.exec(t.Context(), `UPDATE workers SET lease_until = start_time`))

	s := d.begin(t, `UPDATE workers SET lease_until = now() + interval '1 hour'`)
	buried := afterWait(t, d, s, func() ([]turns.WorkerID, error) { return d.store.BuryWorkers(t.Context()) })
	require.Empty(t, buried)
	require.NoError(t, d.store.RenewLease(t.Context(), worker, time.Hour))
}

func TestARenewalThatWaitedForItsBurialIsToldSo(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	s := d.begin(t, `UPDATE workers SET dead = true`)
	done := start(func() (int, error) { return 0, d.store.RenewLease(t.Context(), worker, time.Hour) })
	d.waiting(t)
	s.commit()
	require.ErrorIs(t, await(t, done).err, turns.ErrBuried)
}

func TestACheckpointThatWaitedForATakeoverWritesNothing(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `UPDATE turns SET epoch = 2, owner = gen_random_uuid() WHERE role = 'assistant'`)

	results := afterWait(t, d, s, func() ([]turns.CheckpointResult, error) {
		return d.store.Checkpoint(t.Context(), []turns.Checkpoint{tail(c)})
	})
	require.Equal(t, []turns.CheckpointResult{{}}, results)
	require.Zero(t, d.count(t, `SELECT count(*) FROM reply_chunks`))
}

func TestACheckpointThatWaitedForACancelLearnsOfIt(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `UPDATE turns SET cancel_requested = true WHERE role = 'assistant'`)

	results := afterWait(t, d, s, func() ([]turns.CheckpointResult, error) {
		return d.store.Checkpoint(t.Context(), []turns.Checkpoint{tail(c)})
	})
	require.Equal(t, []turns.CheckpointResult{{Held: true, CancelRequested: true}}, results)
}

func TestAPermitThatWaitedForACancelIsRefused(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `UPDATE turns SET cancel_requested = true WHERE role = 'assistant'`)

	results := afterWait(t, d, s, func() ([]turns.PermitResult, error) {
		return d.store.PermitCalls(t.Context(), []turns.CallPermit{permitFor(c)})
	})
	require.Equal(t, []turns.PermitResult{{}}, results)
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM provider_calls`))
}

// uncommittedCheckpoint is the checkpoint of tail, sent and not committed.
func (d database) uncommittedCheckpoint(t *testing.T, c turns.Claim) session {
	t.Helper()
	cp := tail(c)
	pieces, err := encodeLogs([][]turns.Piece{cp.Pieces})
	require.NoError(t, err)
	s := d.begin(t, `UPDATE turns SET log_len = $3 WHERE conversation_key = $1 AND id = $2`,
		[16]byte(c.Key), [16]byte(c.Reply.ID.UUID), int64(cp.To))
	s.exec(`INSERT INTO reply_chunks VALUES ($1, $2, 0, $3, $4)`,
		[16]byte(c.Key), [16]byte(c.Reply.ID.UUID), int64(cp.To), pieces[0])
	return s
}

func TestASweepThatWaitedForACheckpointLosesNoByteOfIt(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	require.NoError(t, d.store.RetireWorker(t.Context(), c.Reply.Owner))

	won := afterWait(t, d, d.uncommittedCheckpoint(t, c), func() (bool, error) { return d.store.Sweep(t.Context(), sweeping(c)) })
	require.False(t, won)
	reply, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
	require.NoError(t, err)
	require.Equal(t, tail(c).Pieces, reply.Content)
}

func TestAnEndingThatWaitedForACheckpointIsLost(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))

	results := afterWait(t, d, d.uncommittedCheckpoint(t, c), func() ([]turns.EndResult, error) {
		return d.store.End(t.Context(), []turns.Ending{completing(c)})
	})
	require.Equal(t, []turns.EndResult{{}}, results)
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM provider_calls WHERE class = ''`), "nor is its call closed")
}

func TestACheckpointSentAgainWaitsForTheLostOneAndIsHeldOnce(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))

	results := afterWait(t, d, d.uncommittedCheckpoint(t, c), func() ([]turns.CheckpointResult, error) {
		return d.store.Checkpoint(t.Context(), []turns.Checkpoint{tail(c)})
	})
	require.Equal(t, []turns.CheckpointResult{{Held: true}}, results)
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM reply_chunks`))
}

func TestAPermitSentAgainIsGrantedAndCountsOnce(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	p := permitFor(c)
	granted := []turns.PermitResult{{Granted: true, Calls: 2}}
	permits := func() ([]turns.PermitResult, error) { return d.store.PermitCalls(t.Context(), []turns.CallPermit{p}) }

	lost := d.begin(t, `UPDATE turns SET calls = 2 WHERE role = 'assistant'`)
	lost.exec(`INSERT INTO provider_calls (conversation_key, call_id, tenant, conversation_id, turn_id, generation, reply_id,
		epoch, number, first, layer, endpoint, provider, model, idempotency_key, request_bytes, create_time)
		SELECT conversation_key, $1, tenant, conversation_id, turn_id, generation, reply_id, epoch, 2, false, 'provider', endpoint,
		provider, model, idempotency_key, request_bytes, create_time FROM provider_calls`, [16]byte(p.Call.ID.UUID))
	require.Equal(t, granted, afterWait(t, d, lost, permits), "while the lost one was under way")

	results, err := permits()
	require.NoError(t, err)
	require.Equal(t, granted, results, "and after it")
	require.Equal(t, 2, d.count(t, `SELECT calls FROM turns WHERE role = 'assistant'`))
	require.Equal(t, 2, d.count(t, `SELECT count(*) FROM provider_calls`))
}

func TestAnEndingNeverWaitsForItsConversation(t *testing.T) {
	d := open(t)
	c := d.win(t, newClaim(d.worker(t)))
	s := d.begin(t, `SELECT 1 FROM conversations FOR UPDATE`)

	a := await(t, start(func() ([]turns.EndResult, error) { return d.store.End(t.Context(), []turns.Ending{completing(c)}) }))
	require.NoError(t, a.err)
	require.True(t, a.value[0].Won)
	s.commit()
}

func TestAConflictWithTheLiveSlotLeavesTheConversationWhereItWas(t *testing.T) {
	d := open(t)
	first := d.win(t, newClaim(d.worker(t)))
	_, err := d.store.End(t.Context(), []turns.Ending{completing(first)})
	require.NoError(t, err)
	second := after(first)
	second.NewTurn, second.Turn, second.Reply.Attempt = nil, first.Turn, 2

	won, err := claims(t, d, second)()
	require.NoError(t, err)
	require.False(t, won, "the turn has a live reply")
	require.Equal(t, 1, d.count(t, `SELECT version FROM conversations`))

	beside := newClaim(first.Reply.Owner)
	results, err := d.store.Claim(t.Context(), []turns.Claim{second, beside})
	require.NoError(t, err)
	require.False(t, results[0].Won)
	require.True(t, results[1].Won, "a batch is not undone by the one that lost")
}

// A batch that meets a locked row must already hold the rows with smaller keys and none with greater ones, in whatever
// order its items come: then two batches can't wait for each other.
func TestABatchLocksItsRowsInKeyOrder(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	low, high := d.win(t, newClaim(worker)), d.win(t, newClaim(worker))
	if bytes.Compare(low.Key[:], high.Key[:]) > 0 {
		low, high = high, low
	}
	batch := []turns.Claim{high, low}
	const reply, call = `turns WHERE role = 'assistant' AND conversation_key = $1`, `provider_calls WHERE number = 1 AND conversation_key = $1`
	for _, b := range []struct {
		name, rows string
		send       func() error
	}{
		{"permit", reply, func() error {
			_, err := d.store.PermitCalls(t.Context(), column(batch, func(c *turns.Claim) turns.CallPermit { return permitFor(*c) }))
			return err
		}},
		{"close", call, func() error {
			return d.store.CloseCalls(t.Context(), column(batch, func(c *turns.Claim) turns.CallOutcome { return *completing(*c).Call }))
		}},
		{"checkpoint", reply, func() error {
			_, err := d.store.Checkpoint(t.Context(), column(batch, func(c *turns.Claim) turns.Checkpoint { return tail(*c) }))
			return err
		}},
		{"end", reply, func() error {
			endings := column(batch, func(c *turns.Claim) turns.Ending { return completing(*c) })
			endings[0].StoredLength, endings[1].StoredLength = 3, 3
			_, err := d.store.End(t.Context(), endings)
			return err
		}},
	} {
		s := d.begin(t, `SELECT 1 FROM `+b.rows+` FOR UPDATE`, [16]byte(high.Key))
		done := start(func() (int, error) { return 0, b.send() })
		d.waiting(t)
		free := d.count(t, `SELECT count(*) FROM (SELECT 1 FROM `+b.rows+` FOR UPDATE SKIP LOCKED) f`, [16]byte(low.Key))
		require.Zero(t, free, "%s: the smaller key is locked already", b.name)
		s.commit()
		require.NoError(t, await(t, done).err, b.name)
	}
}
