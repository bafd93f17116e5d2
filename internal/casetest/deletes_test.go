package casetest

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/turnd/turnd/internal/tenanttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

const deletedReason = turnsv1.AbandonReason_ABANDON_REASON_DELETED

func (w *worker) deleteConversation(conversation string) {
	w.t.Helper()
	_, err := w.convs.DeleteConversation(w.ctx, &turnsv1.DeleteConversationRequest{ConversationId: conversation})
	require.NoError(w.t, err)
}

func (w *worker) deleteTurn(conversation, turn string) int32 {
	w.t.Helper()
	got, err := w.turns.DeleteTurn(w.ctx, &turnsv1.DeleteTurnRequest{ConversationId: conversation, TurnId: turn})
	require.NoError(w.t, err)
	return got.GetDeletedTurns()
}

// under is a turn below a row.
func under(conversation, parent, text string) *turnsv1.TurnInput {
	in := ask(conversation, newID(), text)
	in.Parent = &turnsv1.TurnInput_ParentId{ParentId: parent}
	return in
}

// ofKey is the condition of a query for the rows of a conversation.
func (w *world) ofKey(conversation string) string {
	key := turns.KeyOf("default", turns.ConversationID{UUID: uuid.MustParse(conversation)})
	if w.engine == "sqlite" {
		return fmt.Sprintf(" conversation_key = x'%s'", hex.EncodeToString(key[:]))
	}
	return fmt.Sprintf(" conversation_key = '%s'", hex.EncodeToString(key[:]))
}

// contents counts, by table, rows of a conversation that hold content.
func (w *world) contents(conversation string) map[string]int {
	w.t.Helper()
	of, got := w.ofKey(conversation), map[string]int{}
	for table, rows := range map[string]string{
		"turns": "", "reply_chunks": "", "conversation_defaults": "",
		"conversations":  ` AND (title <> '' OR defaults <> '' OR subject <> '' OR labels <> '{}' OR create_hash IS NOT NULL OR leaf_id IS NOT NULL OR last_turn_id IS NOT NULL)`,
		"provider_calls": ` AND (request_body IS NOT NULL OR end_time IS NULL)`,
	} {
		if n := w.number(`SELECT count(*) FROM ` + table + ` WHERE` + of + rows); n != 0 {
			got[table] = n
		}
	}
	return got
}

// isErased demands that nothing is left of a conversation but its mark and its bill.
func (w *world) isErased(conversation string, calls int) {
	w.t.Helper()
	of := ` WHERE` + w.ofKey(conversation)
	w.eventually(func() bool {
		return w.number(`SELECT count(*) FROM conversations`+of+` AND deleted_at IS NOT NULL AND erased_at IS NOT NULL`) == 1
	})
	require.Empty(w.t, w.contents(conversation))
	require.Equal(w.t, calls, w.number(`SELECT count(*) FROM provider_calls`+of))
}

// refusesAll demands that every method says that a conversation was deleted.
func (w *worker) refusesAll(in *turnsv1.TurnInput, reply string) {
	w.t.Helper()
	id := tenanttest.IDs{Conversation: in.GetConversationId(), Turn: in.GetTurnId(), Reply: reply}
	for _, method := range w.methods("TurnService.", "ConversationService.") {
		if name := method.String(); name != "ConversationService.ListConversations" && name != "ConversationService.DeleteConversation" {
			w.t.Log(method)
			w.fails(w.plainly(method, id), codes.FailedPrecondition, "CONVERSATION_DELETED", "DO_NOT_RETRY")
		}
	}
	_, err := w.submit(in)
	w.fails(err, codes.FailedPrecondition, "CONVERSATION_DELETED", "DO_NOT_RETRY")
	w.fails(w.followTurn(in).end().err, codes.FailedPrecondition, "CONVERSATION_DELETED", "DO_NOT_RETRY")
	list, err := w.convs.ListConversations(w.ctx, &turnsv1.ListConversationsRequest{})
	require.NoError(w.t, err)
	for _, c := range list.GetConversations() {
		require.NotEqual(w.t, id.Conversation, c.GetConversationId())
	}
}

