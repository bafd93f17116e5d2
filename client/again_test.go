package client_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/client"
	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func abandonedPart(advice turnsv1.RetryAdvice, delay time.Duration) fake.Answer {
	return fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:3],
		fake.Abandoned(hello[:3], turnsv1.AbandonReason_ABANDON_REASON_SHUTDOWN, advice, delay))...)
}

func secondAttempt() fake.Answer {
	other := fake.Text(replyB, "Good day")
	return fake.Play(fake.All(accepted(retried), fake.Restarted(replyA, replyB), fake.Started(replyB, 2), other, fake.Completed(other))...)
}

func auto(o *client.Options) { o.Retry = client.Auto }

func TestAnAbandonedReplyIsHandedOverAndAgainSendsTheSameTurn(t *testing.T) {
	b := setup(t, nil, abandonedPart(sameIDAfter, 3*time.Second), secondAttempt())
	s := b.send(t)
	got := watch(t.Context(), s, nil)
	require.NoError(t, got.err)
	require.Equal(t, "abandoned", got.kinds[len(got.kinds)-1])
	require.Equal(t, "Hello ", got.text)
	require.Len(t, b.server.Calls(), 1, "nothing that can cost money happens unasked")
	require.Nil(t, b.stored(t))

	require.NoError(t, s.Again(t.Context()))
	require.Equal(t, uint32(7), b.stored(t).Offset, "it is in flight again, so it is recorded again")
	got = watch(t.Context(), s, nil)
	require.NoError(t, got.err)
	require.Equal(t, []string{"accepted", "restarted", "started", "block_started", "delta", "block_completed", "completed"}, got.kinds)
	require.Equal(t, "Good day", s.Reply().Text())
	require.Equal(t, retried, s.Result())
	require.Equal(t, []time.Duration{3 * time.Second}, b.waits)
	b.requireOneTurn(t, 2)
	require.Equal(t, uint32(7), b.server.Calls()[1].Turn.GetCursor().GetOffset())
	require.Nil(t, b.stored(t))
}

func TestAgainIsRefusedWhereItDoesNotHelp(t *testing.T) {
	t.Run("before an end", func(t *testing.T) {
		b := setup(t, nil)
		require.ErrorIs(t, b.send(t).Again(t.Context()), client.ErrNotAgain)
	})
	t.Run("after a whole reply", func(t *testing.T) {
		b := setup(t, nil, whole())
		s := b.send(t)
		require.NoError(t, watch(t.Context(), s, nil).err)
		require.ErrorIs(t, s.Again(t.Context()), client.ErrNotAgain)
	})
	for _, advice := range []turnsv1.RetryAdvice{
		turnsv1.RetryAdvice_RETRY_ADVICE_NEW_ID, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, turnsv1.RetryAdvice_RETRY_ADVICE_DO_NOT_RETRY,
	} {
		t.Run("with "+advice.String(), func(t *testing.T) {
			b := setup(t, auto, abandonedPart(advice, 0))
			s := b.send(t)
			require.NoError(t, watch(t.Context(), s, nil).err)
			require.ErrorIs(t, s.Again(t.Context()), client.ErrNotAgain)
			require.Len(t, b.server.Calls(), 1, "nor does Auto try")
		})
	}
}

func TestTheSameEndTwiceIsHandedOutTwice(t *testing.T) {
	end := fake.Abandoned(hello[:3], turnsv1.AbandonReason_ABANDON_REASON_SHUTDOWN, sameIDNow, 0)
	b := setup(t, nil, abandonedPart(sameIDNow, 0), fake.Play(fake.All(accepted(replayed), fake.Started(replyA, 1), end)...))
	s := b.send(t)
	require.NoError(t, watch(t.Context(), s, nil).err)
	require.NoError(t, s.Again(t.Context()))
	require.Equal(t, []string{"accepted", "abandoned"}, watch(t.Context(), s, nil).kinds)
}

func TestAutoSendsTheTurnAgainWithinItsBound(t *testing.T) {
	t.Run("until it is answered", func(t *testing.T) {
		b := setup(t, auto, abandonedPart(sameIDAfter, 2*time.Second), secondAttempt())
		s := b.send(t)
		got := watch(t.Context(), s, nil)
		require.NoError(t, got.err)
		require.Equal(t, "Good day", got.text)
		require.NotContains(t, got.kinds, "abandoned")
		require.Equal(t, []time.Duration{2 * time.Second}, b.waits)
		b.requireOneTurn(t, 2)
	})
	t.Run("or the bound is reached", func(t *testing.T) {
		b := setup(t, func(o *client.Options) { o.Retry, o.MaxAgain = client.Auto, 2 },
			abandonedPart(sameIDNow, 0), abandonedPart(sameIDNow, 0), abandonedPart(sameIDNow, 0))
		got := watch(t.Context(), b.send(t), nil)
		require.NoError(t, got.err)
		require.Equal(t, "abandoned", got.kinds[len(got.kinds)-1])
		b.requireOneTurn(t, 3)
	})
	t.Run("or the wait is too long", func(t *testing.T) {
		b := setup(t, auto, abandonedPart(sameIDAfter, time.Hour))
		got := watch(t.Context(), b.send(t), nil)
		require.Equal(t, "abandoned", got.kinds[len(got.kinds)-1])
		require.Empty(t, b.waits)
	})
}

func TestAHeldReplyIsNotOverSoItsRecordStays(t *testing.T) {
	held := fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:3], fake.Held(hello[:3], 30*time.Second))...)
	b := setup(t, nil, held, fake.Play(fake.All(accepted(replayed), fake.Started(replyA, 1), fake.From(hello, 7), fake.Completed(hello))...))
	s := b.send(t)
	got := watch(t.Context(), s, nil)
	require.Equal(t, "held", got.kinds[len(got.kinds)-1])
	require.Equal(t, turnA, b.stored(t).TurnID)
	require.NoError(t, s.Again(t.Context()))
	got = watch(t.Context(), s, nil)
	require.Equal(t, "wörld", got.text, "it goes on in the same reply")
	require.Equal(t, []time.Duration{30 * time.Second}, b.waits)
	require.Nil(t, b.stored(t))
}
