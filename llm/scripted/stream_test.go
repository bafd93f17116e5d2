package scripted_test

import (
	"io"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

var everyBlock = []scripted.Block{
	{Thinking: "let me think", Signature: "c2ln"},
	{Text: "I look it up."},
	{ToolUse: &scripted.ToolUse{ID: "t1", Name: "find", Input: `{"city":"Zürich","days":3}`}},
}

func TestAnAnthropicStreamHasTheVendorsEventsInOrder(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: everyBlock})
	got := ask(t, s, messages, anthropicBody)
	require.NoError(t, got.err)
	require.Equal(t, 200, got.status)
	require.Equal(t, "text/event-stream; charset=utf-8", got.header.Get("Content-Type"))
	require.NotEmpty(t, got.header.Get("Request-Id"))

	all := events(t, got.body)
	delta := "content_block_delta"
	require.Equal(t, []string{
		"message_start",
		"content_block_start", "ping", delta, delta, delta, delta, "content_block_stop",
		"content_block_start", delta, delta, delta, delta, "content_block_stop",
		"content_block_start", delta, delta, "content_block_stop",
		"message_delta", "message_stop",
	}, names(all))
	for _, e := range all {
		require.Equal(t, e.name, at(t, e.data, "type"), "an event's name is its type")
	}
	require.EqualValues(t, wordsSent, at(t, all[0].data, "message", "usage", "input_tokens"))
	require.EqualValues(t, 1, at(t, all[0].data, "message", "usage", "output_tokens"))
	require.Regexp(t, "^msg_", at(t, all[0].data, "message", "id"))
	require.Equal(t, "demo", at(t, all[0].data, "message", "model"))
	require.Equal(t, "thinking", at(t, all[1].data, "content_block", "type"))
	require.Equal(t, "let ", at(t, all[3].data, "delta", "thinking"))
	require.Equal(t, "signature_delta", at(t, all[6].data, "delta", "type"), "directly before the block's stop")
	require.Equal(t, "c2ln", at(t, all[6].data, "delta", "signature"))
	require.Equal(t, map[string]any{}, at(t, all[14].data, "content_block", "input"))
	input := at(t, all[15].data, "delta", "partial_json").(string) + at(t, all[16].data, "delta", "partial_json").(string)
	require.Equal(t, everyBlock[2].ToolUse.Input, input)
	require.EqualValues(t, 2, at(t, all[16].data, "index"))
	require.Equal(t, "tool_use", at(t, all[18].data, "delta", "stop_reason"))
	require.EqualValues(t, 9, at(t, all[18].data, "usage", "output_tokens"))
	require.EqualValues(t, 3, at(t, all[18].data, "usage", "output_tokens_details", "thinking_tokens"))
}

func TestAnOpenAIStreamHasTheVendorsChunksInOrder(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: everyBlock})
	got := ask(t, s, completions, openaiBody)
	require.NoError(t, got.err)
	require.NotEmpty(t, got.header.Get("X-Request-Id"))

	all := events(t, got.body)
	require.Len(t, all, 1+3+4+3+3, "role, thinking, text, tool, and finish, usage, done")
	first := at(t, all[0].data, "choices", 0, "delta")
	require.Equal(t, map[string]any{"role": "assistant", "content": ""}, first)
	require.Equal(t, "let ", at(t, all[1].data, "choices", 0, "delta", "reasoning_content"))
	require.Equal(t, "I ", at(t, all[4].data, "choices", 0, "delta", "content"))
	tool := at(t, all[8].data, "choices", 0, "delta", "tool_calls", 0)
	require.Equal(t, "t1", at(t, all[8].data, "choices", 0, "delta", "tool_calls", 0, "id"))
	require.Contains(t, tool, "function")
	require.Equal(t, `{"city":"Zürich`, at(t, all[9].data, "choices", 0, "delta", "tool_calls", 0, "function", "arguments"))
	require.Equal(t, "tool_calls", at(t, all[11].data, "choices", 0, "finish_reason"))
	require.Empty(t, at(t, all[12].data, "choices"))
	require.EqualValues(t, wordsSent, at(t, all[12].data, "usage", "prompt_tokens"))
	require.EqualValues(t, 9, at(t, all[12].data, "usage", "completion_tokens"))
	require.EqualValues(t, wordsSent+9, at(t, all[12].data, "usage", "total_tokens"))
	require.Equal(t, "[DONE]", all[13].data)
	for _, e := range all[:12] {
		require.Empty(t, e.name)
		require.Equal(t, "chat.completion.chunk", at(t, e.data, "object"))
		require.Contains(t, at(t, e.data), "usage", "null while usage is asked for")
		require.Equal(t, at(t, all[0].data, "id"), at(t, e.data, "id"))
	}
}

