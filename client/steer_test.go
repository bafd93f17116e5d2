package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/client"
	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// steering are the calls that change which reply counts, each with a good answer.
var steering = map[string]struct {
	answer fake.Answer
	call   func(context.Context, *client.Client) (*turnsv1.Reply, error)
}{
	"cancel": {fake.Respond(&turnsv1.CancelReplyResponse{Reply: &turnsv1.Reply{ReplyId: replyA}}),
		func(ctx context.Context, c *client.Client) (*turnsv1.Reply, error) {
			return c.Cancel(ctx, conversation, client.Target{ReplyID: replyA})
		}},
	"regenerate": {fake.Respond(&turnsv1.RegenerateReplyResponse{Reply: &turnsv1.Reply{ReplyId: replyA}}),
		func(ctx context.Context, c *client.Client) (*turnsv1.Reply, error) {
			reply, _, err := c.Regenerate(ctx, client.Regeneration{ConversationID: conversation, ReplyID: replyB, Generation: 2})
			return reply, err
		}},
	"select": {fake.Respond(&turnsv1.SelectReplyResponse{Reply: &turnsv1.Reply{ReplyId: replyA}}),
		func(ctx context.Context, c *client.Client) (*turnsv1.Reply, error) {
			return c.Select(ctx, conversation, replyA)
		}},
}

func TestALostAnswerToASteeringCallIsAskedForAgainWithTheSameWords(t *testing.T) {
	for name, tc := range steering {
		t.Run(name, func(t *testing.T) {
			b := setup(t, nil, fake.Cut(), fake.Fail(fake.Refusal(codes.Aborted, "CONFLICT", "SAME_ID_NOW", time.Second)), tc.answer)
			reply, err := tc.call(t.Context(), b.client)
			require.NoError(t, err)
			require.Equal(t, replyA, reply.GetReplyId())
			calls := b.server.Calls()
			require.Len(t, calls, 3)
			for _, c := range calls {
				require.Equal(t, calls[0].Cancel.String(), c.Cancel.String())
				require.Equal(t, calls[0].Regenerate.String(), c.Regenerate.String())
				require.Equal(t, calls[0].Select.String(), c.Select.String())
			}
			require.Equal(t, []time.Duration{125 * time.Millisecond, time.Second + 250*time.Millisecond}, b.waits)
		})
	}
}

func TestARefusalOfASteeringCallIsReturnedAtOnce(t *testing.T) {
	for name, tc := range steering {
		t.Run(name, func(t *testing.T) {
			b := setup(t, nil, fake.Fail(fake.Refusal(codes.FailedPrecondition, "REPLY_CHANGED", "DO_NOT_RETRY", 0)))
			_, err := tc.call(t.Context(), b.client)
			require.Equal(t, turnsv1.ErrorReason_ERROR_REASON_REPLY_CHANGED, errorOf(t, err).Reason)
			require.Empty(t, b.waits)
		})
	}
}

