package casetest

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Input of a call that any decoding and encoding on the way would change, and a signature that no client may see.
const (
	odd     = `{ "z": 12345678901234567890.10, "a": "naïve 🦀 \u00e9 \\", "z": 1e99 }`
	theSeal = "EqQB-the-seal-of-the-vendor"
)

// callsTools is one reply of thinking, text and two calls.
func callsTools(steps ...scripted.Step) scripted.Rule {
	return scripted.Rule{Name: "calls", Times: 1, Plan: scripted.Plan{Steps: steps, Blocks: []scripted.Block{
		{Thinking: "hm hm", Signature: theSeal}, {Text: "I look."},
		{ToolUse: &scripted.ToolUse{ID: "t1", Name: "look_up", Input: odd}}, {ToolUse: &scripted.ToolUse{ID: "t2", Name: "now"}},
	}}}
}

// offering is a turn with tools on offer.
func offering(model, conversation string, content ...*turnsv1.Block) *turnsv1.TurnInput {
	in := ask(conversation, newID(), "look it up")
	if len(content) > 0 {
		in.Content = content
	}
	in.Options = &turnsv1.GenerationOptions{Model: model, Tools: []*turnsv1.Tool{
		{Name: "look_up", Description: "looks things up", InputSchemaJson: `{"type": "object"}`}, {Name: "now"},
	}}
	if model == "anthropic" {
		in.Options.ThinkingBudgetTokens = 1024
	}
	return in
}

func resultOf(id, text string) *turnsv1.Block {
	r := &turnsv1.ToolResultBlock{ToolUseId: id}
	if text != "" {
		r.Content = []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}}
	}
	return &turnsv1.Block{Kind: &turnsv1.Block_ToolResult{ToolResult: r}}
}

// hear reads a turn's stream to its end: its blocks as they were streamed, and the last event.
func (w *worker) hear(in *turnsv1.TurnInput) (blocks []*turnsv1.Block, last *turnsv1.Event) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	rpc, err := w.turns.Turn(ctx, &turnsv1.TurnRequest{Input: in})
	require.NoError(w.t, err)
	var offset uint32
	for {
		m, err := rpc.Recv()
		if err == io.EOF {
			return blocks, last
		}
		require.NoError(w.t, err)
		last = m.GetEvent()
		require.NotContains(w.t, last.String(), theSeal)
		require.Equal(w.t, offset, last.GetOffset())
		offset = last.GetNextOffset()
		if s := last.GetBlockStarted(); s != nil {
			blocks = append(blocks, blockOf(s))
		}
		if d := last.GetDelta(); d != nil {
			addTo(blocks[d.GetBlockIndex()], d.GetText())
		}
	}
}

// blockOf is the block that begins with an event.
func blockOf(s *turnsv1.BlockStarted) *turnsv1.Block {
	switch s.GetKind() {
	case turnsv1.BlockKind_BLOCK_KIND_THINKING:
		return &turnsv1.Block{Kind: &turnsv1.Block_Thinking{Thinking: &turnsv1.ThinkingBlock{}}}
	case turnsv1.BlockKind_BLOCK_KIND_TOOL_USE:
		return &turnsv1.Block{Kind: &turnsv1.Block_ToolUse{ToolUse: &turnsv1.ToolUseBlock{ToolUseId: s.GetToolUseId(), Name: s.GetToolName()}}}
	case turnsv1.BlockKind_BLOCK_KIND_REFUSAL:
		return &turnsv1.Block{Kind: &turnsv1.Block_Refusal{Refusal: &turnsv1.RefusalBlock{}}}
	}
	return &turnsv1.Block{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{}}}
}

func addTo(b *turnsv1.Block, text string) {
	switch k := b.GetKind().(type) {
	case *turnsv1.Block_Thinking:
		k.Thinking.Text += text
	case *turnsv1.Block_ToolUse:
		k.ToolUse.InputJson += text
	case *turnsv1.Block_Refusal:
		k.Refusal.Text += text
	case *turnsv1.Block_Text:
		k.Text.Text += text
	}
}

// sameBlocks demands that what was streamed is what is stored.
func (w *worker) sameBlocks(in *turnsv1.TurnInput, streamed []*turnsv1.Block) {
	w.t.Helper()
	got := w.read(in.GetConversationId(), in.GetTurnId())
	require.NotContains(w.t, got.String(), theSeal)
	replies := got.GetReplies()
	kept := replies[len(replies)-1].GetContent()
	require.Len(w.t, kept, len(streamed))
	for i := range kept {
		if refused := kept[i].GetRefusal(); refused != nil {
			refused.Category = "" // no event names it
		}
		require.True(w.t, proto.Equal(streamed[i], kept[i]), "block %d: %v and %v", i, streamed[i], kept[i])
	}
}

