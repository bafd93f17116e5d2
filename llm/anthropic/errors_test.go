package anthropic_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/turns"
)

func errorBody(kind, code string) string {
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"secret words","details":{"error_code":%q}},"request_id":"req_1"}`, kind, code)
}

func TestEveryAnswerHasItsClass(t *testing.T) {
	const wait = "Retry-After: 7"
	for _, tt := range []struct {
		status     int
		kind, code string
		header     string
		want       turns.CallClass
	}{
		{400, "invalid_request_error", "", "", turns.ClassTerminal},
		{400, "invalid_request_error", "enforced_spend_limit_reached", "", turns.ClassTerminal},
		{400, "invalid_request_error", "thread_continue_in_flight", "", turns.ClassInFlightElsewhere},
		{400, "invalid_request_error", "thread_already_continued", "", turns.ClassAlreadyDone},
		{400, "invalid_request_error", "thread_fingerprint_mismatch", "", turns.ClassTerminal},
		{401, "authentication_error", "", "", turns.ClassTerminal},
		{402, "billing_error", "", wait, turns.ClassTerminal},
		{403, "permission_error", "", "", turns.ClassTerminal},
		{404, "not_found_error", "thread_not_found", "", turns.ClassTerminal},
		{408, "timeout_error", "", "", turns.ClassAmbiguous},
		{409, "conflict_error", "", "", turns.ClassAmbiguous},
		{409, "conflict_error", "idempotency_key_conflict", "", turns.ClassAlreadyDone},
		{413, "request_too_large", "", "", turns.ClassTerminal},
		{422, "invalid_request_error", "", wait, turns.ClassTerminal},
		{429, "rate_limit_error", "", wait, turns.ClassThrottled},
		{429, "rate_limit_error", "ramp_limit_exceeded", wait, turns.ClassThrottled},
		{429, "rate_limit_error", "", "", turns.ClassTerminal},
		{429, "rate_limit_error", "", "Anthropic-Ratelimit-Tokens-Reset: 2099-01-01T00:00:00Z", turns.ClassThrottled},
		{429, "rate_limit_error", "enforced_spend_limit_reached", wait, turns.ClassTerminal},
		{429, "rate_limit_error", "contract_spend_limit_reached", wait, turns.ClassTerminal},
		{499, "", "", "", turns.ClassAmbiguous},
		{500, "api_error", "", "", turns.ClassTransient},
		{500, "brand_new_error", "brand_new_code", "", turns.ClassTransient},
		{500, "", "", "", turns.ClassAmbiguous},
		{502, "api_error", "", "", turns.ClassTransient},
		{502, "", "", wait, turns.ClassAmbiguous},
		{503, "overloaded_error", "", wait, turns.ClassThrottled},
		{503, "overloaded_error", "", "", turns.ClassTransient},
		{503, "", "", "", turns.ClassAmbiguous},
		{504, "timeout_error", "", "", turns.ClassAmbiguous},
		{529, "overloaded_error", "", wait, turns.ClassThrottled},
		{529, "overloaded_error", "", "", turns.ClassTransient},
		{529, "", "", wait, turns.ClassAmbiguous},
		{307, "", "", "", turns.ClassTerminal},
		{418, "brand_new_error", "", "", turns.ClassTerminal},
	} {
		t.Run(fmt.Sprint(tt.status, tt.kind, tt.code, tt.header), func(t *testing.T) {
			body, headers := "<html>secret words</html>", []string{"Request-Id: req_1"}
			if tt.kind != "" {
				body = errorBody(tt.kind, tt.code)
			}
			if tt.header != "" {
				headers = append(headers, tt.header)
			}
			err := llmtest.Refuse(t, anthropic.Adapter(), tt.status, body, headers...)
			require.Equal(t, tt.want, err.Class)
			require.Equal(t, tt.status, err.HTTPStatus)
			require.Equal(t, turns.PhaseHeaders, err.Phase)
			require.Equal(t, "req_1", err.RequestID)
			word := tt.code
			if word == "" {
				word = tt.kind
			}
			require.Equal(t, word, err.Code)
			if tt.header == wait {
				require.Equal(t, 7*time.Second, err.RetryAfter)
			}
		})
	}
}

func TestAnErrorCountsByItsTypeWhereItsDetailsCanNotBeRead(t *testing.T) {
	for _, details := range []string{`null`, `[]`, `"words"`, `{"error_code":7}`} {
		body := `{"type":"error","error":{"type":"api_error","message":"secret words","details":` + details + `}}`
		err := llmtest.Refuse(t, anthropic.Adapter(), 500, body)
		require.Equal(t, turns.ClassTransient, err.Class, details)
		require.Equal(t, "api_error", err.Code, details)
	}
}

func TestEveryErrorEventHasTheClassOfItsCode(t *testing.T) {
	for kind, want := range map[string]turns.CallClass{
		"invalid_request_error": turns.ClassTerminal, "authentication_error": turns.ClassTerminal,
		"billing_error": turns.ClassTerminal, "permission_error": turns.ClassTerminal, "not_found_error": turns.ClassTerminal,
		"conflict_error": turns.ClassAmbiguous, "request_too_large": turns.ClassTerminal,
		"rate_limit_error": turns.ClassThrottled, "api_error": turns.ClassTransient, "timeout_error": turns.ClassAmbiguous,
		"overloaded_error": turns.ClassTransient, "brand_new_error": turns.ClassAmbiguous,
	} {
		r := llmtest.Say(t, anthropic.Adapter(), voice().Open+voice().Error(kind))
		require.Equal(t, want, r.Err.Class, kind)
		require.Equal(t, kind, r.Err.Code)
		require.Equal(t, turns.PhaseBody, r.Err.Phase)
		require.Equal(t, 200, r.Err.HTTPStatus)
		require.Empty(t, r.Text)
	}
	for code, want := range map[string]turns.CallClass{
		"thread_continue_in_flight": turns.ClassInFlightElsewhere, "thread_already_continued": turns.ClassAlreadyDone,
		"enforced_spend_limit_reached": turns.ClassTerminal, "brand_new": turns.ClassThrottled,
	} {
		r := llmtest.Say(t, anthropic.Adapter(), voice().Open+"data: "+errorBody("rate_limit_error", code)+"\n\n")
		require.Equal(t, want, r.Err.Class, code)
		require.Equal(t, code, r.Err.Code)
	}
	r := llmtest.Say(t, anthropic.Adapter(), voice().Open+"event: error\ndata: {\"type\":\"error\"}\n\n")
	require.Equal(t, turns.ClassAmbiguous, r.Err.Class)
}