// rich makes a conversation with a title, labels and defaults that changed.
func (w *worker) rich() (conversation string) {
	w.t.Helper()
	made := &turnsv1.Conversation{ConversationId: newID(), Title: "my secret title", Labels: map[string]string{"a": "secret"},
		Defaults: &turnsv1.GenerationOptions{System: "a secret rule"}}
	_, err := w.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: made})
	require.NoError(w.t, err)
	made.Defaults.System = "another secret rule"
	_, err = w.convs.UpdateConversation(w.ctx, &turnsv1.UpdateConversationRequest{Conversation: made,
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"defaults"}}})
	require.NoError(w.t, err)
	return made.GetConversationId()
}

func TestADeletedConversationStopsWhatRunsOnAnotherReplicaAndLeavesOnlyItsMarkAndItsBill(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(plain(8))
		conversation := one.rich()
		before := ask(conversation, newID(), "a secret")
		one.turn(before, nil).completes()
		w.script(stoppable("mid", 5000, 500))
		in := ask(conversation, newID(), "another secret")
		running := one.turn(in, nil)
		reply := running.at(1 + 499*16).reply
		watching, joined := two.turn(in, nil), two.follow(conversation, reply, 0)
		watching.at(1 + 499*16)
		joined.at(1 + 499*16)
		require.NotEmpty(t, w.contents(conversation))

		two.deleteConversation(conversation)
		for _, s := range []*stream{running, watching, joined} {
			s.abandons(deletedReason)
		}
		require.NoError(t, w.provider.WaitFinished(w.ctx, 2))
		w.clientGone(1)
		w.isErased(conversation, 2)
		w.stands(map[string]int{qOpen: 0, qLedger: 2, qConvs: 1,
			`SELECT count(*) FROM provider_calls WHERE waste_cause = 'deleted' AND wasted_tokens > 0`: 1})
		for _, s := range []*worker{one, two} {
			s.refusesAll(in, reply)
			s.refusesAll(before, newID())
			s.deleteConversation(conversation) // again is no error
			_, err := s.convs.DeleteConversation(w.as("stranger"), &turnsv1.DeleteConversationRequest{ConversationId: conversation})
			w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
			_, err = s.convs.GetConversation(w.as("stranger"), &turnsv1.GetConversationRequest{ConversationId: conversation})
			w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		}
		w.paid(2, 2)
		w.isErased(conversation, 2)
		require.NotContains(t, w.archived(), "secret")
		require.EqualValues(t, 1, w.counted("turnd.replies", "reason", "deleted"))
	})
}

func TestADeletedConversationTakesItsHeldReplyAlong(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		in, r := s.hold()
		s.deleteConversation(in.GetConversationId())
		w.isErased(in.GetConversationId(), 1)
		w.stands(map[string]int{qHeld: 0, qOpen: 0, qClosed: 1})
		s.refusesAll(in, r.GetReplyId())
		list, err := s.operator().ListHeldReplies(w.ctx, &turnsv1.ListHeldRepliesRequest{})
		require.NoError(t, err)
		require.Empty(t, list.GetReplies())
		_, err = s.release(r, r.GetEpoch())
		w.fails(err, codes.FailedPrecondition, "CONVERSATION_DELETED", "DO_NOT_RETRY")
		_, err = s.complete(r, stored(r)+" and more")
		w.fails(err, codes.FailedPrecondition, "CONVERSATION_DELETED", "DO_NOT_RETRY")
		w.paid(1, 1)
	})
}

func TestWhoWaitsInTheLineOfADeletedConversationIsTold(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(stoppable("mid", 64, 8))
		first, running := one.busyAt()
		conversation := first.GetConversationId()
		second, third := enqueuing(conversation, "second"), enqueuing(conversation, "third")
		a := one.turn(second, nil)
		a.waits(0)
		b := two.turn(third, nil)
		b.waits(1)
		c := two.followTurn(second)
		c.waits(0)
		two.deleteConversation(conversation)
		running.abandons(deletedReason)
		for _, s := range []*stream{a, b, c} {
			w.fails(s.end().err, codes.FailedPrecondition, "CONVERSATION_DELETED", "DO_NOT_RETRY")
		}
		w.isErased(conversation, 1)
		w.stands(map[string]int{qInLine: 0, qOpen: 0})
		one.refusesAll(second, newID())
		w.paid(1, 1)
	})
}
