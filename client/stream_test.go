package client_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/client"
	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func accepted(r turnsv1.DeliveryResult) *turnsv1.Event { return fake.Accepted(conversation, turnA, r) }

func whole() fake.Answer {
	return fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello, fake.Completed(hello))...)
}

func TestAWholeReplyComesWithoutGapsAndEndsInOneTerminalEvent(t *testing.T) {
	b := setup(t, nil, whole())
	s := b.send(t)
	got := watch(t.Context(), s, nil)
	require.NoError(t, got.err)
	require.Equal(t, []string{"accepted", "started", "block_started", "delta", "delta", "delta", "block_completed", "completed"}, got.kinds)
	require.Equal(t, "Hello wörld", got.text)
	require.Equal(t, "Hello wörld", s.Reply().Text())
	require.Equal(t, isNew, s.Result())
	require.Equal(t, conversation, s.ConversationID())
	require.Equal(t, turnA, s.TurnID())
	require.Empty(t, watch(t.Context(), s, nil).kinds, "nothing comes after the end")
	require.Nil(t, b.stored(t), "a turn that is over leaves no record")
	require.Empty(t, b.waits)
}

func TestATurnIsRecordedBeforeItIsSent(t *testing.T) {
	b := setup(t, nil)
	b.server = fake.Start(t, func(c *fake.Call) error {
		require.NotNil(t, b.stored(t))
		require.Equal(t, c.Turn.GetInput().GetTurnId(), b.stored(t).TurnID)
		return whole()(c)
	})
	b.client = b.restart(t)
	require.NoError(t, watch(t.Context(), b.send(t), nil).err)
}

func TestATurnThatCannotBeRecordedIsNotSent(t *testing.T) {
	b := setup(t, func(o *client.Options) { o.Record = fullDisk{} }, whole())
	_, err := b.client.Send(t.Context(), say("hi"))
	require.ErrorIs(t, err, io.ErrShortWrite)
	require.Empty(t, b.server.Calls())
}

// fullDisk is a store that keeps nothing.
type fullDisk struct{}

func (fullDisk) Save(context.Context, *client.Record) error   { return io.ErrShortWrite }
func (fullDisk) Load(context.Context) (*client.Record, error) { return nil, nil }
func (fullDisk) Clear(context.Context) error                  { return nil }

func TestIDsOfTurnsAreMintedDerivedOrChecked(t *testing.T) {
	b := setup(t, nil)
	in := say("hi")
	in.TurnId = ""
	s, err := b.client.Send(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, uuid.Version(7), uuid.MustParse(s.TurnID()).Version())
	require.Empty(t, in.GetTurnId(), "the caller's input stays as it was")

	in.TurnId = client.TurnIDFor("slack:Ev1")
	require.Equal(t, uuid.Version(5), uuid.MustParse(in.TurnId).Version())
	require.Equal(t, in.TurnId, client.TurnIDFor("slack:Ev1"))
	require.NotEqual(t, in.TurnId, client.TurnIDFor("slack:Ev2"))

	in.TurnId = "0190B6A0-0000-7000-8000-0000000000A0"
	s, err = b.client.Send(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, turnA, s.TurnID())
	for _, bad := range []string{"msg_1", "{0190b6a0-0000-7000-8000-0000000000a0}", "0190b6a0000070008000000000000 0a0"} {
		in.TurnId = bad
		_, err = b.client.Send(t.Context(), in)
		require.ErrorContains(t, err, "TurnIDFor")
	}
	_, err = b.client.Send(t.Context(), nil)
	require.Error(t, err)
}

// Case C01, C06: the answer to the first delivery is lost on the wire, and the second is lost too.
func TestALostAnswerIsAskedForAgainUnderTheSameID(t *testing.T) {
	b := setup(t, nil, fake.Cut(), fake.Fail(status.Error(codes.Unavailable, "proxy")),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), hello, fake.Completed(hello))...))
	s := b.send(t)
	got := watch(t.Context(), s, nil)
	require.NoError(t, got.err)
	require.Equal(t, "Hello wörld", got.text)
	require.Equal(t, attached, s.Result())
	b.requireOneTurn(t, 3)
	var sources []turnsv1.DeliverySource
	for _, c := range b.server.Calls() {
		sources = append(sources, c.Turn.GetInput().GetSource())
		require.Empty(t, c.Header.Get("grpc-previous-rpc-attempts"), "gRPC itself tries nothing again")
	}
	require.Equal(t, []turnsv1.DeliverySource{0, 1, 1}, sources, "repeats say what they are")
}

