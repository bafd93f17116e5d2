package anthropic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

var (
	responded = turns.Responded{HTTPStatus: 200}
	started   = turns.ResponseStarted{ResponseID: "msg_01"}
	textBegun = turns.BlockStarted{Kind: turns.KindText}
)

func reported(u turns.Usage) turns.Delta {
	u.Source = turns.SourceReported
	return turns.UsageReported{Usage: u}
}

func TestRecordedStreamsAreTranslated(t *testing.T) {
	nine := reported(turns.Usage{Input: 9})
	for file, want := range map[string][]turns.Delta{
		"text.sse": {
			responded, started, reported(turns.Usage{Input: 2125, CacheRead: 2000, CacheWrite: 100}),
			textBegun, turns.BlockDelta{Text: "Hello"}, turns.BlockDelta{Text: " 你好 🦀"}, turns.BlockEnded{},
			reported(turns.Usage{Input: 2125, CacheRead: 2000, CacheWrite: 100, Output: 15, Reasoning: 4}),
			turns.Finished{StopReason: turns.StopEndTurn},
		},
		"mixed.sse": {
			responded, started, nine,
			turns.BlockStarted{Kind: turns.KindThinking}, turns.BlockDelta{Text: "Let me see"},
			turns.BlockSealed{Data: "anthropic.messages/demo\nEqQB"}, turns.BlockEnded{},
			turns.BlockStarted{Kind: turns.KindThinking, Redacted: true},
			turns.BlockSealed{Data: "anthropic.messages/demo\nEmwK"}, turns.BlockEnded{},
			textBegun, turns.BlockDelta{Text: "I will "}, turns.BlockDelta{Text: "look."},
			turns.BlockSealed{Data: "anthropic.messages/demo\n" + `[{"type": "char_location", "cited_text": "x"}]`}, turns.BlockEnded{},
			turns.BlockStarted{Kind: turns.KindToolUse, ToolUseID: "toolu_1", ToolName: "look"},
			turns.BlockDelta{Text: `{"a":1}`}, turns.BlockEnded{},
			turns.BlockStarted{Kind: turns.KindOpaque, Type: "brand_new_block"},
			turns.BlockSealed{Data: "anthropic.messages/demo\n" + `{"type":"brand_new_block","text":"nor thisnor that"}`}, turns.BlockEnded{},
			textBegun, turns.BlockDelta{Text: "Done."}, turns.BlockEnded{},
			reported(turns.Usage{Input: 9, Output: 40}), turns.Finished{StopReason: turns.StopToolUse},
		},
		"refusal.sse": {
			responded, started, nine, textBegun, turns.BlockDelta{Text: "I can"}, turns.BlockEnded{},
			reported(turns.Usage{Input: 9, Output: 3}),
			turns.BlockStarted{Kind: turns.KindRefusal, Type: "cyber"}, turns.BlockEnded{},
			turns.Finished{StopReason: turns.StopRefusal},
		},
		"zeros.sse": {
			responded, started, textBegun, turns.BlockDelta{Text: "hi"}, turns.BlockEnded{},
			turns.Finished{StopReason: turns.StopEndTurn},
		},
		"unclosed.sse": {
			responded, started, nine, textBegun, turns.BlockDelta{Text: `half a pair \u`}, turns.BlockDelta{Text: "\uFFFD"},
			turns.BlockEnded{}, turns.Finished{},
		},
	} {
		t.Run(file, func(t *testing.T) {
			r := llmtest.Replay(t, anthropic.Adapter(), "testdata/"+file)
			require.Nil(t, r.Err)
			require.Empty(t, cmp.Diff(want, r.Deltas))
		})
	}
}

func TestEveryStopReasonIsMapped(t *testing.T) {
	for word, want := range map[string]turns.StopReason{
		"end_turn": turns.StopEndTurn, "max_tokens": turns.StopLength, "stop_sequence": turns.StopSequence,
		"tool_use": turns.StopToolUse, "pause_turn": turns.StopPause, "refusal": turns.StopRefusal,
		"model_context_window_exceeded": turns.StopContextExceeded, "brand_new": "",
	} {
		stream := strings.Replace(voice().Whole("a"), `"end_turn"`, `"`+word+`"`, 1)
		r := llmtest.Say(t, anthropic.Adapter(), stream)
		require.NotNil(t, r.Finished, word)
		require.Equal(t, want, r.Finished.StopReason, word)
	}
}

func TestARefusalIsWholeWhateverItsDetailsHold(t *testing.T) {
	for details, want := range map[string][]turns.Delta{
		`null`: nil, `"no"`: nil, `{}`: nil, `{"category":7}`: nil,
		`{"category":"bio"}`:                             {turns.BlockStarted{Kind: turns.KindRefusal, Type: "bio"}, turns.BlockEnded{}},
		`{"category":"` + strings.Repeat("é", 40) + `"}`: {turns.BlockStarted{Kind: turns.KindRefusal, Type: strings.Repeat("é", 32)}, turns.BlockEnded{}},
	} {
		got := said(t, event(`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":%s}}`, details))
		require.Equal(t, want, append([]turns.Delta(nil), got...), details)
	}
}

func TestWhatIsWrittenToACacheIsInputHoweverItIsCounted(t *testing.T) {
	for usage, want := range map[string]turns.Usage{
		`{"input_tokens":1,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3}}`: {Input: 6, CacheWrite: 5},
		`{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3}}`:                                 {Input: 6, CacheWrite: 5},
		`{"input_tokens":1,"cache_creation":null,"server_tool_use":{"web_search_requests":1},"service_tier":"standard"}`:                    {Input: 1},
	} {
		r := llmtest.Say(t, anthropic.Adapter(), event(`{"type":"message_start","message":{"id":"msg_1","usage":%s}}`, usage)+event(`{"type":"message_stop"}`))
		require.Equal(t, reported(want), turns.UsageReported{Usage: *r.Usage}, usage)
	}
}

func TestABrokenStreamIsAmbiguous(t *testing.T) {
	v := voice()
	for name, stream := range map[string]string{
		"no JSON":                       v.Open + "data: {\n\n" + v.Close + v.Terminal,
		"JSON of another shape":         v.Open + `data: {"type":"content_block_delta","delta":7}` + "\n\n" + v.Close + v.Terminal,
		"text that is no text":          v.Open + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":7}}` + "\n\n",
		"text for a block never begun":  strings.Split(v.Open, "event: content_block_start")[0] + v.Text("a"),
		"text for a block that is over": v.Open + v.Close + v.Text("a") + v.Terminal,
		"input for a block of text":     v.Open + block(0, `{"type":"input_json_delta","partial_json":"{"}`),
		"cut within the terminal event": strings.TrimSuffix(v.Whole("a"), "\n"),
		"nothing at all":                "",
	} {
		t.Run(name, func(t *testing.T) {
			r := llmtest.Say(t, anthropic.Adapter(), stream)
			require.NotNil(t, r.Err)
			require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
			require.Nil(t, r.Finished)
		})
	}
	r := llmtest.Say(t, anthropic.Adapter(), v.Open+v.Close)
	require.ErrorIs(t, r.Err, wire.ErrNoTerminal)
	require.NotNil(t, r.Usage, "a cut call has the figures that came before the cut")
	r = llmtest.Say(t, anthropic.Adapter(), v.Open+v.Text("a")+v.Terminal)
	require.Equal(t, turns.Usage{Input: 9, Source: turns.SourceReported}, *r.Usage, "an output that was not counted is 0")
}

func voice() llmtest.Voice { return llmtest.Voices[llm.WireAnthropicMessages] }