func TestAConversationWithToolsGoesBackAndForth(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(callsTools(), plain(4))
		in := offering(model, newID())
		blocks, last := s.hear(in)
		require.Equal(t, turnsv1.StopReason_STOP_REASON_TOOL_USE, last.GetCompleted().GetStopReason(), "%v", last)
		require.Len(t, blocks, 4)
		require.Equal(t, "hm hm", blocks[0].GetThinking().GetText())
		require.Equal(t, "I look.", blocks[1].GetText().GetText())
		require.Equal(t, []string{"t1", "look_up", odd}, []string{blocks[2].GetToolUse().GetToolUseId(), blocks[2].GetToolUse().GetName(), blocks[2].GetToolUse().GetInputJson()})
		require.Equal(t, []string{"t2", "now", "{}"}, []string{blocks[3].GetToolUse().GetToolUseId(), blocks[3].GetToolUse().GetName(), blocks[3].GetToolUse().GetInputJson()})
		s.sameBlocks(in, blocks)

		// The provider takes no request with a call that has no result, a result that has no call, or thoughts that are
		// not signed. It counts words: those asked, the two thoughts where they can go back, those said, the result's.
		answers := offering(model, in.GetConversationId(), resultOf("t2", ""), resultOf("t1", "twelve"))
		s.turn(answers, nil).completes()
		words := map[string]int{"anthropic": 3 + 2 + 2 + 1, "openai": 3 + 2 + 1}
		require.Equal(t, words[model], w.provider.Calls()[1].InputTokens)
		require.Equal(t, replayed, s.turn(answers, nil).completes().result)
		s.turn(offering(model, in.GetConversationId()), nil).completes()
		w.paid(3, 3)
		history, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: in.GetConversationId()})
		require.NoError(t, err)
		require.Len(t, history.GetEntries(), 3)
		require.NotContains(t, history.String(), theSeal)
	})
}

func TestC61CallsThatNobodyAnsweredDoNotLockTheConversation(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(callsTools(), plain(4))
		in := offering(model, newID())
		s.turn(in, nil).completes()
		some := offering(model, in.GetConversationId(), resultOf("t1", "twelve")) // one of two
		_, err := s.submit(some)
		meta := w.fails(err, codes.FailedPrecondition, "WAITING_FOR_TOOLS", "DO_NOT_RETRY")
		require.Equal(t, "t2", meta["tool_use_ids"])
		w.stands(map[string]int{qUsers: 1})
		before := s.read(in.GetConversationId(), in.GetTurnId())
		s.turn(offering(model, in.GetConversationId()), nil).completes()
		require.True(t, proto.Equal(before, s.read(in.GetConversationId(), in.GetTurnId())), "what is stored stays as it is")
		_, err = s.submit(some)
		w.fails(err, codes.InvalidArgument, "INVALID_TOOL_RESULT", "DO_NOT_RETRY")
		s.turn(offering(model, in.GetConversationId()), nil).completes()
		untooled := ask(in.GetConversationId(), newID(), "and without tools")
		untooled.Options = &turnsv1.GenerationOptions{Model: model}
		s.turn(untooled, nil).completes()
		w.paid(4, 4)
	})
}

func TestAToolResultThatAnswersNoOpenCallIsRefused(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(callsTools(), plain(4))
		in := offering("anthropic", newID())
		s.turn(in, nil).completes()
		for name, content := range map[string][]*turnsv1.Block{
			"an unknown call": {resultOf("t9", "x")},
			"a call twice":    {resultOf("t1", "x"), resultOf("t1", "x")},
		} {
			_, err := s.submit(offering("anthropic", in.GetConversationId(), content...))
			w.fails(err, codes.InvalidArgument, "INVALID_TOOL_RESULT", "DO_NOT_RETRY")
			require.ErrorContains(t, err, "tool_use_id", name)
		}
		_, err := s.submit(offering("anthropic", newID(), resultOf("t1", "x")))
		w.fails(err, codes.InvalidArgument, "INVALID_TOOL_RESULT", "DO_NOT_RETRY")
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1, qInFlight: 0})
	})
}

