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

// errorOf asserts that a stream ended with an *Error.
func errorOf(t *testing.T, err error) *client.Error {
	t.Helper()
	var e *client.Error
	require.ErrorAs(t, err, &e)
	return e
}

func TestAdviceToSendAgainIsObeyed(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal error
		wait    []time.Duration // with chance always in the middle
	}{
		"at once":                    {fake.Refusal(codes.Aborted, "CONFLICT", "SAME_ID_NOW", 0), nil},
		"at once, after a moment":    {fake.Refusal(codes.Unavailable, "DRAINING", "SAME_ID_NOW", time.Second), []time.Duration{time.Second}},
		"after a wait":               {fake.Refusal(codes.FailedPrecondition, "CONVERSATION_BUSY", "SAME_ID_AFTER_WAIT", 7*time.Second), []time.Duration{7125 * time.Millisecond}},
		"after a wait left open":     {fake.Refusal(codes.Internal, "INTERNAL", "SAME_ID_AFTER_WAIT", 0), []time.Duration{125 * time.Millisecond}},
		"by the link, not by turnd":  {status.Error(codes.Unavailable, "no backend"), []time.Duration{125 * time.Millisecond}},
		"by a reason not known here": {fake.Refusal(codes.Unavailable, "NEW_IN_2030", "SAME_ID_AFTER_WAIT", time.Second), []time.Duration{1125 * time.Millisecond}},
		"by an advice not known":     {fake.Refusal(codes.Unavailable, "OVERLOADED", "ASK_MOM", time.Second), []time.Duration{1125 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, nil, fake.Fail(tc.refusal), whole())
			got := watch(t.Context(), b.send(t), nil)
			require.NoError(t, got.err)
			require.Equal(t, "Hello wörld", got.text)
			require.Equal(t, tc.wait, b.waits)
			b.requireOneTurn(t, 2)
		})
	}
}

func TestARefusalThatSendingAgainDoesNotCureIsReturnedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal error
		advice  turnsv1.RetryAdvice
		reason  turnsv1.ErrorReason
		kept    bool // the record is kept, as the turn may be running
	}{
		"new id":                 {fake.Refusal(codes.AlreadyExists, "TURN_ID_REUSED", "NEW_ID", 0), turnsv1.RetryAdvice_RETRY_ADVICE_NEW_ID, turnsv1.ErrorReason_ERROR_REASON_TURN_ID_REUSED, false},
		"regenerate":             {fake.Refusal(codes.FailedPrecondition, "WRONG_STATE", "REGENERATE", 0), turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, turnsv1.ErrorReason_ERROR_REASON_WRONG_STATE, false},
		"give up":                {fake.Refusal(codes.InvalidArgument, "CONTENT_EMPTY", "DO_NOT_RETRY", 0), turnsv1.RetryAdvice_RETRY_ADVICE_DO_NOT_RETRY, turnsv1.ErrorReason_ERROR_REASON_CONTENT_EMPTY, false},
		"who are you":            {fake.Refusal(codes.Unauthenticated, "UNAUTHENTICATED", "DO_NOT_RETRY", 0), turnsv1.RetryAdvice_RETRY_ADVICE_DO_NOT_RETRY, turnsv1.ErrorReason_ERROR_REASON_UNAUTHENTICATED, true},
		"a proxy does not know":  {status.Error(codes.Unimplemented, "unknown service"), turnsv1.RetryAdvice_RETRY_ADVICE_DO_NOT_RETRY, 0, true},
		"a proxy finds it large": {status.Error(codes.ResourceExhausted, "message larger than max"), turnsv1.RetryAdvice_RETRY_ADVICE_DO_NOT_RETRY, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, nil, fake.Fail(tc.refusal))
			got := watch(t.Context(), b.send(t), nil)
			e := errorOf(t, got.err)
			require.Equal(t, tc.advice, e.Advice)
			require.Equal(t, tc.reason, e.Reason)
			require.Equal(t, status.Code(tc.refusal), e.Code)
			require.Equal(t, status.Code(tc.refusal), status.Code(e), "gRPC's own helpers see through it")
			require.Equal(t, tc.kept, b.stored(t) != nil)
			require.Empty(t, b.waits)
			require.Len(t, b.server.Calls(), 1)
		})
	}
}

