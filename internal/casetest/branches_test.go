package casetest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// below hangs a turn below a row.
func below(in *turnsv1.TurnInput, parent string) *turnsv1.TurnInput {
	in.Parent = &turnsv1.TurnInput_ParentId{ParentId: parent}
	return in
}

// path are the user turns on the way to the conversation's leaf, the first first.
func (w *worker) path(conversation string) (ids []string) {
	got, err := w.turns.ListTurns(w.t.Context(), &turnsv1.ListTurnsRequest{ConversationId: conversation})
	require.NoError(w.t, err)
	for i := len(got.GetEntries()) - 1; i >= 0; i-- {
		ids = append(ids, got.GetEntries()[i].GetTurn().GetTurnId())
	}
	return ids
}

func (w *worker) selects(conversation, reply string) {
	_, err := w.choose(conversation, reply)
	require.NoError(w.t, err)
}

func (w *worker) version(conversation string) int64 {
	got, err := w.convs.GetConversation(w.t.Context(), &turnsv1.GetConversationRequest{ConversationId: conversation})
	require.NoError(w.t, err)
	return got.GetConversation().GetVersion()
}

func TestGoingBackToABranchGoesToItsEnd(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		first, second, third := ask(conversation, newID(), "one"), ask(conversation, newID(), "two"), ask(conversation, newID(), "three")
		root := s.turn(first, nil).completes().reply
		old := s.turn(second, nil).completes().reply
		s.turn(third, nil).completes()
		edited := ask(conversation, newID(), "two, edited")
		s.turn(below(edited, root), nil).completes()
		require.Equal(t, []string{first.GetTurnId(), edited.GetTurnId()}, s.path(conversation))

		s.selects(conversation, old)
		require.Equal(t, []string{first.GetTurnId(), second.GetTurnId(), third.GetTurnId()}, s.path(conversation), "the leaf is the branch's end")
		fourth := ask(conversation, newID(), "four")
		s.turn(fourth, nil).completes()
		require.Equal(t, []string{first.GetTurnId(), second.GetTurnId(), third.GetTurnId(), fourth.GetTurnId()}, s.path(conversation))

		before := s.version(conversation)
		s.selects(conversation, old)
		require.Equal(t, before, s.version(conversation), "what is selected already is left alone")
	})
}

func TestAReplyThatIsMadeLiveAgainBringsItsBranchWithIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		first, second := ask(conversation, newID(), "one"), ask(conversation, newID(), "two")
		old := s.turn(first, nil).completes().reply
		s.turn(second, nil).completes()
		made, err := s.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: conversation, ReplyId: old})
		require.NoError(t, err)
		s.turn(first, nil).completes()
		require.Equal(t, []string{first.GetTurnId()}, s.path(conversation), "another answer has no turns below it yet")
		require.NotEqual(t, old, made.GetReply().GetReplyId())

		s.selects(conversation, old)
		require.Equal(t, []string{first.GetTurnId(), second.GetTurnId()}, s.path(conversation))
		s.selects(conversation, made.GetReply().GetReplyId())
		require.Equal(t, []string{first.GetTurnId()}, s.path(conversation))
		require.Equal(t, 1, w.number(`SELECT count(*) FROM turns WHERE status = 'complete' AND parent_id = (SELECT id FROM turns WHERE parent_id IS NULL)`))
	})
}

// listed asks for the path to a leaf.
func (w *worker) listed(conversation, leaf string) error {
	_, err := w.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation, LeafId: leaf})
	return err
}

func (w *worker) deletes(in *turnsv1.TurnInput) {
	_, err := w.turns.DeleteTurn(w.ctx, &turnsv1.DeleteTurnRequest{ConversationId: in.GetConversationId(), TurnId: in.GetTurnId()})
	require.NoError(w.t, err)
}

func TestAListBeginsAtWhatHasAPlaceInTheTree(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		kept, gone := ask(conversation, newID(), "kept"), ask(conversation, newID(), "gone")
		s.turn(kept, nil).completes()
		reply := s.turn(gone, nil).completes().reply
		s.deletes(gone)
		for _, leaf := range []string{gone.GetTurnId(), reply} {
			w.fails(s.listed(conversation, leaf), codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
		}
		require.Equal(t, []string{kept.GetTurnId()}, s.path(conversation))

		w.script(gate("", "mid", 8, 1))
		running := s.turn(ask(conversation, newID(), "runs"), nil)
		running.at(1)
		waiting := enqueuing(conversation, "waits")
		queue := s.turn(waiting, nil)
		queue.waits(0)
		w.fails(s.listed(conversation, waiting.GetTurnId()), codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		w.fails(s.listed(conversation, newID()), codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		queue.completes()
		require.NoError(t, s.listed(conversation, waiting.GetTurnId()), "it has started")
	})
}

func TestAPageTokenGoesWithTheLeafThatItsPageBeganAt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(plain(2))
		in := ask(newID(), newID(), "one")
		leaf := s.turn(in, nil).completes().reply
		other := s.turn(ask(in.GetConversationId(), newID(), "two"), nil).completes().reply
		s.turn(ask(in.GetConversationId(), newID(), "three"), nil).completes()
		page := func(leaf, token string) (*turnsv1.ListTurnsResponse, error) {
			return s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: in.GetConversationId(), LeafId: leaf, PageSize: 1, PageToken: token})
		}
		for _, began := range []string{other, ""} {
			first, err := page(began, "")
			require.NoError(t, err)
			for _, same := range []string{began, ""} {
				_, err = page(same, first.GetNextPageToken())
				require.NoError(t, err)
			}
			_, err = page(leaf, first.GetNextPageToken())
			w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
			require.ErrorContains(t, err, "page_token")
		}
	})
}

