package anthropic

import (
	"encoding/json"
	"net/http"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// errorBody is the vendor's error, as a response's body and as an event.
type errorBody struct {
	Type  string        `json:"type"`
	Error *errorMessage `json:"error"`
}

// errorMessage leaves out the message: it is text for people, and may quote the prompt.
type errorMessage struct {
	Type    string       `json:"type"`
	Details errorDetails `json:"details"`
}

// errorDetails are none where they have another form: the type of the error still counts then.
type errorDetails struct{ Code string }

// UnmarshalJSON implements json.Unmarshaler.
func (d *errorDetails) UnmarshalJSON(data []byte) error {
	var v struct {
		Code string `json:"error_code"`
	}
	if json.Unmarshal(data, &v) == nil {
		d.Code = v.Code
	}
	return nil
}

// said is what the error says; a nil one says nothing.
func (m *errorMessage) said() wire.Said {
	if m == nil || m.Type == "" {
		return wire.Said{}
	}
	return wire.Said{Own: true, Code: m.Details.Code, Type: m.Type}
}

// rules is the vendor's table. Codes come from threads and spend limits, and from gateways that honour an idempotency key,
// which the vendor itself does not. Statuses are those that each type has when it comes as a response.
//
// The vendor never asks to wait on a 429 that waiting does not cure, so a bare one is over.
var rules = wire.Rules{
	Codes: map[string]turns.CallClass{
		"thread_continue_in_flight":    turns.ClassInFlightElsewhere,
		"thread_already_continued":     turns.ClassAlreadyDone,
		"enforced_spend_limit_reached": turns.ClassTerminal,
		"contract_spend_limit_reached": turns.ClassTerminal,
		"idempotency_key_in_use":       turns.ClassInFlightElsewhere,
		"idempotency_key_conflict":     turns.ClassAlreadyDone,
	},
	Statuses: map[string]int{
		"invalid_request_error": http.StatusBadRequest,
		"authentication_error":  http.StatusUnauthorized,
		"billing_error":         http.StatusPaymentRequired,
		"permission_error":      http.StatusForbidden,
		"not_found_error":       http.StatusNotFound,
		"conflict_error":        http.StatusConflict,
		"request_too_large":     http.StatusRequestEntityTooLarge,
		"rate_limit_error":      http.StatusTooManyRequests,
		"api_error":             http.StatusInternalServerError,
		"timeout_error":         http.StatusGatewayTimeout,
		"overloaded_error":      529,
	},
	Bare429: turns.ClassTerminal,
}

// classify says what a response of a bad status means. A body that is not the vendor's own says nothing: a proxy in
// between wrote it, and what happened behind the proxy is unknown.
func classify(a wire.Answer) wire.Verdict {
	var body errorBody
	var said wire.Said
	if json.Unmarshal(a.Body, &body) == nil && body.Type == "error" {
		said = body.Error.said()
	}
	return wire.Verdict{Class: rules.Answer(a.Status, said, a.Hinted), Word: said.Word()}
}
