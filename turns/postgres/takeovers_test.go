package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// takingOver gives a claim's reply, of which nothing is stored, to another worker.
func takingOver(c turns.Claim, owner turns.WorkerID) turns.Takeover {
	return turns.Takeover{Fence: fenceOf(c), Owner: owner, MaxCalls: 5, Closed: []turns.CallOutcome{*completing(c).Call},
		Call: turns.NewCall{ID: turns.CallID{UUID: uuid.New()}, Number: 2, Key: "k", RequestBytes: 100}}
}

// restoring is a reply that a failover lost, beside a claim that was won.
func restoring(c turns.Claim) turns.LostReply {
	l := turns.LostReply{Key: c.Key, Tenant: c.Tenant, Conversation: c.Conversation, ExpectVersion: c.ExpectVersion + 1,
		NextSeq: c.NextSeq + 2, Turn: c.Turn, Reply: c.Reply, Ending: completing(c),
		Calls:    []turns.NewCall{{ID: turns.CallID{UUID: uuid.New()}, Number: 1, First: true, Key: "k", RequestBytes: 100}},
		Outcomes: []turns.CallOutcome{*completing(c).Call}}
	l.Reply.ID, l.Reply.Attempt = turns.ReplyID{UUID: uuid.New()}, c.Reply.Attempt+1
	l.Ending.Status, l.Ending.Reason = turns.StatusAbandoned, turns.ReasonLeaseExpired
	return l
}

func takesOver(t *testing.T, d database, v turns.Takeover) func() (bool, error) {
	return func() (bool, error) {
		result, err := d.store.TakeOver(t.Context(), v)
		return result.Won, err
	}
}

func restores(t *testing.T, d database, l turns.LostReply) func() (bool, error) {
	return func() (bool, error) { return d.store.Restore(t.Context(), l) }
}

func (d database) uncommittedTakeover(t *testing.T, v turns.Takeover) session {
	t.Helper()
	return d.uncommitted(t, takeOver, takeoverArgs(v))
}

// deserted is a reply in flight whose owner is dead, and a living worker.
func (d database) deserted(t *testing.T) (turns.Claim, turns.WorkerID) {
	t.Helper()
	c := d.win(t, newClaim(d.worker(t)))
	require.NoError(t, d.store.RetireWorker(t.Context(), c.Reply.Owner))
	return c, d.worker(t)
}

func TestATakeoverThatWaitedIsLost(t *testing.T) {
	for name, begin := range map[string]func(database, turns.Claim, turns.WorkerID) session{
		"for a stop": func(d database, c turns.Claim, _ turns.WorkerID) session { return d.uncommittedStop(t, c) },
		"for a stop of its generation alone": func(d database, c turns.Claim, _ turns.WorkerID) session {
			return d.begin(t, `UPDATE turns SET cancelled_generation = 1 WHERE role = 'user'`)
		},
		"for another takeover": func(d database, c turns.Claim, _ turns.WorkerID) session {
			return d.uncommittedTakeover(t, takingOver(c, d.worker(t)))
		},
		"for a checkpoint": func(d database, c turns.Claim, _ turns.WorkerID) session { return d.uncommittedCheckpoint(t, c) },
		"for an ending": func(d database, c turns.Claim, _ turns.WorkerID) session {
			args, err := endingArgs([]turns.Ending{completing(c)})
			require.NoError(t, err)
			return d.uncommitted(t, end, args)
		},
		"for its new owner's burial": func(d database, _ turns.Claim, living turns.WorkerID) session {
			return d.begin(t, `UPDATE workers SET dead = true WHERE worker_id = $1`, [16]byte(living.UUID))
		},
		"for a deletion": func(d database, _ turns.Claim, _ turns.WorkerID) session {
			return d.begin(t, `UPDATE conversations SET deleted_at = now()`)
		},
		"until the deadline had passed": func(d database, _ turns.Claim, _ turns.WorkerID) session {
			return d.begin(t, `UPDATE turns SET deadline_at = create_time WHERE role = 'assistant'`)
		},
		"until the calls were spent": func(d database, _ turns.Claim, _ turns.WorkerID) session {
			return d.begin(t, `UPDATE turns SET calls = 5 WHERE role = 'assistant'`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			c, living := d.deserted(t)
			v := takingOver(c, living)
			require.False(t, afterWait(t, d, begin(d, c, living), takesOver(t, d, v)))
			require.Zero(t, d.count(t, `SELECT count(*) FROM turns WHERE owner = $1`, [16]byte(living.UUID)))
			require.Zero(t, d.count(t, `SELECT count(*) FROM provider_calls WHERE call_id = $1`, [16]byte(v.Call.ID.UUID)))
		})
	}
}