func TestAnOpenAIStreamReportsUsageOnlyWhenAsked(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(2)})
	got := ask(t, s, completions, strings.Replace(openaiBody, `"include_usage":true`, `"include_usage":false`, 1))
	require.NotContains(t, got.body, "usage")
	require.False(t, only(t, s).UsageReported)
}

func TestAWholeAnswerHoldsAllBlocksInTheVendorsShape(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: everyBlock})
	got := ask(t, s, messages, whole(anthropicBody))
	require.Equal(t, "application/json", got.header.Get("Content-Type"))
	require.Equal(t, "let me think", at(t, got.body, "content", 0, "thinking"))
	require.Equal(t, "c2ln", at(t, got.body, "content", 0, "signature"))
	require.Equal(t, "I look it up.", at(t, got.body, "content", 1, "text"))
	require.Equal(t, "Zürich", at(t, got.body, "content", 2, "input", "city"))
	require.Equal(t, "tool_use", at(t, got.body, "stop_reason"))
	require.EqualValues(t, 9, at(t, got.body, "usage", "output_tokens"))

	got = ask(t, s, completions, whole(openaiBody))
	require.Equal(t, "chat.completion", at(t, got.body, "object"))
	require.Equal(t, "I look it up.", at(t, got.body, "choices", 0, "message", "content"))
	require.Equal(t, everyBlock[2].ToolUse.Input,
		at(t, got.body, "choices", 0, "message", "tool_calls", 0, "function", "arguments"))
	require.EqualValues(t, 9, at(t, got.body, "usage", "completion_tokens"))

	require.NoError(t, s.WaitFinished(limit(t), 2))
	for _, call := range s.Calls() {
		require.Equal(t, 9, call.DeltasSent)
		require.True(t, call.UsageReported)
	}
}

func TestAnAnswerIsCountedWhenItIsSent(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		s := start(t, scripted.Plan{Reply: deltas(12)})
		got := ask(t, s, v.path, v.body, "Idempotency-Key: k1")
		require.NoError(t, got.err)
		require.Len(t, said(t, got.body), 12*8)
		require.NotEmpty(t, got.header.Get(v.idHeader))

		call := only(t, s)
		require.NotNil(t, call.EndedAt)
		require.NotEmpty(t, call.ResponseID)
		require.Contains(t, got.body, call.ResponseID)
		require.Len(t, call.BodySHA256, 64)
		require.Equal(t, scripted.Call{
			N: 1, Wire: v.name, Model: "demo", IdempotencyKey: "k1", BodySHA256: call.BodySHA256, Rule: "rule", Status: 200,
			AcceptedAt: call.AcceptedAt, DeltasGenerated: 12, DeltasSent: 12, InputTokens: wordsSent, OutputTokens: 12,
			UsageReported: true, End: scripted.EndFinished, EndedAt: call.EndedAt, ResponseID: call.ResponseID,
		}, call)
		require.Equal(t, scripted.Counts{
			Connections: 1, Requests: 1, Generations: 1, InputTokens: wordsSent, OutputTokens: 12,
			ByKey: map[string]scripted.KeyCounts{"k1": {Requests: 1, Generations: 1}},
		}, s.Counts())
	})
}

func TestTheUsageIsWhatThePlanSays(t *testing.T) {
	for _, test := range []struct {
		usage                    scripted.Usage
		atStart, atEnd, reported bool
	}{
		{scripted.UsageFull, true, true, true},
		{scripted.UsageStartOnly, true, false, false},
		{scripted.UsageNone, false, false, false},
		{scripted.UsageZero, true, true, false},
	} {
		t.Run(string(test.usage), func(t *testing.T) {
			s := start(t, scripted.Plan{Reply: deltas(3), Usage: test.usage})
			all := events(t, ask(t, s, messages, anthropicBody).body)
			require.Equal(t, test.atStart, strings.Contains(all[0].data, "usage"))
			require.Equal(t, test.atEnd, strings.Contains(all[len(all)-2].data, "usage"))
			require.Equal(t, test.reported, only(t, s).UsageReported)
			if test.usage == scripted.UsageZero {
				require.EqualValues(t, 0, at(t, all[len(all)-2].data, "usage", "output_tokens"))
			}
		})
	}
}