func TestAStatusAfterAcceptedOnlyMeansThatTheStreamWasLost(t *testing.T) {
	b := setup(t, nil,
		fake.Fail(fake.Refusal(codes.PermissionDenied, "SCOPE_MISSING", "DO_NOT_RETRY", 0), fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:2])...),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), fake.From(hello, 4), fake.Completed(hello))...))
	got := watch(t.Context(), b.send(t), nil)
	require.NoError(t, got.err)
	require.Equal(t, "Hello wörld", got.text)
}

func TestTriesThatBringNothingAreBoundedWithABackoffThatGrows(t *testing.T) {
	var answers []fake.Answer
	for range 5 {
		answers = append(answers, fake.Play(accepted(attached)))
	}
	b := setup(t, func(o *client.Options) { o.MaxReconnects, o.MaxBackoff = 4, time.Second }, answers...)
	got := watch(t.Context(), b.send(t), nil)
	require.ErrorIs(t, got.err, client.ErrGaveUp)
	require.Equal(t, sameIDNow, errorOf(t, got.err).Advice, "the turn can still be sent again")
	require.Equal(t, []time.Duration{125 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, 500 * time.Millisecond}, b.waits)
	b.requireOneTurn(t, 5)
	require.NotNil(t, b.stored(t), "and Resume can do so later")
}

func TestANegativeBoundMeansNoTriesAtAll(t *testing.T) {
	b := setup(t, func(o *client.Options) { o.MaxReconnects = -1 }, fake.Cut())
	require.ErrorIs(t, watch(t.Context(), b.send(t), nil).err, client.ErrGaveUp)
	require.Len(t, b.server.Calls(), 1)
}

func TestHeartbeatsCountAsProgress(t *testing.T) {
	quiet := fake.Play(fake.All(accepted(attached), fake.Heartbeat(""))...)
	b := setup(t, func(o *client.Options) { o.MaxReconnects = 1 }, quiet, quiet, quiet, whole())
	require.NoError(t, watch(t.Context(), b.send(t), nil).err)
}

func TestADelayThatIsTooLongIsLeftToTheCaller(t *testing.T) {
	b := setup(t, nil, fake.Fail(fake.Refusal(codes.ResourceExhausted, "QUOTA_EXCEEDED", "SAME_ID_AFTER_WAIT", 5*time.Hour)))
	e := errorOf(t, watch(t.Context(), b.send(t), nil).err)
	require.Equal(t, 5*time.Hour, e.Delay)
	require.Equal(t, sameIDAfter, e.Advice)
	require.Empty(t, b.waits)
}

func TestAStreamCanBeTakenUpAfterAnError(t *testing.T) {
	b := setup(t, func(o *client.Options) { o.MaxReconnects = -1 },
		fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:3])...),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), fake.From(hello, 7), fake.Completed(hello))...))
	s := b.send(t)
	require.ErrorIs(t, watch(t.Context(), s, nil).err, client.ErrGaveUp)
	rest := watch(t.Context(), s, nil)
	require.NoError(t, rest.err)
	require.Equal(t, "wörld", rest.text)
}

func TestACursorThatIsRefusedIsForgottenSoThatResumeGetsThrough(t *testing.T) {
	b := setup(t, nil,
		fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:3])...),
		fake.Fail(fake.Refusal(codes.InvalidArgument, "INVALID_CURSOR", "DO_NOT_RETRY", 0)),
		whole())
	require.Equal(t, turnsv1.ErrorReason_ERROR_REASON_INVALID_CURSOR, errorOf(t, watch(t.Context(), b.send(t), nil).err).Reason)
	s, err := b.client.Resume(t.Context(), client.FromCursor)
	require.NoError(t, err)
	require.Equal(t, "Hello wörld", watch(t.Context(), s, nil).text)
	require.Nil(t, b.server.Calls()[2].Turn.GetCursor())
}

func TestAWaitThatIsCutShortEndsTheStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := setup(t, func(o *client.Options) {
		o.Wait = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	}, fake.Cut())
	require.ErrorIs(t, watch(ctx, b.send(t), nil).err, context.Canceled)
}

func TestErrorsSayWhatTheServerSaid(t *testing.T) {
	b := setup(t, nil, fake.Fail(fake.Refusal(codes.NotFound, "NOT_FOUND", "DO_NOT_RETRY", 0)))
	e := errorOf(t, watch(t.Context(), b.send(t), nil).err)
	require.EqualError(t, e, "NOT_FOUND: refused for a test")
	require.Equal(t, map[string]string{"retry": "DO_NOT_RETRY"}, e.Metadata)
}
