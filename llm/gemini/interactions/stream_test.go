package interactions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/turns"
)

// events frames events that were written as their JSON alone.
func events(all ...string) string {
	var stream strings.Builder
	for _, json := range all {
		fmt.Fprintf(&stream, "data: %s\n\n", json)
	}
	return stream.String()
}

func say(t *testing.T, all ...string) llmtest.Result {
	t.Helper()
	return llmtest.Say(t, interactions.Adapter(), events(all...))
}

const created = `{"event_type":"interaction.created","event_id":"e1","interaction":{"id":"v1_a","status":"in_progress"}}`

func completed(rest string) string {
	return `{"event_type":"interaction.completed","event_id":"e9","interaction":{"id":"v1_a",` + rest + `}}`
}

func textDelta(s string) string {
	return `{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"` + s + `"}}`
}

func TestEveryStatusSaysHowAReplyEnded(t *testing.T) {
	for status, want := range map[string]turns.StopReason{
		"completed": turns.StopEndTurn, "requires_action": turns.StopToolUse, "incomplete": turns.StopLength, "budget_exceeded": turns.StopLength,
		"brand_new": "",
	} {
		r := say(t, created, textDelta("a"), completed(`"status":"`+status+`"`))
		require.Nil(t, r.Err, status)
		require.Equal(t, want, r.Finished.StopReason, status)
		require.Equal(t, "a", r.Text)
		require.Equal(t, "v1_a", r.ResponseID)
	}
	for rest, want := range map[string]turns.CallError{
		`"status":"failed"`: {Class: turns.ClassTransient},
		`"status":"failed","errors":[{"code":"invalid_argument","message":"secret words"}]`:                  {Class: turns.ClassTerminal, Code: "invalid_argument"},
		`"status":"failed","errors":[{"code":"brand_new"}]`:                                                  {Class: turns.ClassTransient, Code: "brand_new"},
		`"status":"failed","errors":[{"code":429,"status":"RESOURCE_EXHAUSTED","details":[` + retry + `]}]}`: {},
		`"status":"cancelled"`: {Class: turns.ClassTerminal, Code: "cancelled"},
	} {
		r := say(t, created, textDelta("a"), completed(rest))
		require.NotNil(t, r.Err, rest)
		if want.Class != "" {
			require.Equal(t, want.Class, r.Err.Class, rest)
			require.Equal(t, want.Code, r.Err.Code, rest)
		}
	}
}

const retry = `{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"4s"}`

func TestAnInteractionThatHasNotEndedIsNoReply(t *testing.T) {
	for _, status := range []string{"in_progress", "queued", "requires_continuation", ""} {
		r := say(t, created, textDelta("a"), completed(`"status":"`+status+`","usage":{"total_input_tokens":9,"total_output_tokens":1}`))
		require.NotNil(t, r.Err, status)
		require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
		require.Equal(t, int64(1), r.Usage.Output)
	}
}

func TestAnErrorEventHasItsClass(t *testing.T) {
	for body, want := range map[string]turns.CallClass{
		`{"code":"unavailable"}`: turns.ClassTransient, `{"code":"internal"}`: turns.ClassTransient, `{"code":"resource_exhausted"}`: turns.ClassThrottled,
		`{"code":"invalid_argument"}`: turns.ClassTerminal, `{"code":"deadline_exceeded"}`: turns.ClassAmbiguous, `{"code":"cancelled"}`: turns.ClassAmbiguous,
		`{"code":"brand_new"}`: turns.ClassTransient, `{}`: turns.ClassAmbiguous, `null`: turns.ClassAmbiguous,
		`{"code":402,"status":"RESOURCE_EXHAUSTED"}`:                           turns.ClassTerminal,
		`{"code":429,"status":"RESOURCE_EXHAUSTED","details":[` + retry + `]}`: turns.ClassThrottled,
	} {
		r := say(t, created, `{"event_type":"error","event_id":"e2","error":`+body+`}`)
		require.NotNil(t, r.Err, body)
		require.Equal(t, want, r.Err.Class, body)
		if strings.Contains(body, "retryDelay") {
			require.Equal(t, 4*time.Second, r.Err.RetryAfter)
		}
	}
}