func TestAParentThatCantBeIsRefusedByItsReason(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		kept, gone := ask(conversation, newID(), "kept"), ask(conversation, newID(), "gone")
		s.turn(kept, nil).completes()
		erased := s.turn(gone, nil).completes().reply
		s.deletes(gone)
		foreign := s.turn(ask(newID(), newID(), "elsewhere"), nil).completes().reply
		refusal := func(ctx context.Context, parent string) error {
			_, err := s.turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: below(ask(conversation, newID(), "new"), parent)})
			return err
		}

		itself := ask(conversation, newID(), "new")
		_, err := s.submit(below(itself, itself.GetTurnId()))
		w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
		for _, parent := range []string{gone.GetTurnId(), erased} {
			w.fails(refusal(w.ctx, parent), codes.FailedPrecondition, "TURN_DELETED", "DO_NOT_RETRY")
		}
		missing := refusal(w.ctx, newID())
		meta := w.fails(missing, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY")
		for name, err := range map[string]error{"another conversation's": refusal(w.ctx, foreign),
			"another tenant's": refusal(w.as("other"), kept.GetTurnId())} {
			require.Equal(t, meta, w.fails(err, codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY"), name)
			require.Equal(t, missing.Error(), err.Error(), "%s is told from none", name)
		}
		w.stands(map[string]int{qUsers: 3, qInFlight: 0})
	})
}

func TestAReplyThatRunsIsNoParentYetAndOneThatWasStoppedIsOneWithoutItsText(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(stoppable("mid", 64, 20))
		first := ask(newID(), newID(), "the first")
		running := s.turn(first, nil)
		reply := running.at(1 + 19*16).reply
		next := below(ask(first.GetConversationId(), newID(), "the next"), reply)
		_, err := s.submit(next)
		w.fails(err, codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT")
		s.cancelTurn(first)
		running.abandons(cancelled)
		w.script(plain(4))
		s.turn(next, nil).completes()
		require.Equal(t, reply, s.parentOf(next))
		w.madeFrom(2, "the first", "the next")
	})
}

func TestAnEditIsASiblingAlsoOfTheFirstTurn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		first := ask(conversation, newID(), "the first words")
		s.turn(first, nil).completes()
		s.turn(ask(conversation, newID(), "more"), nil).completes()
		edited := ask(conversation, newID(), "other words")
		edited.Parent = &turnsv1.TurnInput_Root{Root: true}
		s.turn(edited, nil).completes()
		w.madeFrom(3, "other words")
		require.Empty(t, s.parentOf(edited))
		list, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation})
		require.NoError(t, err)
		require.Len(t, list.GetEntries(), 1)
		require.Equal(t, []string{first.GetTurnId(), edited.GetTurnId()}, list.GetEntries()[0].GetSiblingTurnIds())
		require.Equal(t, complete, s.read(conversation, first.GetTurnId()).GetReplies()[0].GetStatus(), "what was edited stays")
	})
}

func TestOfThreeRepliesTheFirstIsSelectedAndGoneOnFrom(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		say := func(text string) scripted.Rule {
			return scripted.Rule{Times: 1, Plan: scripted.Plan{Blocks: []scripted.Block{{Text: text}}}}
		}
		w.script(say("a first answer"), say("second"), say("third now"), plain(4))
		in := ask(newID(), newID(), "hi")
		conversation := in.GetConversationId()
		replies := []string{s.turn(in, nil).completes().reply}
		for generation := range int32(2) {
			made, err := s.regenerate(conversation, replies[generation], generation+1)
			require.NoError(t, err)
			replies = append(replies, made.GetReply().GetReplyId())
			s.follow(conversation, replies[generation+1], 0).completes()
		}
		s.selects(conversation, replies[0])
		list, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation})
		require.NoError(t, err)
		entry := list.GetEntries()[0]
		require.EqualValues(t, 3, entry.GetReplyCount())
		require.Equal(t, "a first answer", stored(entry.GetReply()))
		var texts []string
		for i, r := range s.read(conversation, in.GetTurnId()).GetReplies() {
			require.Equal(t, replies[i], r.GetReplyId())
			texts = append(texts, stored(r))
		}
		require.Equal(t, []string{"a first answer", "second", "third now"}, texts, "none is lost")
		next := ask(conversation, newID(), "go on")
		s.turn(next, nil).completes()
		require.Equal(t, replies[0], s.parentOf(next))
		w.madeFrom(4, "hi", "a first answer", "go on")
		w.stands(map[string]int{qLive: 2, qReplies: 4})
	})
}
