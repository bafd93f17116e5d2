package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/turnd/turnd/client"
	"github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	conversation = "0190b6a0-0000-7000-8000-00000000c000"
	turnA        = "0190b6a0-0000-7000-8000-0000000000a0"
	replyA       = "0190b6a0-0000-7000-8000-0000000000a1"
	replyB       = "0190b6a0-0000-7000-8000-0000000000b1"

	isNew    = turnsv1.DeliveryResult_DELIVERY_RESULT_NEW
	attached = turnsv1.DeliveryResult_DELIVERY_RESULT_ATTACHED
	replayed = turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED
	retried  = turnsv1.DeliveryResult_DELIVERY_RESULT_RETRIED

	sameIDNow   = turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW
	sameIDAfter = turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT
)

// hello is the reply that most servers of these tests stream.
var hello = clienttest.Text(replyA, "Hel", "lo ", "wörld")

// bed is a client, its server, and a clock that moves only when the client waits.
type bed struct {
	server *clienttest.Server
	client *client.Client
	record client.RecordStore
	now    time.Time
	waits  []time.Duration
}

func (b *bed) options() client.Options {
	return client.Options{
		Record: b.record,
		Now:    func() time.Time { return b.now },
		Rand:   func() float64 { return 0.5 },
		Wait: func(ctx context.Context, d time.Duration) error {
			b.waits = append(b.waits, d)
			b.now = b.now.Add(d)
			return ctx.Err()
		},
	}
}

// setup makes a bed; change may alter the options.
func setup(t *testing.T, change func(*client.Options), answers ...clienttest.Answer) *bed {
	t.Helper()
	b := &bed{server: clienttest.Start(t, answers...), record: &client.MemoryRecord{}, now: time.Unix(1_800_000_000, 0)}
	o := b.options()
	if change != nil {
		change(&o)
		b.record = o.Record
	}
	b.client = client.New(dial(t, b.server), o)
	return b
}

// restart is what a new process has: a new client on the same record.
func (b *bed) restart(t *testing.T) *client.Client { return client.New(dial(t, b.server), b.options()) }

func dial(t *testing.T, s *clienttest.Server) *grpc.ClientConn {
	t.Helper()
	conn, err := client.Dial(s.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}

func say(text string) *turnsv1.TurnInput {
	return &turnsv1.TurnInput{ConversationId: conversation, TurnId: turnA, Content: []*turnsv1.Block{
		{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}}}
}

func (b *bed) send(t *testing.T) *client.Stream {
	t.Helper()
	s, err := b.client.Send(t.Context(), say("hi"))
	require.NoError(t, err)
	return s
}

func (b *bed) stored(t *testing.T) *client.Record {
	t.Helper()
	r, err := b.record.Load(t.Context())
	require.NoError(t, err)
	return r
}

// seen is what a caller gets who prints each delta as it comes and obeys restarted.
type seen struct {
	text   string
	kinds  []string
	events []*turnsv1.Event
	err    error
}

// watch ranges over a stream to its end. at may be nil; false from it leaves the loop.
func watch(ctx context.Context, s *client.Stream, at func(*turnsv1.Event) bool) seen {
	var got seen
	for ev, err := range s.Events(ctx) {
		if err != nil {
			got.err = err
			break
		}
		got.events = append(got.events, ev)
		got.kinds = append(got.kinds, kindOf(ev))
		got.text += ev.GetDelta().GetText()
		if r := ev.GetRestarted(); r != nil && !r.GetContinues() {
			got.text = ""
		}
		if at != nil && !at(ev) {
			break
		}
	}
	return got
}

func kindOf(ev *turnsv1.Event) string {
	field := ev.ProtoReflect().WhichOneof(ev.ProtoReflect().Descriptor().Oneofs().ByName("kind"))
	return string(field.Name())
}

// requireOneTurn says that every call carried the same turn: id and content.
func (b *bed) requireOneTurn(t *testing.T, calls int) {
	t.Helper()
	all := b.server.Calls()
	require.Len(t, all, calls)
	for _, c := range all {
		require.Equal(t, all[0].Turn.GetInput().GetTurnId(), c.Turn.GetInput().GetTurnId())
		require.Equal(t, all[0].Turn.GetInput().GetConversationId(), c.Turn.GetInput().GetConversationId())
		require.Equal(t, "hi", c.Turn.GetInput().GetContent()[0].GetText().GetText())
	}
}
