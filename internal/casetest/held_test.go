package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

const (
	held     = turnsv1.ReplyStatus_REPLY_STATUS_HELD
	released = turnsv1.AbandonReason_ABANDON_REASON_HELD_RELEASED
)

const (
	qHeld   = `SELECT count(*) FROM turns WHERE status = 'held'`
	qClosed = `SELECT count(*) FROM provider_calls WHERE class = 'ambiguous' AND token_source = 'estimated'`
)

func (w *worker) operator() turnsv1.OperatorServiceClient {
	return turnsv1.NewOperatorServiceClient(w.harness.Conn)
}

// hold makes a held reply whose provider broke off after some text, and gives it with what of it was shown.
func (w *worker) hold() (in *turnsv1.TurnInput, r *turnsv1.Reply) {
	w.t.Helper()
	w.script(failing(1, scripted.Step{At: scripted.AfterDelta(20), Do: scripted.DoReset}), plain(16))
	in = ask(newID(), newID(), "hi")
	in.OnAmbiguous = turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD
	s := w.turn(in, nil)
	s.end()
	r = w.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
	require.Equal(w.t, held, r.GetStatus())
	return in, r
}

func (w *worker) release(r *turnsv1.Reply, epoch int64) (*turnsv1.Reply, error) {
	got, err := w.operator().ReleaseHeldReply(w.ctx, &turnsv1.ReleaseHeldReplyRequest{
		ConversationId: r.GetConversationId(), ReplyId: r.GetReplyId(), ExpectedEpoch: epoch})
	return got.GetReply(), err
}

func (w *worker) complete(r *turnsv1.Reply, text string) (*turnsv1.Reply, error) {
	got, err := w.operator().CompleteHeldReply(w.ctx, &turnsv1.CompleteHeldReplyRequest{
		ConversationId: r.GetConversationId(), ReplyId: r.GetReplyId(), ExpectedEpoch: r.GetEpoch(),
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}}})
	return got.GetReply(), err
}

func TestAHeldReplyIsListedAndItsReleaseFreesItsTurnAndBooksItsCallAsWaste(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in, r := s.hold()
		list, err := s.operator().ListHeldReplies(w.ctx, &turnsv1.ListHeldRepliesRequest{})
		require.NoError(t, err)
		require.Len(t, list.GetReplies(), 1)
		require.Equal(t, r.GetReplyId(), list.GetReplies()[0].GetReplyId())
		require.Equal(t, r.GetEpoch(), list.GetReplies()[0].GetEpoch())
		require.Empty(t, list.GetReplies()[0].GetContent())
		w.stands(map[string]int{qHeld: 1, qOpen: 1})

		for range 2 { // again is no error
			got, err := s.release(r, r.GetEpoch())
			require.NoError(t, err)
			require.Equal(t, abandoned, got.GetStatus())
			require.Equal(t, released, got.GetAbandonReason())
			require.Equal(t, stored(r), stored(got), "what was shown is kept")
			require.Positive(t, got.GetUsage().GetWastedTokens())
		}
		w.stands(map[string]int{qHeld: 0, qOpen: 0, qClosed: 1,
			`SELECT count(*) FROM provider_calls WHERE waste_cause = 'held_released' AND wasted_tokens > 0`: 1})
		require.EqualValues(t, 1, w.counted("turnd.provider.calls", "class", "ambiguous"))
		require.EqualValues(t, 1, w.counted("turnd.replies", "reason", "held_released"))
		require.Equal(t, retried, s.turn(in, nil).completes().result)
		w.paid(2, 2)
	})
}

func TestAHeldReplyIsCompletedByContentThatBeginsWithWhatWasShown(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in, r := s.hold()
		shown := stored(r)
		require.NotEmpty(t, shown)
		for _, wrong := range []string{"something else", shown[:len(shown)-1], shown[:3] + "?" + shown[4:]} {
			_, err := s.complete(r, wrong)
			w.fails(err, codes.FailedPrecondition, "WRONG_STATE", "DO_NOT_RETRY")
			w.stands(map[string]int{qHeld: 1, qOpen: 1})
		}
		for range 2 {
			got, err := s.complete(r, shown+" and the rest")
			require.NoError(t, err)
			require.Equal(t, complete, got.GetStatus())
			require.Equal(t, turnsv1.StopReason_STOP_REASON_END_TURN, got.GetStopReason())
			require.Equal(t, shown+" and the rest", stored(got))
		}
		w.stands(map[string]int{qHeld: 0, qOpen: 0, qClosed: 1, qWasted: 0})
		require.EqualValues(t, 1, w.counted("turnd.provider.calls", "class", "ambiguous"))
		require.EqualValues(t, 1, w.counted("turnd.replies", "status", "complete"))
		again := s.turn(in, nil).completes()
		require.Equal(t, replayed, again.result)
		require.Equal(t, shown+" and the rest", again.text)
		w.paid(1, 1)
		_, err := s.complete(r, shown+" and another rest")
		w.fails(err, codes.FailedPrecondition, "WRONG_STATE", "DO_NOT_RETRY")
	})
}