func TestTriesOfASteeringCallAreBoundedInNumberAndInTime(t *testing.T) {
	gone := fake.Fail(status.Error(codes.Unavailable, "gone"))
	for name, tc := range steering {
		t.Run(name, func(t *testing.T) {
			b := setup(t, func(o *client.Options) { o.MaxReconnects = 2 }, gone, gone, gone)
			_, err := tc.call(t.Context(), b.client)
			require.ErrorIs(t, err, client.ErrGaveUp)
			require.Len(t, b.server.Calls(), 3)

			b = setup(t, nil, fake.Fail(fake.Refusal(codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT", time.Hour)))
			_, err = tc.call(t.Context(), b.client)
			require.Equal(t, time.Hour, errorOf(t, err).Delay)

			ctx, cancel := context.WithCancel(t.Context())
			b = setup(t, nil, func(c *fake.Call) error {
				cancel()
				<-c.Done()
				return nil
			})
			_, err = tc.call(ctx, b.client)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}

// Case C41: the stop comes while the reply streams, and its followers get the one end.
func TestACancelledReplyEndsTheStreamWithItsPartial(t *testing.T) {
	stopped := make(chan struct{})
	b := setup(t, nil,
		func(c *fake.Call) error {
			if err := c.Send(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:3])...); err != nil {
				return err
			}
			<-stopped
			return c.Send(fake.Abandoned(hello[:3], turnsv1.AbandonReason_ABANDON_REASON_CANCELLED, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, 0))
		},
		func(c *fake.Call) error {
			close(stopped)
			return fake.Respond(&turnsv1.CancelReplyResponse{Reply: &turnsv1.Reply{Status: turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED}})(c)
		})
	s := b.send(t)
	got := watch(t.Context(), s, func(ev *turnsv1.Event) bool {
		if ev.GetDelta().GetText() == "lo " {
			reply, err := b.client.Cancel(t.Context(), s.ConversationID(), client.Target{TurnID: s.TurnID()})
			require.NoError(t, err)
			require.Equal(t, turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED, reply.GetStatus())
		}
		return true
	})
	require.NoError(t, got.err)
	require.Equal(t, "Hello ", got.text)
	require.Equal(t, "abandoned", got.kinds[len(got.kinds)-1])
	require.Equal(t, turnA, b.server.Calls()[1].Cancel.GetTurnId())
	require.Nil(t, b.stored(t))
}

func TestARegenerateNamesTheGenerationThatTheStreamSaw(t *testing.T) {
	known := fake.Accepted(conversation, turnA, replayed)
	known.GetAccepted().Turn.Generation = 2
	b := setup(t, nil, fake.Play(fake.All(known, fake.Started(replyA, 1), hello, fake.Completed(hello))...),
		fake.Respond(&turnsv1.RegenerateReplyResponse{Reply: &turnsv1.Reply{ReplyId: replyB, Generation: 3}, Replayed: true}))
	s := b.send(t)
	require.Zero(t, s.Generation())
	require.NoError(t, watch(t.Context(), s, nil).err)
	require.Equal(t, int32(2), s.Generation(), "of the turn, where an earlier reply was selected again")
	reply, repeat, err := b.client.Regenerate(t.Context(), client.Regeneration{ConversationID: s.ConversationID(), ReplyID: s.Reply().ID(),
		Generation: s.Generation(), Options: &turnsv1.GenerationOptions{Model: "good"}})
	require.NoError(t, err)
	require.True(t, repeat)
	require.Equal(t, replyB, reply.GetReplyId())
	req := b.server.Calls()[1].Regenerate
	require.Equal(t, int32(2), req.GetExpectedGeneration())
	require.Equal(t, replyA, req.GetReplyId())
	require.Equal(t, "good", req.GetOptions().GetModel())
}

func TestTurnsAreReadWithTheirReplies(t *testing.T) {
	turn := &turnsv1.UserTurn{TurnId: turnA}
	replies := []*turnsv1.Reply{{ReplyId: replyA}, {ReplyId: replyB}}
	answer := fake.Respond(&turnsv1.GetTurnResponse{Turn: turn, Replies: replies})
	b := setup(t, nil, fake.Cut(), answer, answer,
		fake.Respond(&turnsv1.ListTurnsResponse{Entries: []*turnsv1.TurnEntry{{Turn: turn, Reply: replies[1]}}}),
		fake.Respond(&turnsv1.ListTurnsResponse{}))
	for _, target := range []client.Target{{TurnID: turnA}, {ReplyID: replyB}} {
		got, all, err := b.client.Turn(t.Context(), conversation, target)
		require.NoError(t, err)
		require.Equal(t, turnA, got.GetTurnId())
		require.Len(t, all, 2)
	}
	require.Equal(t, turnA, b.server.Calls()[1].GetTurn.GetTurnId())
	require.Equal(t, replyB, b.server.Calls()[2].GetTurn.GetReplyId())
	last, err := b.client.LastTurn(t.Context(), conversation)
	require.NoError(t, err)
	require.Equal(t, replyB, last.GetReply().GetReplyId())
	last, err = b.client.LastTurn(t.Context(), conversation)
	require.NoError(t, err)
	require.Nil(t, last)
}

func TestEachWaitIsToldWithItsCause(t *testing.T) {
	var causes []codes.Code
	b := setup(t, func(o *client.Options) {
		o.Trying = func(cause *client.Error, wait time.Duration) {
			require.Positive(t, wait)
			causes = append(causes, cause.Code)
		}
	}, fake.Fail(status.Error(codes.Unavailable, "gone")), fake.Fail(fake.Refusal(codes.Aborted, "CONFLICT", "SAME_ID_AFTER_WAIT", time.Second)), whole())
	require.NoError(t, watch(t.Context(), b.send(t), nil).err)
	require.Equal(t, []codes.Code{codes.Unavailable, codes.Aborted}, causes)
}
