package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

func event(json string) string { return "data: " + json + "\n\n" }

func say(t *testing.T, chunks ...string) llmtest.Result {
	t.Helper()
	stream := ""
	for _, c := range chunks {
		stream += event(c)
	}
	return llmtest.Say(t, gemini.Adapter(), stream)
}

func parts(json string) string {
	return `{"candidates":[{"content":{"parts":[` + json + `],"role":"model"},"index":0}],"responseId":"r"}`
}

func finish(reason string) string {
	return `{"candidates":[{"content":{"role":"model"},"finishReason":"` + reason + `"}],"responseId":"r"}`
}

func TestEveryFinishReasonEndsAReply(t *testing.T) {
	for word, want := range map[string]turns.StopReason{
		"STOP": turns.StopEndTurn, "MAX_TOKENS": turns.StopLength, "SAFETY": turns.StopContentFilter, "RECITATION": turns.StopContentFilter,
		"BLOCKLIST": turns.StopContentFilter, "PROHIBITED_CONTENT": turns.StopContentFilter, "SPII": turns.StopContentFilter,
		"IMAGE_SAFETY": turns.StopContentFilter, "LANGUAGE": "", "MALFORMED_FUNCTION_CALL": "", "UNEXPECTED_TOOL_CALL": "",
		"TOO_MANY_TOOL_CALLS": "", "OTHER": "", "BRAND_NEW": "",
	} {
		r := say(t, parts(`{"text":"a"}`), finish(word))
		require.Nil(t, r.Err, word)
		require.Equal(t, want, r.Finished.StopReason, word)
		require.Equal(t, "a", r.Text)
	}
}

func TestAStreamThatWouldGoOnByAnotherRequestIsCut(t *testing.T) {
	for _, reason := range []string{"CONTINUATION", "FINISH_REASON_UNSPECIFIED", ""} {
		r := say(t, parts(`{"text":"a"}`), `{"candidates":[{"finishReason":"`+reason+`","continuationToken":"AAAA"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}`)
		require.NotNil(t, r.Err, reason)
		require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
		require.Equal(t, int64(1), r.Usage.Output, "what it cost is known all the same")
	}
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "a b"}}, StopReason: "CONTINUATION"}}}})
	r := ask(t, s)
	require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
	require.Equal(t, 1, s.Counts().Requests, "nobody goes on by itself")
}

func TestABlockedPromptIsAReplyWithoutWords(t *testing.T) {
	r := say(t, `{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":9},"responseId":"r"}`)
	require.Nil(t, r.Err)
	require.Equal(t, turns.StopContentFilter, r.Finished.StopReason)
	require.Empty(t, r.Blocks)
	require.Equal(t, int64(9), r.Usage.Input)
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Reply: &scripted.Reply{}, StopReason: "blocked"}}}})
	r = ask(t, s)
	require.Equal(t, turns.StopContentFilter, r.Finished.StopReason)
	require.Equal(t, int64(s.Counts().InputTokens), r.Usage.Input)
	require.Equal(t, s.Calls()[0].ResponseID, r.ResponseID)
	require.Equal(t, turns.StopEndTurn, say(t, `{"promptFeedback":{},"candidates":[{"finishReason":"STOP"}]}`).Finished.StopReason, "feedback alone blocks nothing")
}

func TestUsageIsARunningTotal(t *testing.T) {
	r := say(t,
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"totalTokenCount":100}}`,
		`{"candidates":[{"content":{"parts":[{"text":"b"}]}}],"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"thoughtsTokenCount":7,"totalTokenCount":107}}`,
		`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":3,"thoughtsTokenCount":7,"toolUsePromptTokenCount":5,"totalTokenCount":115}}`)
	require.Equal(t, &turns.Usage{Input: 105, CacheRead: 40, Output: 10, Reasoning: 7, Source: turns.SourceReported}, r.Usage)
	n := 0
	for _, d := range r.Deltas {
		if _, is := d.(turns.UsageReported); is {
			n++
		}
	}
	require.Equal(t, 3, n, "each change is reported")
}

// A cut leaves what was counted by then: the prompt from the first chunk on, the output chunk by chunk.
func TestACutStreamHasItsExactUsage(t *testing.T) {
	for n := range 6 {
		s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{
			Blocks: []scripted.Block{{Thinking: "a b"}, {Text: "c d e f"}}, Steps: []scripted.Step{{At: scripted.AfterDelta(n), Do: scripted.DoReset}},
		}}}})
		r := ask(t, s)
		require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
		require.NotEmpty(t, r.ResponseID)
		require.Equal(t, int64(s.Calls()[0].InputTokens), r.Usage.Input)
		require.Equal(t, int64(n), r.Usage.Output)
		require.Equal(t, int64(min(n, 2)), r.Usage.Reasoning)
	}
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtAfterHeaders, Do: scripted.DoReset}}}}}})
	require.Nil(t, ask(t, s).Usage, "before the first chunk nothing is known")
}

func TestPartsOfAllKindsAreBlocks(t *testing.T) {
	r := say(t,
		parts(`{"text":"","thought":true}`), parts(`{"text":"h","thought":true}`), parts(`{"text":"m","thought":true,"thoughtSignature":"c2ln"}`),
		parts(`{"executableCode":{"code":"x"}},{"text":"a"}`), parts(`{"text":"b","thoughtSignature":"dGV4dA=="}`), parts(`{"text":"c"}`),
		parts(`{"functionCall":{"id":"1","name":"f","args":{"b":2,"a":12345678901234567890}},"thoughtSignature":"Y2FsbA=="}`),
		parts(`{"functionCall":{"name":"g"}},{"functionCall":{"name":"h","args":[1]}}`), finish("STOP"))
	require.Nil(t, r.Err)
	require.Equal(t, turns.StopToolUse, r.Finished.StopReason)
	type block struct {
		kind           turns.BlockKind
		redacted, seal bool
		text           string
	}
	var got []block
	for _, b := range r.Blocks {
		got = append(got, block{b.Kind, b.Redacted, b.Seal != "", b.Text})
	}
	require.Equal(t, []block{
		{turns.KindThinking, false, true, "hm"}, {turns.KindText, false, true, "ab"},
		{turns.KindText, false, false, "c"}, {turns.KindToolUse, false, true, `{"b":2,"a":12345678901234567890}`},
		{turns.KindToolUse, false, true, "{}"}, {turns.KindToolUse, false, true, "{}"},
	}, got)
	require.Equal(t, "1", r.Blocks[3].ToolUseID)
	require.NotEmpty(t, r.Blocks[4].ToolUseID)
	require.NotEqual(t, r.Blocks[4].ToolUseID, r.Blocks[5].ToolUseID)
}

func TestOnlyTheFirstCandidateIsRead(t *testing.T) {
	r := say(t, `{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]},"finishReason":"STOP"},{"index":0,"content":{"parts":[{"text":"yes"}]}}]}`, finish("STOP"))
	require.Nil(t, r.Err)
	require.Equal(t, "yes", r.Text)
}
