package openai_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/turns"
)

// errorJSON is the vendor's error object; code is JSON.
func errorJSON(kind, code string) string {
	return fmt.Sprintf(`{"message":"secret words","type":%q,"param":null,"code":%s}`, kind, code)
}

func TestEveryAnswerHasItsClass(t *testing.T) {
	const wait = "Retry-After: 7"
	wrapped := func(kind, code string) string { return `{"error":` + errorJSON(kind, code) + `}` }
	for _, tt := range []struct {
		status int
		body   string
		header string
		want   turns.CallClass
		word   string
	}{
		{400, wrapped("invalid_request_error", `"context_length_exceeded"`), "", turns.ClassTerminal, "context_length_exceeded"},
		{400, wrapped("invalid_request_error", `"conversation_locked"`), "", turns.ClassInFlightElsewhere, "conversation_locked"},
		{401, wrapped("invalid_request_error", `"invalid_api_key"`), "", turns.ClassTerminal, "invalid_api_key"},
		{402, wrapped("billing", "null"), "", turns.ClassTerminal, "billing"},
		{403, wrapped("permission_error", "null"), "", turns.ClassTerminal, "permission_error"},
		{404, wrapped("invalid_request_error", `"model_not_found"`), "", turns.ClassTerminal, "model_not_found"},
		{404, "404 page not found", "", turns.ClassTerminal, ""},
		{408, wrapped("timeout", "null"), "", turns.ClassAmbiguous, "timeout"},
		{409, wrapped("invalid_request_error", "null"), "", turns.ClassAmbiguous, "invalid_request_error"},
		{409, wrapped("invalid_request_error", `"idempotency_key_conflict"`), "", turns.ClassAlreadyDone, "idempotency_key_conflict"},
		{413, "", "", turns.ClassTerminal, ""},
		{422, wrapped("invalid_request_error", "null"), "", turns.ClassTerminal, "invalid_request_error"},
		{429, wrapped("requests", `"rate_limit_exceeded"`), wait, turns.ClassThrottled, "rate_limit_exceeded"},
		{429, wrapped("requests", `"rate_limit_exceeded"`), "", turns.ClassThrottled, "rate_limit_exceeded"},
		{429, wrapped("tokens", `"rate_limit_exceeded"`), "X-Ratelimit-Reset-Tokens: 6m0s", turns.ClassThrottled, "rate_limit_exceeded"},
		{429, wrapped("insufficient_quota", `"insufficient_quota"`), wait, turns.ClassTerminal, "insufficient_quota"},
		{429, wrapped("insufficient_quota", "null"), "", turns.ClassTerminal, "insufficient_quota"},
		{429, wrapped("requests", `"billing_hard_limit_reached"`), "", turns.ClassTerminal, "billing_hard_limit_reached"},
		{429, wrapped("insufficient_quota", `"429"`), "", turns.ClassTerminal, "insufficient_quota"},
		{429, wrapped("throttling_error", `"429"`), "", turns.ClassThrottled, "throttling_error"},
		{400, wrapped("budget_exceeded", `"400"`), "", turns.ClassTerminal, "budget_exceeded"},
		{429, wrapped("budget_exceeded", "null"), wait, turns.ClassTerminal, "budget_exceeded"},
		{400, wrapped("BadRequestError", "400"), "", turns.ClassTerminal, "BadRequestError"},
		{404, `{"object":"error","message":"secret words","type":"NotFoundError","param":"model","code":404}`, "", turns.ClassTerminal, "NotFoundError"},
		{404, `{"error":{"message":"secret words","type":"api_error","param":null,"code":null}}`, "", turns.ClassTerminal, "api_error"},
		{429, "slow down", "", turns.ClassThrottled, ""},
		{499, "", "", turns.ClassAmbiguous, ""},
		{500, wrapped("server_error", "null"), "", turns.ClassTransient, "server_error"},
		{500, `{"object":"error","message":"secret words","type":"InternalServerError","param":null,"code":500}`, "", turns.ClassTransient, "InternalServerError"},
		{500, `{"error":{"message":"secret words"}}`, "", turns.ClassTransient, ""},
		{500, `{"error":"secret words"}`, "", turns.ClassAmbiguous, ""},
		{500, `{"error":{}}`, "", turns.ClassAmbiguous, ""},
		{500, `{"detail":"secret words"}`, "", turns.ClassAmbiguous, ""},
		{502, "<html>", "", turns.ClassAmbiguous, ""},
		{503, wrapped("service_unavailable", "null"), wait, turns.ClassThrottled, "service_unavailable"},
		{503, wrapped("service_unavailable", "null"), "", turns.ClassTransient, "service_unavailable"},
		{503, "<html>", wait, turns.ClassAmbiguous, ""},
		{504, wrapped("timeout", "null"), "", turns.ClassAmbiguous, "timeout"},
		{529, wrapped("overloaded_error", "null"), "", turns.ClassTransient, "overloaded_error"},
		{308, "", "", turns.ClassTerminal, ""},
		{201, "", "", turns.ClassAmbiguous, ""},
		{400, wrapped("invalid_request_error", `"secret words"`), "", turns.ClassTerminal, ""},
		{400, wrapped("invalid_request_error", `{"secret":"words"}`), "", turns.ClassTerminal, "invalid_request_error"},
	} {
		t.Run(fmt.Sprint(tt.status, tt.body, tt.header), func(t *testing.T) {
			var headers []string
			if tt.header != "" {
				headers = append(headers, tt.header)
			}
			err := llmtest.Refuse(t, openai.Adapter(), tt.status, tt.body, headers...)
			require.Equal(t, tt.want, err.Class)
			require.Equal(t, tt.word, err.Code)
			require.Equal(t, tt.header != "", err.HasRetryAfter)
		})
	}
}