func TestADecisionOverAReplyThatHasChangedChangesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		_, r := s.hold()
		_, err := s.release(r, r.GetEpoch()+1)
		w.fails(err, codes.Aborted, "STALE_EPOCH", "DO_NOT_RETRY")
		_, err = s.release(r, 0)
		w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
		missing := &turnsv1.Reply{ConversationId: r.GetConversationId(), ReplyId: newID(), Epoch: 1}
		_, err = s.release(missing, 1)
		w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		w.stands(map[string]int{qHeld: 1, qOpen: 1})
		_, err = s.complete(r, stored(r)+".")
		require.NoError(t, err)
		meta := w.fails(func() error { _, err := s.release(r, r.GetEpoch()); return err }(), codes.FailedPrecondition, "WRONG_STATE", "DO_NOT_RETRY")
		require.Equal(t, "complete", meta["status"])
	})
}

func TestAnotherTenantsHeldRepliesAndCallsAreAsMissing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		_, r := s.hold()
		other := metadata.AppendToOutgoingContext(w.ctx, "x-turnd-tenant", "other")
		list, err := s.operator().ListHeldReplies(other, &turnsv1.ListHeldRepliesRequest{})
		require.NoError(t, err)
		require.Empty(t, list.GetReplies())
		calls, err := s.operator().ListProviderCalls(other, &turnsv1.ListProviderCallsRequest{
			Filter: &turnsv1.LedgerFilter{ConversationId: r.GetConversationId()}})
		require.NoError(t, err)
		require.Empty(t, calls.GetCalls())
		_, err = s.operator().ReleaseHeldReply(other, &turnsv1.ReleaseHeldReplyRequest{
			ConversationId: r.GetConversationId(), ReplyId: r.GetReplyId(), ExpectedEpoch: r.GetEpoch()})
		w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		w.stands(map[string]int{qHeld: 1})
	})
}

func TestAHeldReplyThatIsCancelledClosesItsCallByEstimate(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in, r := s.hold()
		for range 2 {
			got := s.cancelTurn(in)
			require.Equal(t, r.GetReplyId(), got.GetReplyId())
			require.Equal(t, cancelled, got.GetAbandonReason())
			require.Positive(t, got.GetUsage().GetWastedTokens())
		}
		w.stands(map[string]int{qHeld: 0, qOpen: 0, qClosed: 1,
			`SELECT count(*) FROM provider_calls WHERE waste_cause = 'cancelled' AND output_tokens > 0`: 1})
		require.EqualValues(t, 1, w.counted("turnd.provider.calls", "class", "ambiguous"))
		require.EqualValues(t, 1, w.counted("turnd.replies", "reason", "cancelled"))
		require.Equal(t, replayed, s.turn(in, nil).abandons(cancelled).result, "nothing of its generation starts again")
		w.paid(1, 1)
	})
}

func TestAReleaseWithoutAnAnswerIsReadAgainAndNeverAssumed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		_, r := s.hold()
		faults.LoseAnswer("ResolveHeld")
		got, err := s.release(r, r.GetEpoch())
		require.NoError(t, err)
		require.Equal(t, released, got.GetAbandonReason())
		_, other := s.hold()
		faults.FailNext("ResolveHeld", turns.ErrUnknownOutcome)
		got, err = s.complete(other, stored(other)+".")
		require.NoError(t, err)
		require.Equal(t, complete, got.GetStatus())
	})
}