func TestWhatWaitedForATakeoverIsLost(t *testing.T) {
	for name, late := range map[string]func(database, turns.Claim) func() (bool, error){
		"a sweep": func(d database, c turns.Claim) func() (bool, error) {
			return func() (bool, error) { return d.store.Sweep(t.Context(), sweeping(c)) }
		},
		"a checkpoint": func(d database, c turns.Claim) func() (bool, error) {
			return func() (bool, error) {
				results, err := d.store.Checkpoint(t.Context(), []turns.Checkpoint{tail(c)})
				return results[0].Held, err
			}
		},
		"an ending": func(d database, c turns.Claim) func() (bool, error) {
			return func() (bool, error) {
				results, err := d.store.End(t.Context(), []turns.Ending{completing(c)})
				return results[0].Won, err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			c, living := d.deserted(t)
			require.False(t, afterWait(t, d, d.uncommittedTakeover(t, takingOver(c, living)), late(d, c)))
			reply, err := d.store.ReadReply(t.Context(), c.Key, c.Reply.ID)
			require.NoError(t, err)
			require.Equal(t, []any{turns.StatusInFlight, int64(2), living, 2}, []any{reply.Status, reply.Epoch, reply.Owner, reply.Calls})
		})
	}
}

func TestABurialWaitsForATakeoverUnderWay(t *testing.T) {
	d := open(t)
	c, living := d.deserted(t)
	s := d.uncommittedTakeover(t, takingOver(c, living))
	require.NoError(t, d.store.RenewLease(t.Context(), living, 0), "the renewal is let through")

	buried := afterWait(t, d, s, func() ([]turns.WorkerID, error) { return d.store.BuryWorkers(t.Context()) })
	require.Equal(t, []turns.WorkerID{living}, buried)
	stale, err := d.store.StaleReplies(t.Context(), turns.StaleQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, stale, 1, "what was taken over before the burial is there to be swept")
}

func TestARestoreThatWaitedIsLost(t *testing.T) {
	for name, begin := range map[string]func(database, turns.Claim) session{
		"for a claim": func(d database, c turns.Claim) session { return d.uncommittedClaim(t, after(c)) },
		"for a stop": func(d database, c turns.Claim) session {
			return d.begin(t, `UPDATE conversations SET version = version + 1`)
		},
		"for a deletion": func(d database, c turns.Claim) session {
			return d.begin(t, `UPDATE conversations SET deleted_at = now()`)
		},
		"for itself": func(d database, c turns.Claim) session {
			args, err := restoreArgs(restoring(c))
			require.NoError(t, err)
			return d.uncommitted(t, restore, args)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			c := d.complete(t, d.win(t, newClaim(d.worker(t))))
			l := restoring(c)
			require.False(t, afterWait(t, d, begin(d, c), restores(t, d, l)))
			require.Zero(t, d.count(t, `SELECT count(*) FROM turns WHERE id = $1`, [16]byte(l.Reply.ID.UUID)))
			require.Zero(t, d.count(t, `SELECT count(*) FROM provider_calls WHERE call_id = $1`, [16]byte(l.Calls[0].ID.UUID)))
		})
	}
}

func TestAClaimThatWaitedForARestoreIsLost(t *testing.T) {
	d := open(t)
	c := d.complete(t, d.win(t, newClaim(d.worker(t))))
	args, err := restoreArgs(restoring(c))
	require.NoError(t, err)
	require.False(t, afterWait(t, d, d.uncommitted(t, restore, args), claims(t, d, after(c))))
	require.Equal(t, 3, d.count(t, `SELECT count(*) FROM turns`))
}