func TestEveryErrorEventHasTheClassOfItsCode(t *testing.T) {
	for _, tt := range []struct {
		kind, code string
		want       turns.CallClass
	}{
		{"server_error", "null", turns.ClassTransient},
		{"InternalServerError", "500", turns.ClassTransient},
		{"brand_new", "502", turns.ClassTransient},
		{"brand_new", "503", turns.ClassTransient},
		{"brand_new", "504", turns.ClassAmbiguous},
		{"brand_new", "429", turns.ClassThrottled},
		{"brand_new", `"422"`, turns.ClassTerminal},
		{"brand_new", "7", turns.ClassAmbiguous},
		{"brand_new", "null", turns.ClassAmbiguous},
		{"brand_new", `"rate_limit_exceeded"`, turns.ClassThrottled},
		{"requests", `"insufficient_quota"`, turns.ClassTerminal},
		{"invalid_request_error", `"brand_new"`, turns.ClassTerminal},
		{"overloaded_error", "null", turns.ClassTransient},
		{"timeout", "null", turns.ClassAmbiguous},
		{"BadRequestError", "400", turns.ClassTerminal},
	} {
		r := llmtest.Say(t, openai.Adapter(), voice().Open+`data: {"error":`+errorJSON(tt.kind, tt.code)+"}\n\n"+voice().Terminal)
		require.NotNil(t, r.Err, "%s %s", tt.kind, tt.code)
		require.Equal(t, tt.want, r.Err.Class, "%s %s", tt.kind, tt.code)
		require.Equal(t, turns.PhaseBody, r.Err.Phase)
		require.Empty(t, r.Text)
	}
	r := llmtest.Say(t, openai.Adapter(), voice().Open+`data: {"error":"secret words"}`+"\n\n"+voice().Terminal)
	require.Equal(t, turns.ClassAmbiguous, r.Err.Class, "an error that is only text is an error all the same")
}

func TestAReplyThatEndsForAnErrorIsNone(t *testing.T) {
	for choice, want := range map[string]struct {
		class turns.CallClass
		word  string
	}{
		`"finish_reason":"error"`: {turns.ClassTransient, "error"},
		`"finish_reason":"abort"`: {turns.ClassAmbiguous, "abort"},
		`"finish_reason":"error","error":{"code":429,"message":"secret words"}`:         {turns.ClassThrottled, ""},
		`"finish_reason":"error","error":{"code":"insufficient_quota","message":"sec"}`: {turns.ClassTerminal, "insufficient_quota"},
	} {
		r := llmtest.Say(t, openai.Adapter(), voice().Open+voice().Text("a")+`data: {"choices":[{"index":0,"delta":{},`+choice+"}]}\n\n"+voice().Terminal)
		require.NotNil(t, r.Err, choice)
		require.Equal(t, want.class, r.Err.Class, choice)
		require.Equal(t, want.word, r.Err.Code, choice)
		require.Equal(t, "a", r.Text, "what came is shown")
	}
}

func TestWhatAGatewaySentBesidesIsCounted(t *testing.T) {
	for _, tt := range []struct {
		headers []string
		want    int
	}{
		{nil, 0},
		{[]string{"X-Litellm-Attempted-Retries: 2"}, 2},
		{[]string{"x-litellm-attempted-retries: 1", "x-litellm-attempted-fallbacks: 3"}, 4},
		{[]string{"x-litellm-attempted-retries: -1", "x-litellm-attempted-fallbacks: None"}, 0},
		{[]string{"x-litellm-attempted-retries: 999999999"}, 1000},
	} {
		for _, a := range []llm.Adapter{openai.Adapter(), responses.Adapter()} {
			err := llmtest.Refuse(t, a, 500, `{"error":`+errorJSON("server_error", "null")+`}`, tt.headers...)
			require.Equal(t, tt.want, err.Extra, "%s: %v", a.Wire, tt.headers)
		}
	}
}
