package gemini_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/turns"
)

// errorBody is the vendor's error. details are those of google.rpc, as JSON.
func errorBody(code int, status, details string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":"secret words","status":%q,"details":[%s]}}`, code, status, details)
}

func reason(word string) string {
	return fmt.Sprintf(`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":%q,"domain":"googleapis.com"}`, word)
}

func retryIn(delay string) string {
	return fmt.Sprintf(`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":%q}`, delay)
}

func TestEveryAnswerHasItsClass(t *testing.T) {
	const header = "Retry-After: 7"
	for _, tt := range []struct {
		status        int
		word, details string
		header        string
		class         turns.CallClass
		code          string
	}{
		{400, "INVALID_ARGUMENT", "", "", turns.ClassTerminal, "INVALID_ARGUMENT"},
		{400, "INVALID_ARGUMENT", reason("API_KEY_INVALID"), header, turns.ClassTerminal, "API_KEY_INVALID"},
		{400, "FAILED_PRECONDITION", "", "", turns.ClassTerminal, "FAILED_PRECONDITION"},
		{401, "UNAUTHENTICATED", "", "", turns.ClassTerminal, "UNAUTHENTICATED"},
		{402, "RESOURCE_EXHAUSTED", "", "", turns.ClassTerminal, "RESOURCE_EXHAUSTED"},
		{402, "RESOURCE_EXHAUSTED", retryIn("30s"), header, turns.ClassTerminal, "RESOURCE_EXHAUSTED"},
		{403, "PERMISSION_DENIED", "", "", turns.ClassTerminal, "PERMISSION_DENIED"},
		{404, "NOT_FOUND", "", "", turns.ClassTerminal, "NOT_FOUND"},
		{409, "ABORTED", "", "", turns.ClassAmbiguous, "ABORTED"},
		{413, "INVALID_ARGUMENT", "", "", turns.ClassTerminal, "INVALID_ARGUMENT"},
		{429, "RESOURCE_EXHAUSTED", retryIn("30s"), "", turns.ClassThrottled, "RESOURCE_EXHAUSTED"},
		{429, "RESOURCE_EXHAUSTED", "", header, turns.ClassThrottled, "RESOURCE_EXHAUSTED"},
		{429, "RESOURCE_EXHAUSTED", "", "", turns.ClassThrottled, "RESOURCE_EXHAUSTED"},
		{429, "", "", "", turns.ClassThrottled, ""},
		{499, "CANCELLED", "", "", turns.ClassAmbiguous, "CANCELLED"},
		{500, "INTERNAL", "", "", turns.ClassTransient, "INTERNAL"},
		{500, "BRAND_NEW", "", "", turns.ClassTransient, "BRAND_NEW"},
		{500, "", "", "", turns.ClassAmbiguous, ""},
		{502, "", "", header, turns.ClassAmbiguous, ""},
		{503, "UNAVAILABLE", "", "", turns.ClassTransient, "UNAVAILABLE"},
		{503, "UNAVAILABLE", retryIn("2s"), "", turns.ClassThrottled, "UNAVAILABLE"},
		{503, "", "", header, turns.ClassAmbiguous, ""},
		{504, "DEADLINE_EXCEEDED", "", "", turns.ClassAmbiguous, "DEADLINE_EXCEEDED"},
		{307, "", "", "", turns.ClassTerminal, ""},
	} {
		t.Run(fmt.Sprint(tt.status, tt.word, tt.details, tt.header), func(t *testing.T) {
			body, headers := "<html>secret words</html>", []string{"X-Request-Id: req_1"}
			if tt.word != "" {
				body = errorBody(tt.status, tt.word, tt.details)
			}
			if tt.header != "" {
				headers = append(headers, tt.header)
			}
			for _, said := range []string{body, "[" + body + "\n]\n"} { // servers exist that put it into a list
				err := llmtest.Refuse(t, gemini.Adapter(), tt.status, said, headers...)
				require.Equal(t, tt.class, err.Class, said)
				require.Equal(t, tt.code, err.Code)
				require.Equal(t, "req_1", err.RequestID)
				require.Equal(t, turns.PhaseHeaders, err.Phase)
			}
		})
	}
}

func TestTheTimeToWaitStandsInTheBody(t *testing.T) {
	for _, tt := range []struct {
		details, header string
		want            time.Duration
		asks            bool
	}{
		{retryIn("30s"), "", 30 * time.Second, true},
		{reason("RATE_LIMIT_EXCEEDED") + "," + retryIn("0.250s"), "", 250 * time.Millisecond, true},
		{retryIn("30s"), "Retry-After: 7", 7 * time.Second, true},
		{retryIn("-3s"), "", 0, true},
		{retryIn("9999999s"), "", 30 * 24 * time.Hour, true},
		{retryIn("soon"), "", 0, false},
		{`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":{"seconds":3}}`, "", 0, false},
		{`{"@type":"other","retryDelay":"3s"},"words"`, "", 0, false},
		{"", "", 0, false},
	} {
		var headers []string
		if tt.header != "" {
			headers = append(headers, tt.header)
		}
		err := llmtest.Refuse(t, gemini.Adapter(), 429, errorBody(429, "RESOURCE_EXHAUSTED", tt.details), headers...)
		require.Equal(t, turns.ClassThrottled, err.Class, tt.details)
		require.Equal(t, tt.want, err.RetryAfter, tt.details)
		require.Equal(t, tt.asks, err.HasRetryAfter, tt.details)
	}
}

func TestAnErrorInAStreamHasTheClassOfItsNumber(t *testing.T) {
	for _, tt := range []struct {
		body  string
		class turns.CallClass
		wait  time.Duration
	}{
		{errorBody(503, "UNAVAILABLE", ""), turns.ClassTransient, 0},
		{errorBody(503, "UNAVAILABLE", retryIn("4s")), turns.ClassThrottled, 4 * time.Second},
		{errorBody(500, "INTERNAL", ""), turns.ClassTransient, 0},
		{errorBody(429, "RESOURCE_EXHAUSTED", retryIn("4s")), turns.ClassThrottled, 4 * time.Second},
		{errorBody(402, "RESOURCE_EXHAUSTED", ""), turns.ClassTerminal, 0},
		{errorBody(400, "INVALID_ARGUMENT", ""), turns.ClassTerminal, 0},
		{errorBody(504, "DEADLINE_EXCEEDED", ""), turns.ClassAmbiguous, 0},
		{errorBody(499, "CANCELLED", ""), turns.ClassAmbiguous, 0},
		{errorBody(0, "RESOURCE_EXHAUSTED", ""), turns.ClassThrottled, 0},
		{errorBody(0, "BRAND_NEW", ""), turns.ClassAmbiguous, 0},
		{`{"error":{"message":"secret words"}}`, turns.ClassAmbiguous, 0},
		{`{"error":"secret words"}`, turns.ClassAmbiguous, 0},
	} {
		r := llmtest.Say(t, gemini.Adapter(), event(`{"responseId":"r","usageMetadata":{"promptTokenCount":9}}`)+event(tt.body))
		require.NotNil(t, r.Err, tt.body)
		require.Equal(t, tt.class, r.Err.Class, tt.body)
		require.Equal(t, tt.wait, r.Err.RetryAfter, tt.body)
		require.Equal(t, int64(9), r.Usage.Input, "what was counted before stands")
	}
}
