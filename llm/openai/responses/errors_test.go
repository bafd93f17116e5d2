package responses_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/turns"
)

func voice() llmtest.Voice { return llmtest.Voices[llm.WireOpenAIResponses] }

// event frames an event by its type.
func event(kind, fields string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
}

func TestEveryAnswerHasItsClass(t *testing.T) {
	body := func(kind, code string) string {
		return fmt.Sprintf(`{"error":{"message":"secret words","type":%q,"param":null,"code":%s}}`, kind, code)
	}
	for _, tt := range []struct {
		status int
		body   string
		want   turns.CallClass
		word   string
	}{
		{400, body("invalid_request_error", `"conversation_locked"`), turns.ClassInFlightElsewhere, "conversation_locked"},
		{400, body("invalid_request_error", `"context_length_exceeded"`), turns.ClassTerminal, "context_length_exceeded"},
		{400, body("invalid_request_error", `"unsupported_parameter"`), turns.ClassTerminal, "unsupported_parameter"},
		{401, body("invalid_request_error", `"invalid_api_key"`), turns.ClassTerminal, "invalid_api_key"},
		{404, body("invalid_request_error", "null"), turns.ClassTerminal, "invalid_request_error"},
		{429, body("requests", `"rate_limit_exceeded"`), turns.ClassThrottled, "rate_limit_exceeded"},
		{429, body("insufficient_quota", `"insufficient_quota"`), turns.ClassTerminal, "insufficient_quota"},
		{500, body("server_error", "null"), turns.ClassTransient, "server_error"},
		{502, "<html>", turns.ClassAmbiguous, ""},
		{503, body("server_error", "null"), turns.ClassTransient, "server_error"},
		{504, body("timeout", "null"), turns.ClassAmbiguous, "timeout"},
	} {
		err := llmtest.Refuse(t, responses.Adapter(), tt.status, tt.body)
		require.Equal(t, tt.want, err.Class, "%d %s", tt.status, tt.body)
		require.Equal(t, tt.word, err.Code)
	}
}

// failures are the codes of responses that failed, and what each means.
var failures = map[string]turns.CallClass{
	"server_error":                  turns.ClassTransient,
	"rate_limit_exceeded":           turns.ClassThrottled,
	"insufficient_quota":            turns.ClassTerminal,
	"invalid_prompt":                turns.ClassTerminal,
	"bio_policy":                    turns.ClassTerminal,
	"misalignment_policy_violation": turns.ClassTerminal,
	"invalid_image_format":          turns.ClassTerminal,
	"image_too_large":               turns.ClassTerminal,
	"empty_image_file":              turns.ClassTerminal,
	"vector_store_timeout":          turns.ClassTransient,
	"never_heard_of":                turns.ClassTransient,
}

func TestAResponseThatFailedHasTheClassOfItsCodeAndKeepsItsUsage(t *testing.T) {
	for code, want := range failures {
		r := llmtest.Say(t, responses.Adapter(), voice().Open+voice().Text("a")+event("response.failed",
			`,"response":{"id":"resp_1","status":"failed","error":{"code":"`+code+`","message":"secret words"},"usage":{"input_tokens":5,"output_tokens":1}}`))
		require.NotNil(t, r.Err, code)
		require.Equal(t, want, r.Err.Class, code)
		require.Equal(t, code, r.Err.Code)
		require.Equal(t, turns.PhaseBody, r.Err.Phase)
		require.Equal(t, "a", r.Text)
		require.Equal(t, int64(5), r.Usage.Input)
	}
	r := llmtest.Say(t, responses.Adapter(), voice().Open+event("response.failed", `,"response":{"status":"failed","error":null}`))
	require.Equal(t, turns.ClassTransient, r.Err.Class, "a failure without a reason is one")
	r = llmtest.Say(t, responses.Adapter(), voice().Open+event("response.cancelled", `,"response":{"status":"cancelled"}`))
	require.Equal(t, turns.ClassTerminal, r.Err.Class)
}

func TestAnErrorEventHasTheClassOfItsCodeWhereverThatStands(t *testing.T) {
	for code, want := range map[string]turns.CallClass{
		"server_error": turns.ClassTransient, "rate_limit_exceeded": turns.ClassThrottled, "context_length_exceeded": turns.ClassTerminal,
		"insufficient_quota": turns.ClassTerminal, "never_heard_of": turns.ClassAmbiguous,
	} {
		for _, fields := range []string{
			`,"code":"` + code + `","message":"secret words","param":null,"sequence_number":9`,
			`,"error":{"type":"x","code":"` + code + `","message":"secret words"}`,
		} {
			r := llmtest.Say(t, responses.Adapter(), voice().Open+event("error", fields)+voice().Terminal)
			require.NotNil(t, r.Err, code)
			require.Equal(t, want, r.Err.Class, code)
			require.Equal(t, code, r.Err.Code)
		}
	}
	r := llmtest.Say(t, responses.Adapter(), voice().Open+event("error", `,"code":null,"message":"secret words"`))
	require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
}