func TestASourceThatTheCallerNamedIsKept(t *testing.T) {
	b := setup(t, nil, fake.Cut(), whole())
	in := say("hi")
	in.Source = turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY
	s, err := b.client.Send(t.Context(), in)
	require.NoError(t, err)
	require.NoError(t, watch(t.Context(), s, nil).err)
	for _, c := range b.server.Calls() {
		require.Equal(t, turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY, c.Turn.GetInput().GetSource())
	}
}

// Case C34: a proxy ends the stream in good order before the reply is over.
func TestAStreamThatEndsWithoutATerminalEventIsFollowedFromTheCursor(t *testing.T) {
	b := setup(t, nil,
		fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:3])...),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), fake.Heartbeat(replyA), fake.From(hello, 7)[:1])...),
		fake.Play(fake.All(accepted(replayed), fake.Started(replyA, 1), fake.From(hello, 13), fake.Completed(hello))...))
	s := b.send(t)
	got := watch(t.Context(), s, nil)
	require.NoError(t, got.err)
	require.Equal(t, "Hello wörld", got.text)
	require.Equal(t, []string{"accepted", "started", "block_started", "delta", "delta", "delta", "block_completed", "completed"}, got.kinds,
		"reconnects do not show")
	b.requireOneTurn(t, 3)
	calls := b.server.Calls()
	require.Nil(t, calls[0].Turn.GetCursor())
	require.Equal(t, replyA, calls[1].Turn.GetCursor().GetReplyId())
	require.Equal(t, uint32(7), calls[1].Turn.GetCursor().GetOffset())
	require.Equal(t, uint32(13), calls[2].Turn.GetCursor().GetOffset())
	require.Equal(t, isNew, s.Result())
}

func TestACutInTheMiddleIsMended(t *testing.T) {
	arrived := make(chan struct{})
	b := setup(t, nil, fake.CutWhen(arrived, fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:2])...),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), fake.From(hello, 4), fake.Completed(hello))...))
	got := watch(t.Context(), b.send(t), func(ev *turnsv1.Event) bool {
		if ev.GetDelta().GetText() == "Hel" {
			close(arrived)
		}
		return true
	})
	require.NoError(t, got.err)
	require.Equal(t, "Hello wörld", got.text)
	b.requireOneTurn(t, 2)
}

// Case C30: the same events come twice, within one connection and after a reconnect that begins too early.
func TestRepeatedEventsAreShownOnce(t *testing.T) {
	b := setup(t, nil,
		fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:3], hello[:3], fake.Started(replyA, 1))...),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), hello, hello, fake.Completed(hello), fake.Completed(hello))...))
	got := watch(t.Context(), b.send(t), nil)
	require.NoError(t, got.err)
	require.Equal(t, "Hello wörld", got.text)
	require.Equal(t, []string{"accepted", "started", "block_started", "delta", "delta", "delta", "block_completed", "completed"}, got.kinds)
}

// Case C02: what belongs to another reply is never shown under this turn.
func TestAnotherRepliesEventsAreNeverShown(t *testing.T) {
	b := setup(t, nil,
		fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:2], fake.Text(replyB, "secret"))...),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), fake.From(hello, 4), fake.Completed(hello))...))
	got := watch(t.Context(), b.send(t), nil)
	require.NoError(t, got.err)
	require.Equal(t, "Hello wörld", got.text)
	require.Len(t, b.server.Calls(), 2)
}

func TestARestartDropsWhatWasShown(t *testing.T) {
	other := fake.Text(replyB, "Good ", "day")
	b := setup(t, nil,
		fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:3])...),
		fake.Play(fake.All(accepted(retried), fake.Restarted(replyA, replyB), fake.Started(replyB, 2), other, fake.Completed(other))...))
	s := b.send(t)
	got := watch(t.Context(), s, nil)
	require.NoError(t, got.err)
	require.Equal(t, "Good day", got.text)
	require.Equal(t, "Good day", s.Reply().Text())
	require.Equal(t, replyB, s.Reply().ID())
	require.Contains(t, got.kinds, "restarted")
}

func TestLeavingKeepsTheRecordAndTheStreamCanBeTakenUpAgain(t *testing.T) {
	b := setup(t, nil, fake.Hang(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:2])...),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), fake.From(hello, 4), fake.Completed(hello))...))
	s := b.send(t)
	first := watch(t.Context(), s, func(ev *turnsv1.Event) bool { return ev.GetDelta() == nil })
	require.NoError(t, first.err)
	require.Equal(t, "Hel", first.text)
	require.Equal(t, uint32(4), b.stored(t).Offset, "the cursor is written on leaving")
	rest := watch(t.Context(), s, nil)
	require.NoError(t, rest.err)
	require.Equal(t, "lo wörld", rest.text)
	require.Equal(t, "Hello wörld", s.Reply().Text())
}

