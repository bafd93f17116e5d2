package casetest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func TestC29AReplyKnownFromItsFirstEventIsFoundOnEveryReplica(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(gate("", "mid", 64, 20))
		in := ask(newID(), newID(), "hi")
		s := one.turn(in, nil)
		reply := s.until(func(s state) bool { return s.reply != "" }).reply
		s.cancel()
		require.NoError(t, w.provider.WaitGate(w.ctx, "mid", 1))
		w.eventually(func() bool {
			got, err := two.turns.GetTurn(w.ctx, &turnsv1.GetTurnRequest{ConversationId: in.GetConversationId(), Target: &turnsv1.GetTurnRequest_ReplyId{ReplyId: reply}})
			require.NoError(t, err)
			r := got.GetReplies()[0]
			require.Equal(t, reply, r.GetReplyId())
			require.Equal(t, turnsv1.ReplyStatus_REPLY_STATUS_IN_FLIGHT, r.GetStatus())
			if r.GetLength() > 0 {
				require.Equal(t, int(r.GetLength()), 1+len(stored(r)), "the length is that of the content")
			}
			return r.GetLength() >= 1+19*16
		})
		require.NoError(t, w.provider.OpenGate("mid"))
		one.turn(in, nil).completes()
	})
}

func TestC30TwoFollowersFromTheSameCursorHearTheSameBytes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		one, two := w.serve(), w.serve()
		w.script(gate("", "mid", 64, 20))
		in := ask(newID(), newID(), "hi")
		s := one.turn(in, nil)
		seen := s.at(1 + 19*16)
		whole := []*stream{one.follow(in.GetConversationId(), seen.reply, 0), two.follow(in.GetConversationId(), seen.reply, 0)}
		rest := []*stream{one.follow(in.GetConversationId(), seen.reply, 100), two.turn(in, &turnsv1.Cursor{ReplyId: seen.reply, Offset: 100})}
		for _, f := range whole {
			f.at(1 + 19*16)
		}
		require.NoError(t, w.provider.OpenGate("mid"))
		text := s.completes().text
		for _, f := range whole {
			require.Equal(t, text, f.completes().text)
		}
		for _, f := range rest {
			require.Equal(t, text[99:], f.completes().text, "an offset counts the block's start and then bytes")
		}
		for offset := uint32(0); offset <= 1+64*16+1; offset += 97 { // long after the end, from any place
			got := two.follow(in.GetConversationId(), seen.reply, offset).completes()
			require.Equal(t, text[max(int(offset)-1, 0):], got.text)
		}
	})
}

func TestC37LeavingBeforeTheFirstByteStopsNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(scripted.Rule{Name: "slow", Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 8, Seed: 1}, Steps: []scripted.Step{{At: scripted.AtBeforeHeaders, Do: scripted.DoWait, Gate: "start"}}}})
		in := ask(newID(), newID(), "hi")
		left := s.turn(in, nil)
		left.until(func(s state) bool { return s.reply != "" })
		require.NoError(t, w.provider.WaitGate(w.ctx, "start", 1))
		left.cancel()
		left.end()
		require.NoError(t, w.provider.OpenGate("start"))
		w.eventually(func() bool {
			return s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0].GetStatus() == turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE
		})
		got := s.turn(in, nil).completes()
		require.Equal(t, replayed, got.result)
		require.Len(t, got.text, 8*16)
		w.paid(1, 1)
	})
}

func TestC39ASlowReaderGetsEverythingInBiggerEvents(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		const deltas = 40_000 // more than any window between the two ends
		w.script(scripted.Rule{Name: "much", Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: deltas, Seed: 1}}})
		conn := s.harness.Dial(t, grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16), grpc.WithReadBufferSize(0))
		in := ask(newID(), newID(), "hi")
		rpc, err := turnsv1.NewTurnServiceClient(conn).Turn(w.ctx, &turnsv1.TurnRequest{Input: in})
		require.NoError(t, err)
		_, err = rpc.Recv()
		require.NoError(t, err)
		w.eventually(func() bool { return w.number(qLive) == 1 && w.number(qInFlight) == 0 }) // nobody reads, and it completes
		var text strings.Builder
		events := 0
		for done := false; !done; events++ {
			m, err := rpc.Recv()
			require.NoError(t, err)
			text.WriteString(m.GetEvent().GetDelta().GetText())
			done = m.GetEvent().GetCompleted() != nil
		}
		require.Equal(t, deltas*16, text.Len())
		require.Less(t, events, deltas/10)
		require.Equal(t, text.String(), s.turn(in, nil).completes().text)
	})
}

func TestACursorOfAnotherTurnOrInsideACharacterIsRefusedAndCostsNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(scripted.Rule{Name: "runes", Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "é🦀"}}}})
		conversation := newID()
		first := s.turn(ask(conversation, newID(), "one"), nil).completes()
		second := ask(conversation, newID(), "two")
		got := s.turn(second, &turnsv1.Cursor{ReplyId: first.reply, Offset: 1}).end()
		w.fails(got.err, codes.InvalidArgument, "INVALID_CURSOR", "DO_NOT_RETRY")
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1})
		for _, offset := range []uint32{2, 5, 99} {
			got := s.follow(conversation, first.reply, offset).end()
			w.fails(got.err, codes.InvalidArgument, "INVALID_CURSOR", "DO_NOT_RETRY")
		}
	})
}
