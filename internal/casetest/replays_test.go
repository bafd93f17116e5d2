package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func TestAFinishedReplyIsReplayedByWhatItsTurnIsLookedUpBy(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		h := &heard{statements: map[string][]string{}}
		w.trace = h.trace
		s := w.serve()
		s.script(plain(8))
		in := ask(newID(), newID(), "hello")
		first := s.turn(in, nil).completes()

		looks := metadata.AppendToOutgoingContext(w.ctx, questionHeader, "submit")
		_, err := s.turns.SubmitTurn(looks, &turnsv1.SubmitTurnRequest{Input: in})
		require.NoError(t, err)
		replays := metadata.AppendToOutgoingContext(w.ctx, questionHeader, "turn")
		rpc, err := s.turns.Turn(replays, &turnsv1.TurnRequest{Input: in})
		require.NoError(t, err)
		text := ""
		for {
			msg, err := rpc.Recv()
			require.NoError(t, err)
			text += msg.GetEvent().GetDelta().GetText()
			if msg.GetEvent().GetCompleted() != nil {
				break
			}
		}
		require.Equal(t, first.text, text)
		require.NotEmpty(t, h.of("submit"))
		require.Equal(t, h.of("submit"), h.of("turn"), "the content was read by a statement of its own")

		follows := metadata.AppendToOutgoingContext(w.ctx, questionHeader, "follow")
		rest, err := s.turns.FollowReply(follows, &turnsv1.FollowReplyRequest{
			ConversationId: in.GetConversationId(), Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: first.reply}})
		require.NoError(t, err)
		for err == nil {
			_, err = rest.Recv()
		}
		require.ErrorContains(t, err, "EOF")
		require.LessOrEqual(t, len(h.of("follow")), len(h.of("submit")), "a reply is followed by its own id with one look")
		w.paid(1, 1)
	})
}