func TestTheLedgerIsListedPageByPageAndSummed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in, r := s.hold()
		_, err := s.release(r, r.GetEpoch())
		require.NoError(t, err)
		s.turn(in, nil).completes()
		var calls []*turnsv1.ProviderCall
		for token := "first"; token != ""; {
			if token == "first" {
				token = ""
			}
			page, err := s.operator().ListProviderCalls(w.ctx, &turnsv1.ListProviderCallsRequest{PageSize: 1, PageToken: token,
				Filter: &turnsv1.LedgerFilter{ConversationId: in.GetConversationId(), TurnId: in.GetTurnId()}})
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.GetCalls()), 1)
			calls, token = append(calls, page.GetCalls()...), page.GetNextPageToken()
		}
		require.Len(t, calls, 2)
		require.Equal(t, turnsv1.CallClass_CALL_CLASS_AMBIGUOUS, calls[0].GetClass())
		require.Equal(t, "held_released", calls[0].GetWasteCause())
		require.True(t, calls[0].GetFirst())
		require.Equal(t, turnsv1.CallClass_CALL_CLASS_OK, calls[1].GetClass())
		require.False(t, calls[1].GetFirst())
		sums, err := s.operator().SumProviderCalls(w.ctx, &turnsv1.SumProviderCallsRequest{})
		require.NoError(t, err)
		require.EqualValues(t, 1, sums.GetFirstCalls())
		require.EqualValues(t, 1, sums.GetRetryCalls())
		require.Equal(t, calls[0].GetUsage().GetWastedTokens(), sums.GetWastedTokens()["held_released"])
		require.Equal(t, calls[1].GetUsage().GetOutputTokens(), sums.GetRetryUsage().GetOutputTokens())
		_, err = s.operator().ListProviderCalls(w.ctx, &turnsv1.ListProviderCallsRequest{Filter: &turnsv1.LedgerFilter{TurnId: in.GetTurnId()}})
		w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
		_, err = s.operator().ListHeldReplies(w.ctx, &turnsv1.ListHeldRepliesRequest{PageToken: "Ag"})
		w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
		workers, err := s.operator().ListWorkers(w.ctx, &turnsv1.ListWorkersRequest{})
		require.NoError(t, err)
		require.Len(t, workers.GetWorkers(), 1)
		require.Equal(t, s.service.WorkerID().String(), workers.GetWorkers()[0].GetWorkerId())
	})
}

// heldWhileMade holds a reply whose worker died and which its provider goes on with. Its next lookup is far away.
func (w *world) heldWhileMade(model string) (in *turnsv1.TurnInput, other *worker) {
	w.t.Helper()
	w.short()
	w.script(gate("", "mid", 64, 20))
	dying, die := w.cutOff()
	in = askOf(model)
	dying.turn(in, nil).at(1 + 19*16)
	w.eventually(func() bool {
		return w.number(`SELECT count(*) FROM turns WHERE status = 'in_flight' AND log_len > 300 AND provider_response_id <> ''`) == 1
	})
	die()
	_, err := w.db.ExecContext(w.ctx, `UPDATE turns SET status = 'held', next_lookup_at = deadline_at WHERE status = 'in_flight'`)
	require.NoError(w.t, err)
	return in, w.serve()
}

func TestAVendorsCallBackCompletesAHeldReplyThatItsProviderHasAnswered(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		in, s := w.heldWhileMade(model)
		require.NoError(t, w.provider.OpenGate("mid"))
		w.eventually(func() bool { return w.provider.Counts().Running == 0 })
		w.stands(map[string]int{qHeld: 1})
		var response string
		require.NoError(t, w.db.QueryRowContext(w.ctx, `SELECT provider_response_id FROM turns WHERE status = 'held'`).Scan(&response))
		for range 2 {
			require.NoError(t, s.service.Wake(w.ctx, model, response))
		}
		w.eventually(func() bool { return w.number(qHeld) == 0 })
		got := s.turn(in, nil).completes()
		require.Equal(t, replayed, got.result)
		require.Len(t, got.text, 64*16)
		w.paid(1, 1)
		w.once("1")
	}, "background")
}

func TestACancelOfAHeldReplyStopsWhatItsProviderGoesOnWith(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		in, s := w.heldWhileMade(model)
		require.Equal(t, 1, w.provider.Counts().Running)
		require.Equal(t, cancelled, s.cancelTurn(in).GetAbandonReason())
		w.eventually(func() bool { return w.provider.Counts().Running == 0 })
		require.NoError(t, w.provider.OpenGate("mid"))
		require.Less(t, w.provider.Counts().OutputTokens, 64)
		w.stands(map[string]int{qHeld: 0, qOpen: 0, qClosed: 1})
	}, "background")
}

func TestAVendorsCallBackNamesTheResponseOfACallThatNeverLearnedItsId(t *testing.T) {
	onEachAskable(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(failing(1, scripted.Step{At: scripted.AtBeforeHeaders, Do: scripted.DoReset}))
		in := askOf(model)
		in.OnAmbiguous = turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD
		require.NotNil(t, s.turn(in, nil).end().held)
		w.eventually(func() bool { return w.provider.Counts().Running == 0 })
		calls := w.provider.Calls()
		require.Len(t, calls, 1)
		for range 2 {
			require.NoError(t, s.service.Wake(w.ctx, model, calls[0].ResponseID))
		}
		got := s.turn(in, nil).completes()
		require.Equal(t, replayed, got.result)
		w.paid(1, 1)
		w.once("1")
	}, "background")
}