func TestAStopReasonIsPutIntoTheVendorsWord(t *testing.T) {
	for _, test := range []struct{ plan, anthropic, openai string }{
		{"", "end_turn", "stop"},
		{"max_tokens", "max_tokens", "length"},
		{"refusal", "refusal", "content_filter"},
		{"brand_new", "brand_new", "brand_new"},
	} {
		s := start(t, scripted.Plan{Reply: deltas(1), StopReason: test.plan})
		got := ask(t, s, messages, whole(anthropicBody))
		require.Equal(t, test.anthropic, at(t, got.body, "stop_reason"))
		got = ask(t, s, completions, whole(openaiBody))
		require.Equal(t, test.openai, at(t, got.body, "choices", 0, "finish_reason"))
	}
}

func TestEveryLineEndingCarriesTheSameEvents(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		bodies := map[scripted.LineEnd]string{}
		for end, bytes := range map[scripted.LineEnd]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"} {
			got := ask(t, start(t, scripted.Plan{Reply: deltas(3), LineEnd: end}), v.path, v.body)
			require.Contains(t, got.body, bytes+bytes)
			bodies[end] = said(t, strings.ReplaceAll(got.body, bytes, "\n"))
			if end == scripted.LineEndCR {
				require.NotContains(t, got.body, "\n")
			}
		}
		require.Len(t, bodies["lf"], 24)
		require.Equal(t, bodies["lf"], bodies["crlf"])
		require.Equal(t, bodies["lf"], bodies["cr"])
	})
}

func TestByteModeSplitsRunes(t *testing.T) {
	const text = "naive 你好🦀 👩‍👩‍👧"
	eachVendor(t, func(t *testing.T, v vendor) {
		s := start(t, scripted.Plan{Blocks: []scripted.Block{{Text: text}}, Write: scripted.WriteByte})
		raw, err := dial(t, s).post(v.path, v.body).all()
		require.NoError(t, err)
		_, chunks, _ := strings.Cut(raw, "\r\n\r\n")
		var body strings.Builder
		split := false
		for strings.HasPrefix(chunks, "1\r\n") {
			body.WriteString(chunks[3:4])
			split = split || !utf8.ValidString(chunks[3:4])
			chunks = chunks[6:]
		}
		require.Equal(t, "0\r\n\r\n", chunks, "each chunk is one byte")
		require.True(t, split)
		require.Equal(t, text, said(t, body.String()))
	})
}

func TestOnceModeWritesNothingUntilTheEnd(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		s := start(t, scripted.Plan{
			Reply: deltas(4), Write: scripted.WriteOnce,
			Steps: []scripted.Step{{At: "delta:3", Do: "wait", Gate: "mid"}},
		})
		l := dial(t, s).post(v.path, v.body)
		require.NoError(t, s.WaitGate(limit(t), "mid", 1))
		require.Zero(t, s.Calls()[0].DeltasSent)
		require.Zero(t, s.Calls()[0].Status)
		require.NoError(t, s.OpenGate("mid"))
		raw, err := l.all()
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(raw[strings.Index(raw, "\r\n\r\n"):], "\r\n\r\n"), "the body is one chunk")
		require.Equal(t, 4, only(t, s).DeltasSent)
	})
}

func TestARequestThatNoRuleMatchesGetsTheDefaultTextAndNoEcho(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		s := scripted.Start(t, scripted.Script{})
		got := ask(t, s, v.path, strings.Replace(v.body, "please say hello to me", "sesame", 1))
		require.Contains(t, said(t, got.body), "scripted provider")
		require.NotContains(t, got.body, "sesame")
		require.Empty(t, only(t, s).Rule)
	})
}

func TestADemoPacesItsWords(t *testing.T) {
	demo := scripted.DemoScript()
	require.NoError(t, demo.Validate())
	require.Equal(t, 30, demo.Rules[0].Plan.PaceMS)
	plan := scripted.DefaultScript(1).Rules[0].Plan
	s := start(t, plan)
	require.Contains(t, said(t, ask(t, s, messages, anthropicBody).body), "without a key")
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(2)})
	l := dial(t, s)
	for range 3 {
		_, err := io.WriteString(l, "POST /v1/messages HTTP/1.1\r\nHost: s\r\nContent-Length: "+
			strconv.Itoa(len(anthropicBody))+"\r\n\r\n"+anthropicBody)
		require.NoError(t, err)
		require.Equal(t, 200, parse(t, l).status)
	}
	require.NoError(t, s.WaitFinished(limit(t), 3))
	require.Equal(t, 1, s.Counts().Connections)
}
