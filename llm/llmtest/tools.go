package llmtest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// verbatim is input of a call that any decoding and encoding would change: white space, the order of keys and one of them
// twice, digits, escapes.
const verbatim = `{ "z": 1e99, "a": "naïve 你好🦀 \u00e9 \/ \"}{\" \\", "z": 12345678901234567890.10,` + "\n\t" + `"b": [ ] }`

var (
	firstCall  = scripted.ToolUse{ID: "toolu_01", Name: "look_up", Input: verbatim}
	secondCall = scripted.ToolUse{ID: "toolu_02", Name: "now"}
)

// mixed is a reply of all that a model says, and said what comes of it. Only one wire has seals.
var (
	mixed = []scripted.Block{
		{Thinking: "hm " + difficultText, Signature: "EqQB+/=="}, {Text: difficultText}, {ToolUse: &firstCall}, {ToolUse: &secondCall},
	}
	said = []Block{
		{BlockStarted: turns.BlockStarted{Kind: turns.KindThinking}, Text: "hm " + difficultText},
		{BlockStarted: turns.BlockStarted{Kind: turns.KindText}, Text: difficultText},
		{BlockStarted: turns.BlockStarted{Kind: turns.KindToolUse, ToolUseID: "toolu_01", ToolName: "look_up"}, Text: verbatim},
		{BlockStarted: turns.BlockStarted{Kind: turns.KindToolUse, ToolUseID: "toolu_02", ToolName: "now"}, Text: "{}"},
	}
)

func runTools(t *testing.T, a llm.Adapter) {
	for _, write := range []scripted.WriteMode{scripted.WriteEvent, scripted.WriteByte, scripted.WriteOnce} {
		for _, end := range []scripted.LineEnd{scripted.LineEndLF, scripted.LineEndCRLF, scripted.LineEndCR} {
			t.Run(string(write)+" "+string(end), func(t *testing.T) {
				r := plays(t, a, scripted.Plan{Blocks: mixed, Write: write, LineEnd: end})
				require.Nil(t, r.Err)
				require.Empty(t, cmp.Diff(heard(a.Wire), r.Blocks, cmpopts.IgnoreFields(Block{}, "Seal")))
				require.Equal(t, turns.StopToolUse, r.Finished.StopReason)
				require.NotNil(t, r.Usage)
			})
		}
	}
	t.Run("NUL in a call's input is dropped", func(t *testing.T) {
		if wholeCalls(a.Wire) {
			return // what holds one is no JSON, and can't be said
		}
		r := plays(t, a, scripted.Plan{Blocks: []scripted.Block{{ToolUse: &scripted.ToolUse{ID: "t", Name: "f", Input: "{\"a\":\"x\x00y\"}"}}}})
		require.Equal(t, `{"a":"xy"}`, r.Blocks[0].Text)
	})
	runCutCalls(t, a)
	runSeals(t, a)
	runRefusal(t, a)
}

// runCutCalls cuts a stream at each of its deltas, those within a call's input too.
func runCutCalls(t *testing.T, a llm.Adapter) {
	const deltas = 16 // of all blocks
	whole := ""
	for _, b := range heard(a.Wire) {
		whole += b.Text
	}
	for _, do := range []scripted.Action{scripted.DoClose, scripted.DoReset} {
		t.Run("cut by "+string(do), func(t *testing.T) {
			longest := 0
			for n := 1; n <= deltas; n++ {
				r := plays(t, a, scripted.Plan{Blocks: mixed, Steps: []scripted.Step{{At: scripted.AfterDelta(n), Do: do}}})
				require.NotNil(t, r.Err)
				require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
				require.True(t, r.open, "a block that was cut did not end")
				part := ""
				for _, b := range r.Blocks {
					part += b.Text
				}
				require.Equal(t, whole[:len(part)], part, "what came is kept as it came, and nothing is made up")
				longest = max(longest, len(part))
			}
			text := len(said[0].Text) + len(said[1].Text)
			require.Equal(t, !wholeCalls(a.Wire), longest > text, "some cuts were within a call, where it comes in parts")
		})
	}
}

// goBack are the seals and thoughts that wires take back. Not all want the words of thoughts too.
var goBack = map[llm.Wire][]string{
	llm.WireAnthropicMessages: {"EqQB+/==", "c2VhbGVk", "hm naïve"},
	llm.WireOpenAIResponses:   {"EqQB+/==", "c2VhbGVk", "hm naïve"},
	llm.WireGeminiGenerate:    {"EqQB+/==", "c2VhbGVk"},

	llm.WireGeminiInteractions: {"EqQB+/==", "c2VhbGVk", "hm naïve"},
}

