package casetest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns/live"
)

// onEachBus plays a case with workers that only poll, that hear hints, and that hear the text itself.
func onEachBus(t *testing.T, play func(*testing.T, *world)) {
	for name, bus := range map[string]func() *live.Memory{
		"poll":   func() *live.Memory { return nil },
		"hints":  func() *live.Memory { return live.NewMemory(0) },
		"pieces": func() *live.Memory { return live.NewMemory(4 << 10) },
	} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				w.bus = bus()
				play(t, w)
			})
		})
	}
}

func TestC30AResumeOfferedTwiceToAnotherReplicaIsAnsweredTwiceTheSame(t *testing.T) {
	onEachBus(t, func(t *testing.T, w *world) {
		owner, other, third := w.serve(), w.serve(), w.serve()
		w.script(gate("", "mid", 64, 20))
		in := ask(newID(), newID(), "hi")
		running := owner.turn(in, nil)
		seen := running.at(1 + 19*16)
		twice := []*stream{
			other.follow(in.GetConversationId(), seen.reply, 100), other.follow(in.GetConversationId(), seen.reply, 100),
			third.turn(in, &turnsv1.Cursor{ReplyId: seen.reply, Offset: 100}),
		}
		for _, s := range twice {
			s.at(1 + 19*16)
		}
		late := other.turn(in, nil) // and once more, from the beginning, while the mirror is there
		late.at(1 + 19*16)
		require.NoError(t, w.provider.OpenGate("mid"))
		text := running.completes().text
		for _, s := range twice {
			require.Equal(t, text[99:], s.completes().text)
		}
		got := late.completes()
		require.Equal(t, attached, got.result)
		require.Equal(t, text, got.text)
		w.paid(1, 1)
		w.stands(map[string]int{qReplies: 1, qLive: 1, qOpen: 0})
	})
}

// slowly delivers a turn over a connection that takes little ahead of its reader, and reads until the reply has started.
func (w *worker) slowly(in *turnsv1.TurnInput) (next func() *turnsv1.Event, leave func()) {
	conn := w.harness.Dial(w.t, grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16), grpc.WithReadBufferSize(0))
	ctx, leave := context.WithCancel(w.ctx)
	rpc, err := turnsv1.NewTurnServiceClient(conn).Turn(ctx, &turnsv1.TurnRequest{Input: in})
	require.NoError(w.t, err)
	next = func() *turnsv1.Event {
		m, err := rpc.Recv()
		require.NoError(w.t, err)
		return m.GetEvent()
	}
	for next().GetStarted() == nil {
	}
	return next, leave
}

func TestC39ASlowReaderOnAnotherReplicaCatchesUpFromWhereItIs(t *testing.T) {
	onEachBus(t, func(t *testing.T, w *world) {
		owner, other, third := w.serve(), w.serve(), w.serve()
		const deltas, size = 5000, 128 // more than any window between the two ends, and than a mirror keeps
		long := gate("", "mid", deltas, 20)
		long.Plan.Reply.DeltaBytes = size
		w.script(long)
		in := ask(newID(), newID(), "hi")
		reply := owner.turn(in, nil).at(1 + 19*size).reply
		next, leave := other.slowly(in)
		require.NoError(t, w.provider.OpenGate("mid"))
		w.eventually(func() bool { return w.number(qLive) == 1 && w.number(qInFlight) == 0 }) // nobody waits for the reader

		var text strings.Builder
		var offset uint32
		events := 0
		for text.Len() < deltas*size/2 {
			e := next()
			text.WriteString(e.GetDelta().GetText())
			require.True(t, e.GetNextOffset() == 0 || e.GetOffset() == offset, "neither a gap nor a repeat")
			offset, events = max(offset, e.GetNextOffset()), events+1
		}
		require.Less(t, events, deltas/10, "who is behind gets more at once")
		leave()
		rest := third.follow(in.GetConversationId(), reply, offset).completes()
		require.Equal(t, deltas*size, text.Len()+len(rest.text), "it went on where it was, and did not begin again")
		require.Equal(t, owner.turn(in, nil).completes().text, text.String()+rest.text)
		w.paid(1, 1)
	})
}