func TestToolsThatCanNotBeOfferedAreRefusedWhereverTheyComeFrom(t *testing.T) {
	w := sqliteWorld(t)
	s := w.serve()
	in := ask(newID(), newID(), "hi")
	made := s.turn(in, nil).completes()
	conversation := &turnsv1.Conversation{ConversationId: newID()}
	_, err := s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: conversation})
	require.NoError(t, err)
	for name, options := range map[string]*turnsv1.GenerationOptions{
		"no object for a schema": {Tools: []*turnsv1.Tool{{Name: "a", InputSchemaJson: "{bad"}}},
		"no name for a tool":     {Tools: []*turnsv1.Tool{{Name: "look up"}}},
		"two of one name":        {Tools: []*turnsv1.Tool{{Name: "a"}, {Name: "a"}}},
		"a choice of nothing":    {ToolChoice: &turnsv1.ToolChoice{Mode: turnsv1.ToolChoiceMode_TOOL_CHOICE_MODE_TOOL}},
	} {
		t.Log(name)
		refused := func(err error) {
			t.Helper()
			w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
		}
		next := ask(in.GetConversationId(), newID(), "more")
		next.Options = options
		_, err := s.submit(next)
		refused(err)
		_, err = s.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: in.GetConversationId(), ReplyId: made.reply, Options: options})
		refused(err)
		_, err = s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{
			Conversation: &turnsv1.Conversation{ConversationId: newID(), Defaults: options}})
		refused(err)
		_, err = s.convs.UpdateConversation(w.ctx, &turnsv1.UpdateConversationRequest{
			Conversation: &turnsv1.Conversation{ConversationId: conversation.GetConversationId(), Defaults: options},
			UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"defaults"}}})
		refused(err)
	}
	w.paid(1, 1)
	w.stands(map[string]int{qReplies: 1, qConvs: 2})
}

func TestC53ACallCutShortIsNeverJoinedWithTheNextAttempts(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		const deltas = 2 + 2 + 2 // thinking, text, and some of the input
		w.script(callsTools(scripted.Step{At: scripted.AfterDelta(deltas), Do: scripted.DoClose}), callsTools(), plain(4))
		in := offering(model, newID())
		cut, last := s.hear(in)
		require.Equal(t, ambiguous, last.GetAbandoned().GetReason())
		require.Len(t, cut, 3)
		part := cut[2].GetToolUse().GetInputJson()
		require.NotEmpty(t, part)
		require.Equal(t, odd[:len(part)], part, "what came is kept as it came")
		s.sameBlocks(in, cut)
		whole, last := s.hear(in)
		require.NotNil(t, last.GetCompleted())
		require.Equal(t, odd, whole[2].GetToolUse().GetInputJson())
		s.turn(offering(model, in.GetConversationId(), resultOf("t1", "twelve"), resultOf("t2", "")), nil).completes()
		w.paid(3, 3)
	})
}

func TestC59AReplyThatEndsForAnotherReasonIsCompleteAndSaysWhy(t *testing.T) {
	type ending struct {
		word string
		want turnsv1.StopReason
	}
	endings := map[string][]ending{
		"anthropic": {
			{"max_tokens", turnsv1.StopReason_STOP_REASON_LENGTH}, {"refusal", turnsv1.StopReason_STOP_REASON_REFUSAL},
			{"pause_turn", turnsv1.StopReason_STOP_REASON_PAUSE}, {"stop_sequence", turnsv1.StopReason_STOP_REASON_STOP_SEQUENCE},
			{"model_context_window_exceeded", turnsv1.StopReason_STOP_REASON_CONTEXT_EXCEEDED},
		},
		"openai": {
			{"max_tokens", turnsv1.StopReason_STOP_REASON_LENGTH}, {"content_filter", turnsv1.StopReason_STOP_REASON_CONTENT_FILTER},
			{"pause_turn", turnsv1.StopReason_STOP_REASON_PAUSE},
			{"model_context_window_exceeded", turnsv1.StopReason_STOP_REASON_CONTEXT_EXCEEDED},
		},
	}
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		for _, end := range endings[model] {
			w.script(scripted.Rule{Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 4}, StopReason: end.word}})
			in := askOf(model)
			got := s.turn(in, nil).completes()
			require.Equal(t, end.want, got.completed.GetStopReason(), end.word)
			kept := s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0]
			require.Equal(t, turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE, kept.GetStatus())
			require.Equal(t, end.want, kept.GetStopReason())
			require.Equal(t, got.text, stored(kept))
			next := ask(in.GetConversationId(), newID(), "go on")
			next.Options = in.Options
			s.turn(next, nil).completes()
		}
		w.script(scripted.Rule{Plan: scripted.Plan{Blocks: []scripted.Block{{Refusal: "I can not."}}}})
		in := askOf(model)
		blocks, last := s.hear(in)
		require.Equal(t, turnsv1.StopReason_STOP_REASON_REFUSAL, last.GetCompleted().GetStopReason())
		require.Equal(t, "I can not.", blocks[0].GetRefusal().GetText()+blocks[0].GetText().GetText())
		s.sameBlocks(in, blocks)
		if model == "anthropic" {
			kept := s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0].GetContent()
			require.Equal(t, "general_harms", kept[len(kept)-1].GetRefusal().GetCategory())
		}
	})
}

