package openai

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// errorMessage is the vendor's error: in a body or an event under "error", or, from some compatible servers, the whole
// body. The message itself is only looked at for being there: it is text for people, and may quote the prompt.
type errorMessage struct {
	Object  string  `json:"object"`
	Message present `json:"message"`
	Type    word    `json:"type"`
	Code    word    `json:"code"`
}

// present says that a field is there, and forgets what it holds.
type present bool

// UnmarshalJSON implements json.Unmarshaler.
func (p *present) UnmarshalJSON(data []byte) error {
	*p = present(string(data) != "null" && string(data) != `""`)
	return nil
}

// word is a code, which compatible servers also write as a number. Anything else is none.
type word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) != nil {
		if n, err := strconv.Atoi(string(data)); err == nil {
			s = strconv.Itoa(n)
		}
	}
	*w = word(s)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. An error that is no object is none of the vendor's.
func (m *errorMessage) UnmarshalJSON(data []byte) error {
	type plain errorMessage
	var p plain
	if json.Unmarshal(data, &p) == nil {
		*m = errorMessage(p)
	}
	return nil
}

// said is what the error says; one without type, code or message says nothing, and is not the vendor's.
func (m *errorMessage) said() wire.Said {
	if m == nil || (!m.Message && m.Type == "" && m.Code == "") {
		return wire.Said{}
	}
	said := wire.Said{Own: true, Code: string(m.Code), Type: string(m.Type)}
	if status, err := strconv.Atoi(said.Code); err == nil && 300 <= status && status <= 599 {
		said.Status, said.Code = status, "" // a status that is written as a code says less than the type
	}
	return said
}

// rules is the vendor's table, and that of the servers compatible with it, whose types are class names of theirs. Codes
// come from quotas and locks, and from gateways that honour an idempotency key, which the vendor itself does not. Unlike
// others this vendor says by a code when a 429 is final, so a bare one is worth waiting for.
var rules = wire.Rules{
	Codes: map[string]turns.CallClass{
		"conversation_locked":        turns.ClassInFlightElsewhere,
		"insufficient_quota":         turns.ClassTerminal,
		"budget_exceeded":            turns.ClassTerminal,
		"billing_hard_limit_reached": turns.ClassTerminal,
		"billing_not_active":         turns.ClassTerminal,
		"idempotency_key_in_use":     turns.ClassInFlightElsewhere,
		"idempotency_key_conflict":   turns.ClassAlreadyDone,
	},
	Statuses: map[string]int{
		"invalid_request_error":   http.StatusBadRequest,
		"context_length_exceeded": http.StatusBadRequest,
		"invalid_prompt":          http.StatusBadRequest,
		"BadRequestError":         http.StatusBadRequest,
		"authentication_error":    http.StatusUnauthorized,
		"invalid_api_key":         http.StatusUnauthorized,
		"permission_error":        http.StatusForbidden,
		"not_found_error":         http.StatusNotFound,
		"model_not_found":         http.StatusNotFound,
		"NotFoundError":           http.StatusNotFound,
		"rate_limit_exceeded":     http.StatusTooManyRequests,
		"rate_limit_error":        http.StatusTooManyRequests,
		"requests":                http.StatusTooManyRequests,
		"tokens":                  http.StatusTooManyRequests,
		"server_error":            http.StatusInternalServerError,
		"api_error":               http.StatusInternalServerError,
		"internal_error":          http.StatusInternalServerError,
		"internal_server_error":   http.StatusInternalServerError,
		"InternalServerError":     http.StatusInternalServerError,
		"overloaded_error":        http.StatusServiceUnavailable,
		"service_unavailable":     http.StatusServiceUnavailable,
		"timeout":                 http.StatusGatewayTimeout,
		"timeout_error":           http.StatusGatewayTimeout,
	},
	Bare429: turns.ClassThrottled,
}

// classify says what a response of a bad status means. Without the vendor's own error in the body only the status counts.
func classify(a wire.Answer) wire.Verdict {
	said := read(a.Body)
	return wire.Verdict{Class: rules.Answer(a.Status, said, a.Hinted), Word: said.Word()}
}

// read finds the error in a body, in either of its two places.
func read(body []byte) wire.Said {
	var wrapped struct {
		Error *errorMessage `json:"error"`
	}
	if json.Unmarshal(body, &wrapped) != nil {
		return wire.Said{}
	}
	if wrapped.Error != nil {
		return wrapped.Error.said()
	}
	var bare errorMessage
	if json.Unmarshal(body, &bare) == nil && bare.Object == "error" {
		return bare.said()
	}
	return wire.Said{}
}