func TestEveryAnswerHasItsClass(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   turns.CallClass
	}{
		{400, `{"error":{"code":"invalid_argument","message":"secret words"}}`, turns.ClassTerminal},
		{402, `{"error":{"code":"resource_exhausted"}}`, turns.ClassTerminal},
		{404, `{"error":{"code":"not_found"}}`, turns.ClassTerminal},
		{429, `{"error":{"code":"resource_exhausted"}}`, turns.ClassThrottled},
		{429, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[` + retry + `]}}`, turns.ClassThrottled},
		{499, `{"error":{"code":"cancelled"}}`, turns.ClassAmbiguous},
		{500, `{"error":{"code":"internal"}}`, turns.ClassTransient},
		{500, `<html>`, turns.ClassAmbiguous},
		{503, `{"error":{"code":"unavailable"}}`, turns.ClassTransient},
		{504, `{"error":{"code":"deadline_exceeded"}}`, turns.ClassAmbiguous},
	} {
		require.Equal(t, tt.want, llmtest.Refuse(t, interactions.Adapter(), tt.status, tt.body).Class, "%d %s", tt.status, tt.body)
	}
}

func TestStepsOfAllKindsAreBlocks(t *testing.T) {
	r := say(t, created,
		`{"event_type":"step.start","index":0,"step":{"type":"thought"}}`,
		`{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"h"}}}`,
		`{"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"c2"}}`,
		`{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"m"}}}`,
		`{"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"ln"}}`,
		`{"event_type":"step.stop","index":0}`,
		`{"event_type":"step.start","index":1,"step":{"type":"thought","signature":"cmVk"}}`, `{"event_type":"step.stop","index":1}`,
		`{"event_type":"step.start","index":2,"step":{"type":"thought"}}`, `{"event_type":"step.stop","index":2}`,
		`{"event_type":"step.start","index":3,"step":{"type":"google_search_call","arguments":{"queries":["secret"]}}}`,
		`{"event_type":"step.delta","index":3,"delta":{"type":"google_search_call","arguments":{"queries":["secret"]}}}`,
		`{"event_type":"step.delta","index":3,"delta":{"type":"text","text":"secret"}}`, `{"event_type":"step.stop","index":3}`,
		`{"event_type":"step.start","index":4,"step":{"type":"model_output","content":[{"type":"text","text":"a"}]}}`,
		`{"event_type":"step.delta","index":4,"delta":{"type":"image","data":"secret"}}`,
		`{"event_type":"step.delta","index":4,"delta":{"type":"text","text":"b"}}`, `{"event_type":"step.stop","index":4}`,
		`{"event_type":"step.start","index":5,"step":{"type":"function_call","id":"1","name":"f","arguments":{}}}`,
		`{"event_type":"step.delta","index":5,"delta":{"type":"arguments_delta","arguments":"{ \"n\": 1"}}`,
		`{"event_type":"step.delta","index":5,"delta":{"type":"arguments_delta","arguments":" }"}}`, `{"event_type":"step.stop","index":5}`,
		`{"event_type":"step.start","index":6,"step":{"type":"function_call","name":"g","arguments":{"whole":1}}}`,
		completed(`"status":"requires_action"`))
	require.Nil(t, r.Err)
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
		{turns.KindThinking, false, true, "hm"}, {turns.KindThinking, true, true, ""}, {turns.KindText, false, false, "ab"},
		{turns.KindToolUse, false, false, `{ "n": 1 }`}, {turns.KindToolUse, false, false, `{"whole":1}`},
	}, got)
	require.Equal(t, "1", r.Blocks[3].ToolUseID)
	require.NotEmpty(t, r.Blocks[4].ToolUseID)
}

func TestWhatHasNoPlaceMakesAReplyLessThanWhole(t *testing.T) {
	for _, stray := range []string{
		`{"event_type":"step.delta","index":0,"delta":{"type":"arguments_delta","arguments":"{}"}}`,
		`{"event_type":"step.delta","index":4,"delta":{"type":"text","text":"a"}}`,
		`{"event_type":"step.delta","index":1,"delta":{"type":"thought_summary","content":{"text":"a"}}}`,
		`{"event_type":"step.delta","index":1,"delta":7}`,
		`{"event_type":"interaction.completed"}`,
	} {
		r := say(t, created, `{"event_type":"step.start","index":1,"step":{"type":"model_output"}}`, stray, completed(`"status":"completed"`))
		require.NotNil(t, r.Err, stray)
		require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
	}
}

func TestUsageIsToldWithEachStepAndInputHoldsTheToolsResults(t *testing.T) {
	usage := func(in, out, thought int) string {
		return fmt.Sprintf(`"usage":{"total_input_tokens":%d,"total_cached_tokens":40,"total_output_tokens":%d,"total_thought_tokens":%d,"total_tool_use_tokens":5}`, in, out, thought)
	}
	stream := []string{created,
		`{"event_type":"interaction.status_update","status":"in_progress",` + usage(100, 0, 0) + `}`,
		`{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"a"},"metadata":{"total_` + usage(100, 1, 7)[1:] + `}}`,
		`{"event_type":"step.stop","index":0,` + usage(100, 3, 7) + `}`}
	want := &turns.Usage{Input: 105, CacheRead: 40, Output: 10, Reasoning: 7, Source: turns.SourceReported}
	require.Equal(t, want, say(t, append(stream, completed(`"status":"completed",`+usage(100, 3, 7)))...).Usage)
	require.Equal(t, want, say(t, stream...).Usage, "a cut stream has what was told by then")
	require.Equal(t, int64(8), say(t, stream[:3]...).Usage.Output)
	require.Equal(t, int64(0), say(t, stream[:2]...).Usage.Output)
}