func TestAReplyThatItsVendorPausedGoesBackWithWhatOnlyThatUnderstands(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		w.script(scripted.Rule{Times: 1, Plan: scripted.Plan{StopReason: "pause_turn", Blocks: []scripted.Block{
			{Text: "I look. "}, {Vendor: `{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q":"x"}}`},
			{Vendor: `{"type":"web_search_tool_result","tool_use_id":"s1","text":"three secret words"}`}, {Text: "Wait."},
		}}}, plain(4))
		in := askOf(model)
		require.Equal(t, turnsv1.StopReason_STOP_REASON_PAUSE, s.turn(in, nil).completes().completed.GetStopReason())
		kept := s.read(in.GetConversationId(), in.GetTurnId())
		require.NotContains(t, kept.String(), "secret")
		content := kept.GetReplies()[0].GetContent()
		next := ask(in.GetConversationId(), newID(), "go on")
		next.Options = in.Options
		s.turn(next, nil).completes()
		words := 1 + 2 + 1 + 2 // asked, said around it, asked
		if model == "anthropic" {
			words += 3
			require.Len(t, content, 4)
			require.True(t, proto.Equal(&turnsv1.OpaqueBlock{Provider: "anthropic", Type: "web_search_tool_result"}, content[2].GetOpaque()), "%v", content[2])
		}
		require.Equal(t, words, w.provider.Calls()[1].InputTokens)
	})
}

func TestC65AReplyOfNothingNeverEntersAPrompt(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		s := w.serve()
		conversation := newID()
		say := func(text string) *turnsv1.TurnInput {
			in := ask(conversation, newID(), text)
			in.Options = &turnsv1.GenerationOptions{Model: model}
			return in
		}
		nothing := scripted.Plan{Reply: &scripted.Reply{}}
		blank := scripted.Plan{Blocks: []scripted.Block{{Text: "   "}}}
		w.script(scripted.Rule{Times: 1, Plan: nothing}, scripted.Rule{Times: 1, Plan: blank}, plain(1))
		got := s.turn(say("one"), nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_EMPTY)
		require.Equal(t, turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE, got.abandoned.GetAdvice())
		for _, text := range []string{"", "   ", "\n\t"} {
			_, err := s.submit(say(text))
			w.fails(err, codes.InvalidArgument, "CONTENT_EMPTY", "DO_NOT_RETRY")
		}
		s.turn(say("two"), nil).end() // blanks, whatever they count for
		s.turn(say("three"), nil).completes()
		calls := w.provider.Calls()
		require.Len(t, calls, 3)
		require.Equal(t, 3, calls[2].InputTokens, "the prompt is the three words that were asked")
		w.stands(map[string]int{qUsers: 3, qInFlight: 0})
	})
}

func TestC65ARowOfACrashedAttemptNeverEntersAPrompt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		dying, die := w.cutOff()
		other := w.serve()
		w.script(scripted.Rule{Times: 1, Plan: scripted.Plan{Steps: []scripted.Step{
			{At: scripted.AtBeforeHeaders, Do: scripted.DoWait, Gate: "never"}}}}, plain(1))
		in := ask(newID(), newID(), "one")
		dying.turn(in, nil).until(func(s state) bool { return s.reply != "" })
		require.NoError(t, w.provider.WaitGate(w.ctx, "never", 1))
		die()
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		other.turn(ask(in.GetConversationId(), newID(), "two"), nil).completes()
		require.Equal(t, 2, w.provider.Calls()[1].InputTokens)
	})
}