func TestACancelledContextEndsTheStreamWithItsOwnErrorAndKeepsTheRecord(t *testing.T) {
	b := setup(t, nil, fake.Hang(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:2])...))
	ctx, cancel := context.WithCancel(t.Context())
	got := watch(ctx, b.send(t), func(ev *turnsv1.Event) bool {
		if ev.GetDelta() != nil {
			cancel()
		}
		return true
	})
	require.ErrorIs(t, got.err, context.Canceled)
	require.Equal(t, uint32(4), b.stored(t).Offset)
	require.Equal(t, replyA, b.stored(t).ReplyID)
	require.Len(t, b.server.Calls(), 1)
}

func TestALaterTurnsRecordIsNotTouchedByAnEarlierStream(t *testing.T) {
	b := setup(t, nil, whole())
	first := b.send(t)
	in := say("later")
	in.TurnId = replyB
	_, err := b.client.Send(t.Context(), in)
	require.NoError(t, err)
	require.NoError(t, watch(t.Context(), first, nil).err)
	require.Equal(t, replyB, b.stored(t).TurnID)
	require.Empty(t, b.stored(t).ReplyID)
}

// Case C39: a server that cuts off slow readers makes them go on where they were, however often.
func TestAReaderThatIsCutOffAgainAndAgainStillArrives(t *testing.T) {
	var answers []fake.Answer
	log := fake.Text(replyA, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")
	for i := range log {
		answers = append(answers, fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), log[i:i+1])...))
	}
	answers = append(answers, fake.Play(fake.All(accepted(replayed), fake.Started(replyA, 1), fake.Completed(log))...))
	b := setup(t, func(o *client.Options) { o.MaxReconnects = 1 }, answers...)
	got := watch(t.Context(), b.send(t), nil)
	require.NoError(t, got.err)
	require.Equal(t, "abcdefghijkl", got.text)
}

// Case C24, C29, C37: a reply is found by its id or its turn's, at any time, and followed to its end.
func TestAReplyIsFollowedWithoutSendingAnything(t *testing.T) {
	b := setup(t, nil,
		fake.Play(fake.All(fake.Started(replyA, 1), hello[:3])...),
		fake.Fail(status.Error(codes.Unavailable, "gone")),
		fake.Play(fake.All(fake.Started(replyA, 1), fake.From(hello, 7), fake.Abandoned(hello, turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED, sameIDNow, 0))...))
	s := b.client.Follow(conversation, client.Target{TurnID: turnA}, 0)
	got := watch(t.Context(), s, nil)
	require.NoError(t, got.err)
	require.Equal(t, "Hello wörld", got.text)
	require.Equal(t, "abandoned", got.kinds[len(got.kinds)-1])
	calls := b.server.Calls()
	require.Equal(t, turnA, calls[0].Follow.GetTurnId())
	require.Equal(t, replyA, calls[1].Follow.GetReplyId(), "once known, it is the reply that is followed")
	require.Equal(t, uint32(7), calls[2].Follow.GetOffset())
	require.ErrorIs(t, s.Again(t.Context()), client.ErrNotAgain)
	require.Nil(t, b.stored(t))
}

func TestFollowingFromAnOffsetGivesWhatComesAfterIt(t *testing.T) {
	b := setup(t, nil, fake.Play(fake.All(fake.Started(replyA, 1), hello, fake.Completed(hello))...))
	s := b.client.Follow(conversation, client.Target{ReplyID: replyA}, 7)
	got := watch(t.Context(), s, nil)
	require.NoError(t, got.err)
	require.Equal(t, "wörld", got.text)
	require.Equal(t, uint32(7), b.server.Calls()[0].Follow.GetOffset())
}

func TestTheRealPauseEndsWithItsContext(t *testing.T) {
	server := fake.Start(t, fake.Fail(fake.Refusal(codes.Unavailable, "STORE_UNAVAILABLE", "SAME_ID_AFTER_WAIT", 30*time.Second)))
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan struct{})
	c := client.New(dial(t, server), client.Options{Rand: func() float64 { close(waiting); return 0 }})
	s, err := c.Send(ctx, say("hi"))
	require.NoError(t, err)
	done := make(chan seen)
	go func() { done <- watch(ctx, s, nil) }()
	<-waiting
	cancel()
	require.ErrorIs(t, (<-done).err, context.Canceled)
}
