package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func contexts() []promise {
	return []promise{
		{"a call with a cancelled context is the context's error, and writes nothing", aCancelledCallWritesNothing},
		{"the store goes on after a cancelled call", theStoreGoesOn},
		{"a closed store is unavailable", aClosedStoreIsUnavailable},
	}
}

// everyMethod calls every method of the port once, with arguments that would do something.
func (w *world) everyMethod(ctx context.Context, claim turns.Claim, check func(method string, err error)) {
	s, f := w.Store, fenceOf(claim)
	lost := turns.LostReply{Key: claim.Key, ExpectVersion: 1, NextSeq: 3, Turn: claim.Turn, Reply: claim.Reply,
		Ending: abandoning(claim, 0, turns.ReasonShutdown)}
	lost.Reply.ID, lost.Reply.Attempt = newReplyID(), 2
	id := turns.WorkerID{UUID: uuid.New()}
	key := claim.Key
	check("RegisterWorker", s.RegisterWorker(ctx, turns.Worker{ID: id}, time.Hour))
	check("RenewLease", s.RenewLease(ctx, w.worker, time.Hour))
	check("RetireWorker", s.RetireWorker(ctx, w.worker))
	check("BuryWorkers", second(s.BuryWorkers(ctx)))
	check("ForgetWorkers", s.ForgetWorkers(ctx, 0))
	check("Lookup", second(s.Lookup(ctx, turns.LookupQuery{Key: key})))
	check("ReadPath", second(s.ReadPath(ctx, key, claim.Turn.Row(), turns.PathLimit{Rows: 10, Bytes: 1 << 20})))
	check("Claim", second(s.Claim(ctx, []turns.Claim{w.first(newConversation())})))
	check("PermitCalls", second(s.PermitCalls(ctx, []turns.CallPermit{permitFor(claim, 2)})))
	check("CloseCalls", s.CloseCalls(ctx, []turns.CallOutcome{*closing(key, claim.Call.ID, turns.ClassOK)}))
	check("Checkpoint", second(s.Checkpoint(ctx, []turns.Checkpoint{{Fence: f, To: 2, Pieces: []turns.Piece{opening("a")}}})))
	check("End", second(s.End(ctx, []turns.Ending{completing(claim, 0, whole("a"))})))
	check("StaleReplies", second(s.StaleReplies(ctx, turns.StaleQuery{Limit: 1})))
	check("Sweep", second(s.Sweep(ctx, expiring(claim, 0))))
	check("RequestStop", second(s.RequestStop(ctx, key, claim.Turn, 0, turns.TurnID{})))
	check("Enqueue", second(s.Enqueue(ctx, w.enqueueing(conversation{key: key}, 8))))
	check("LeaveLine", second(s.LeaveLine(ctx, turns.Departure{Key: key, Turn: claim.Turn, Verb: turns.VerbCancel, Reason: turns.ReasonCancelled})))
	check("ReadLine", second(s.ReadLine(ctx, []turns.LinePlace{{Key: key, Turn: claim.Turn}})))
	check("IdleLines", second(s.IdleLines(ctx, turns.ConversationKey{}, 1)))
	check("Select", second(s.Select(ctx, turns.Selection{Key: key, ExpectVersion: 1, Turn: claim.Turn, Select: claim.Reply.ID})))
	check("OwnedReplies", second(s.OwnedReplies(ctx, w.worker, 0, 1)))
	check("Revive", second(s.Revive(ctx, reviving(claim, w.worker))))
	check("Salvage", second(s.Salvage(ctx, salvaging(claim))))
	check("Settle", second(s.Settle(ctx, settling(claim, 0))))
	check("TakeOver", second(s.TakeOver(ctx, w.takingOver(claim, 0))))
	check("Restore", second(s.Restore(ctx, lost)))
	check("ReadReply", second(s.ReadReply(ctx, key, claim.Reply.ID)))
	check("ReadLogs", second(s.ReadLogs(ctx, []turns.LogPosition{{Key: key, Reply: claim.Reply.ID}})))
	check("FindTurn", second(s.FindTurn(ctx, key, claim.Turn.Row())))
	check("RepliesTo", second(s.RepliesTo(ctx, key, claim.Turn, 10)))
	check("Entries", second(s.Entries(ctx, key, []turns.TurnID{claim.Turn})))
	check("ReadConversation", second(s.ReadConversation(ctx, key)))
	check("ListConversations", second(s.ListConversations(ctx, turns.ConversationQuery{Tenant: "tenant", Limit: 1, Look: 1})))
	check("UpdateConversation", second(s.UpdateConversation(ctx, w.made(conversation{key: key}), 1)))
	_, _, err := s.CreateConversation(ctx, w.made(newConversation()))
	check("CreateConversation", err)
}

func second[T any](_ T, err error) error { return err }

func aCancelledCallWritesNothing(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.passDeadline(claim.Reply.ID)
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	w.unchanged(func() {
		w.everyMethod(ctx, claim, func(method string, err error) {
			require.ErrorIs(t, err, context.Canceled, method)
			require.NotErrorIs(t, err, turns.ErrUnknownOutcome, method)
		})
	})
}

func theStoreGoesOn(_ *testing.T, w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	for range 20 {
		_, _ = w.Store.Claim(ctx, []turns.Claim{w.first(newConversation())})
		_, _ = w.Store.Lookup(ctx, turns.LookupQuery{Key: newConversation().key})
	}
	w.fresh()
}

func aClosedStoreIsUnavailable(t *testing.T, w *world) {
	_, claim := w.fresh()
	require.NoError(t, w.Close())
	w.everyMethod(w.ctx, claim, func(method string, err error) {
		require.True(t, errors.Is(err, turns.ErrStoreUnavailable), "%s: %v", method, err)
	})
	require.NoError(t, w.Close())
}
