package openai_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

var (
	responded = turns.Responded{HTTPStatus: 200}
	started   = turns.ResponseStarted{ResponseID: "chatcmpl-1"}
	textBegun = turns.BlockStarted{Kind: turns.KindText}
)

func reported(u turns.Usage) turns.Delta {
	u.Source = turns.SourceReported
	return turns.UsageReported{Usage: u}
}

func TestRecordedStreamsAreTranslated(t *testing.T) {
	for file, want := range map[string][]turns.Delta{
		"text.sse": {
			responded, started, textBegun, turns.BlockDelta{Text: "Hello"}, turns.BlockDelta{Text: " 你好 🦀"}, turns.BlockEnded{},
			reported(turns.Usage{Input: 2125, CacheRead: 2000, CacheWrite: 100, Output: 15, Reasoning: 4}),
			turns.Finished{StopReason: turns.StopEndTurn},
		},
		"mixed.sse": {
			responded, started, turns.BlockStarted{Kind: turns.KindThinking}, turns.BlockDelta{Text: "hm"}, turns.BlockDelta{Text: "hm"},
			turns.BlockEnded{}, textBegun, turns.BlockDelta{Text: "I will look."}, turns.BlockEnded{},
			turns.BlockStarted{Kind: turns.KindToolUse, ToolUseID: "call_1", ToolName: "look"}, turns.BlockDelta{Text: `{"a":1}`},
			turns.BlockEnded{}, textBegun, turns.BlockDelta{Text: " Done."}, turns.BlockEnded{},
			reported(turns.Usage{Input: 9, Output: 40}), turns.Finished{StopReason: turns.StopToolUse},
		},
		"refusal.sse": {
			responded, started, turns.BlockStarted{Kind: turns.KindRefusal}, turns.BlockSealed{Data: "openai.chat/demo\n"}, turns.BlockDelta{Text: "I can"},
			turns.BlockDelta{Text: "not."}, turns.BlockEnded{},
			reported(turns.Usage{Input: 9, Output: 3}), turns.Finished{StopReason: turns.StopRefusal},
		},
		"zeros.sse": {
			responded, started, textBegun, turns.BlockDelta{Text: "hi"}, turns.BlockEnded{},
			turns.Finished{StopReason: turns.StopEndTurn},
		},
		"running_usage.sse": {
			responded, started, textBegun, reported(turns.Usage{Input: 9, Output: 1}), turns.BlockDelta{Text: "a"},
			reported(turns.Usage{Input: 9, Output: 2}), turns.BlockDelta{Text: "b"}, turns.BlockDelta{Text: "c"}, turns.BlockEnded{}, reported(turns.Usage{Input: 9, Output: 3}),
			turns.Finished{StopReason: turns.StopLength},
		},
	} {
		t.Run(file, func(t *testing.T) {
			r := llmtest.Replay(t, openai.Adapter(), "testdata/"+file)
			require.Nil(t, r.Err)
			require.Empty(t, cmp.Diff(want, r.Deltas))
		})
	}
}

func TestEveryFinishReasonIsMapped(t *testing.T) {
	for word, want := range map[string]turns.StopReason{
		"stop": turns.StopEndTurn, "length": turns.StopLength, "tool_calls": turns.StopToolUse,
		"function_call": turns.StopToolUse, "content_filter": turns.StopContentFilter, "brand_new": "",
		"end_turn": turns.StopEndTurn, "stop_sequence": turns.StopSequence, "max_tokens": turns.StopLength, "tool_use": turns.StopToolUse,
		"refusal": turns.StopRefusal, "pause_turn": turns.StopPause, "model_length": turns.StopContextExceeded,
		"model_context_window_exceeded": turns.StopContextExceeded,
		"STOP":                          turns.StopEndTurn, "MAX_TOKENS": turns.StopLength, "SAFETY": turns.StopContentFilter, "eos": turns.StopEndTurn,
	} {
		r := llmtest.Say(t, openai.Adapter(), strings.Replace(voice().Whole("a"), `"stop"`, `"`+word+`"`, 1))
		require.NotNil(t, r.Finished, word)
		require.Equal(t, want, r.Finished.StopReason, word)
	}
}

func TestAReplyNeedsItsFinishReasonAndTheDoneMark(t *testing.T) {
	v := voice()
	for name, stream := range map[string]string{
		"no mark":            v.Open + v.Text("a") + v.Close,
		"no reason":          v.Open + v.Text("a") + v.Terminal,
		"neither":            v.Open + v.Text("a"),
		"a mark without end": v.Open + v.Text("a") + v.Close + "data: [DONE]",
		"no JSON":            v.Open + "data: {\n\n" + v.Close + v.Terminal,
		"another shape":      v.Open + `data: {"choices":7}` + "\n\n" + v.Close + v.Terminal,
		"nothing at all":     "",
	} {
		t.Run(name, func(t *testing.T) {
			r := llmtest.Say(t, openai.Adapter(), stream)
			require.NotNil(t, r.Err)
			require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
		})
	}
	r := llmtest.Say(t, openai.Adapter(), v.Open+v.Text("a")+v.Terminal)
	require.ErrorIs(t, r.Err, wire.ErrNoTerminal)
}

func voice() llmtest.Voice { return llmtest.Voices[llm.WireOpenAIChat] }
