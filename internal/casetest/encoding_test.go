package casetest

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func TestC74ANULIsDroppedOnceAndLosesNothing(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(scripted.Rule{Name: "nul", Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "paid\x00 for"}}}})
		in := askOf(model)
		in.Content[0].GetText().Text = "a\x00b"
		got := s.turn(in, nil).completes()
		require.Equal(t, "paid for", got.text)
		clean := askOf(model)
		clean.ConversationId, clean.TurnId = in.GetConversationId(), in.GetTurnId()
		clean.Content[0].GetText().Text = "ab"
		require.Equal(t, replayed, s.turn(clean, nil).completes().result, "the hash is of what is kept")
		read := s.read(in.GetConversationId(), in.GetTurnId())
		require.Equal(t, "ab", read.GetTurn().GetContent()[0].GetText().GetText())
		require.Equal(t, "paid for", stored(read.GetReplies()[0]))
		history, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: in.GetConversationId()})
		require.NoError(t, err)
		require.Len(t, history.GetEntries(), 1)
		w.paid(1, 1)
	})
}

func TestC75CharactersCutByTheNetworkArriveWhole(t *testing.T) {
	const text = "naive 你好🦀 👩‍👩‍👧"
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(scripted.Rule{Name: "bytes", Plan: scripted.Plan{Blocks: []scripted.Block{{Text: text}}, Write: scripted.WriteByte}})
		in := askOf(model)
		rpc, err := s.turns.Turn(w.ctx, &turnsv1.TurnRequest{Input: in})
		require.NoError(t, err)
		var got string
		for {
			m, err := rpc.Recv()
			require.NoError(t, err)
			e := m.GetEvent()
			if d := e.GetDelta(); d != nil {
				require.True(t, utf8.ValidString(d.GetText()))
				require.Equal(t, int(e.GetNextOffset()-e.GetOffset()), len(d.GetText()))
				got += d.GetText()
			}
			if e.GetCompleted() != nil {
				break
			}
		}
		require.Equal(t, text, got)
		require.Equal(t, text, stored(s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]))
	})
}

func TestC77SizesAreBoundedBothWays(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		_, err := s.submit(ask(newID(), newID(), strings.Repeat("x", 5<<20)))
		meta := w.fails(err, codes.InvalidArgument, "CONTENT_TOO_LARGE", "DO_NOT_RETRY")
		require.Equal(t, "4194304", meta["limit"])
		w.paid(0, 0)
		w.stands(map[string]int{qUsers: 0, qConvs: 0})

		const deltas, size = 96, 64 << 10 // a reply of 6 MB
		w.script(scripted.Rule{Name: "long", Plan: scripted.Plan{Write: scripted.WriteOnce, Reply: &scripted.Reply{Deltas: deltas, DeltaBytes: size, Seed: 1}}})
		conversation := newID()
		first := ask(conversation, newID(), "one")
		got := s.turn(first, nil).completes()
		require.Len(t, got.text, deltas*size)
		read := s.read(conversation, first.GetTurnId()).GetReplies()[0]
		require.True(t, read.GetContentTruncated())
		require.LessOrEqual(t, len(stored(read)), 1<<20+8)
		require.Equal(t, uint32(2+deltas*size), read.GetLength())

		w.script(plain(4))
		conversation = newID()
		for range 4 {
			s.turn(ask(conversation, newID(), strings.Repeat("y", 600<<10)), nil).completes()
		}
		entries, pages, token := 0, 0, ""
		for ; pages == 0 || token != ""; pages++ {
			page, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation, PageToken: token})
			require.NoError(t, err)
			require.NotEmpty(t, page.GetEntries())
			entries += len(page.GetEntries())
			token = page.GetNextPageToken()
		}
		require.Equal(t, 4, entries)
		require.Greater(t, pages, 1)
	})
}

func TestBadInputIsRefusedByFieldAndWritesNothing(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		elsewhere := s.turn(ask(newID(), newID(), "another conversation"), nil).completes()
		for name, c := range map[string]struct {
			change func(*turnsv1.TurnInput)
			code   codes.Code
			reason string
		}{
			"no content":         {func(in *turnsv1.TurnInput) { in.Content = nil }, codes.InvalidArgument, "CONTENT_EMPTY"},
			"empty text":         {func(in *turnsv1.TurnInput) { in.Content[0].GetText().Text = "" }, codes.InvalidArgument, "CONTENT_EMPTY"},
			"blank text":         {func(in *turnsv1.TurnInput) { in.Content[0].GetText().Text = " \n\t" }, codes.InvalidArgument, "CONTENT_EMPTY"},
			"NUL alone":          {func(in *turnsv1.TurnInput) { in.Content[0].GetText().Text = "\x00" }, codes.InvalidArgument, "CONTENT_EMPTY"},
			"a bad turn id":      {func(in *turnsv1.TurnInput) { in.TurnId = "one" }, codes.InvalidArgument, "INVALID_FIELD"},
			"a bad conversation": {func(in *turnsv1.TurnInput) { in.ConversationId = "one" }, codes.InvalidArgument, "INVALID_FIELD"},
			"an unknown model":   {func(in *turnsv1.TurnInput) { in.Options = &turnsv1.GenerationOptions{Model: "gone"} }, codes.InvalidArgument, "UNKNOWN_MODEL"},
			"a foreign parent":   {func(in *turnsv1.TurnInput) { in.Parent = &turnsv1.TurnInput_ParentId{ParentId: elsewhere.reply} }, codes.NotFound, "NOT_FOUND"},
		} {
			t.Run(name, func(t *testing.T) {
				in := ask(newID(), newID(), "hi")
				c.change(in)
				_, err := s.submit(in)
				w.fails(err, c.code, c.reason, "DO_NOT_RETRY")
			})
		}
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1, qReplies: 1, qConvs: 1, qLedger: 1})
	})
}