// runSeals sends a reply back to who made it, and to others.
func runSeals(t *testing.T, a llm.Adapter) {
	next := func(t *testing.T, s subject, model string) string {
		content := []turns.Block{}
		for _, b := range s.collect(t).Blocks {
			switch b.Kind {
			case turns.KindThinking:
				content = append(content, turns.Thinking{Text: b.Text, Redacted: b.Redacted, Seal: b.Seal})
			case turns.KindToolUse:
				content = append(content, turns.ToolUse{ID: b.ToolUseID, Name: b.ToolName, InputJSON: b.Text, Seal: b.Seal})
			default:
				content = append(content, turns.Text{Text: b.Text})
			}
		}
		s.route.ProviderModel = model
		req, err := s.caller.Build(s.route, turns.Prompt{Messages: []turns.Message{
			{Role: turns.RoleUser, Content: []turns.Block{turns.Text{Text: promptWords}}}, {Role: turns.RoleAssistant, Content: content},
			{Role: turns.RoleUser, Content: []turns.Block{
				turns.ToolResult{ToolUseID: "toolu_01", Content: []turns.Block{turns.Text{Text: "12"}}}, turns.ToolResult{ToolUseID: "toolu_02", IsError: true}}},
		}})
		require.NoError(t, err)
		return string(req.Body)
	}
	t.Run("thoughts go back to the model that had them and to no other", func(t *testing.T) {
		s := scripted.Start(t, planned(scripted.Plan{Blocks: append([]scripted.Block{{Redacted: "c2VhbGVk"}}, mixed...)}))
		asked := open(t, a, s.URL(), turns.Limits{})
		same, other := next(t, asked, "demo"), next(t, asked, "another")
		for _, sealed := range []string{"EqQB+/==", "c2VhbGVk", "hm naïve"} {
			if slices.Contains(goBack[a.Wire], sealed) {
				require.Contains(t, same, sealed)
			} else {
				require.NotContains(t, same, sealed)
			}
			require.NotContains(t, other, sealed)
		}
		for _, body := range []string{same, other} {
			require.Contains(t, body, "12345678901234567890.10", "a call goes back with all its digits")
		}
	})
	t.Run("a server that is strict about calls and results takes the next request", func(t *testing.T) {
		s := scripted.Start(t, planned(scripted.Plan{Blocks: mixed}))
		asked := open(t, a, s.URL(), turns.Limits{})
		req := turns.Request{Route: asked.route, Body: []byte(next(t, asked, "demo"))}
		require.NotNil(t, Collect(t, asked.caller.Generate(t.Context(), turns.Call{Request: req})).Finished)
	})
}

func runRefusal(t *testing.T, a llm.Adapter) {
	t.Run("a refusal is whole and says so", func(t *testing.T) {
		r := plays(t, a, scripted.Plan{Blocks: []scripted.Block{{Refusal: "I can not."}}})
		want := turns.StopRefusal
		if a.Wire == llm.WireGeminiGenerate || a.Wire == llm.WireGeminiInteractions {
			want = ownStops[a.Wire]["refusal"] // these wires have no words of refusal of their own
		}
		require.Equal(t, want, r.Finished.StopReason)
		require.Equal(t, "I can not.", r.Blocks[0].Text)
		last := r.Blocks[len(r.Blocks)-1]
		if a.Wire == llm.WireAnthropicMessages {
			require.Equal(t, turns.BlockStarted{Kind: turns.KindRefusal, Type: "general_harms"}, last.BlockStarted, "why it was refused")
		} else {
			require.Len(t, r.Blocks, 1)
		}
	})
}

// responsesStops are what a wire makes of reasons that has words only for why a reply was cut short.
var responsesStops = map[string]turns.StopReason{
	"end_turn": turns.StopEndTurn, "stop_sequence": turns.StopEndTurn, "tool_use": turns.StopEndTurn,
	"max_tokens": turns.StopLength, "refusal": turns.StopContentFilter, "content_filter": turns.StopContentFilter,
	"never_heard_of": "",
}

// ownStops are the wires that tell other ends apart than most.
var ownStops = map[llm.Wire]map[string]turns.StopReason{
	llm.WireOpenAIResponses: responsesStops, llm.WireGeminiGenerate: geminiStops, llm.WireGeminiInteractions: interactionStops,
}

// runEnds checks that a reply is whole whatever it ended for, and says why; one of nothing too.
func runEnds(t *testing.T, a llm.Adapter) {
	wants := map[string]turns.StopReason{
		"end_turn": turns.StopEndTurn, "max_tokens": turns.StopLength, "tool_use": turns.StopToolUse, "pause_turn": turns.StopPause,
		"model_context_window_exceeded": turns.StopContextExceeded, "never_heard_of": "",
	}
	if a.Wire == llm.WireAnthropicMessages {
		wants["refusal"], wants["stop_sequence"] = turns.StopRefusal, turns.StopSequence
	} else if own := ownStops[a.Wire]; own != nil {
		wants = own
	} else {
		wants["refusal"] = turns.StopContentFilter // without words of refusal this wire calls it so
		wants["content_filter"] = turns.StopContentFilter
		wants["stop_sequence"] = turns.StopEndTurn // which this wire does not tell apart
	}
	for word, want := range wants {
		t.Run(word, func(t *testing.T) {
			r := plays(t, a, scripted.Plan{Blocks: []scripted.Block{{Text: "words"}}, StopReason: word})
			require.Nil(t, r.Err)
			require.Equal(t, want, r.Finished.StopReason)
			require.Equal(t, "words", r.Text)
			empty := plays(t, a, scripted.Plan{Reply: &scripted.Reply{}, StopReason: word})
			require.Nil(t, empty.Err)
			require.Equal(t, want, empty.Finished.StopReason)
			for _, b := range empty.Blocks {
				require.Equal(t, turns.KindRefusal, b.Kind, "only why nothing was said is said")
			}
		})
	}
}

// plays asks a scripted provider that answers by a plan.
func plays(t testing.TB, a llm.Adapter, p scripted.Plan) Result {
	t.Helper()
	s := scripted.Start(t, planned(p))
	return open(t, a, s.URL(), turns.Limits{}).collect(t)
}
