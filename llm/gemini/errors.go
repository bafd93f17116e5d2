package gemini

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Failure is the vendor's error, in a body or an event. It leaves out the message: that is text for people, and may quote
// the prompt. Status is its word for the kind of failure; the code is a status of HTTP, or on newer wires the word itself.
type Failure struct {
	Code    code     `json:"code"`
	Status  string   `json:"status"`
	Details []detail `json:"details"`
}

// code is a number, or a word.
type code struct {
	status int
	word   string
}

// UnmarshalJSON implements json.Unmarshaler. What is neither is none.
func (c *code) UnmarshalJSON(data []byte) error {
	*c = code{}
	if json.Unmarshal(data, &c.word) != nil {
		c.word = ""
		c.status, _ = strconv.Atoi(string(data))
	}
	return nil
}

// detail is one of the error's details: of the kinds that there are, the exact reason and the time to wait are read.
type detail struct {
	Type   string `json:"@type"`
	Reason string `json:"reason"`
	Delay  string `json:"retryDelay"`
}

const (
	errorInfo = "type.googleapis.com/google.rpc.ErrorInfo"
	retryInfo = "type.googleapis.com/google.rpc.RetryInfo"
)

// UnmarshalJSON implements json.Unmarshaler. A detail that uses these names for something else is none of them.
func (d *detail) UnmarshalJSON(data []byte) error {
	type plain detail
	var p plain
	if json.Unmarshal(data, &p) == nil {
		*d = detail(p)
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. An error that is no object is none of the vendor's.
func (f *Failure) UnmarshalJSON(data []byte) error {
	type plain Failure
	var p plain
	if json.Unmarshal(data, &p) == nil {
		*f = Failure(p)
	}
	return nil
}

// said is what the error says; one without a word says nothing, and is not the vendor's.
func (f *Failure) said() wire.Said {
	if f == nil || (f.Status == "" && f.Code.word == "") {
		return wire.Said{}
	}
	said := wire.Said{Own: true, Type: f.Status, Status: f.Code.status}
	if said.Type == "" {
		said.Type = f.Code.word
	}
	for _, d := range f.Details {
		if d.Type == errorInfo && said.Code == "" {
			said.Code = d.Reason
		}
	}
	return said
}

// wait is how long the error asks to wait.
func (f *Failure) wait() (time.Duration, bool) {
	if f == nil {
		return 0, false
	}
	for _, d := range f.Details {
		if wait, err := time.ParseDuration(d.Delay); d.Type == retryInfo && err == nil {
			return max(wait, 0), true
		}
	}
	return 0, false
}

// rules is the vendor's table, with its words as they stand in errors and, in lower case, as newer wires have them. It says
// when a limit of rate is over only at times, and never by a code that waiting does not help, so a 429 without a time is
// worth a wait of our own.
var rules = wire.Rules{
	Statuses: statuses(map[string]int{
		"INVALID_ARGUMENT":    http.StatusBadRequest,
		"FAILED_PRECONDITION": http.StatusBadRequest,
		"OUT_OF_RANGE":        http.StatusBadRequest,
		"UNAUTHENTICATED":     http.StatusUnauthorized,
		"PERMISSION_DENIED":   http.StatusForbidden,
		"NOT_FOUND":           http.StatusNotFound,
		"ALREADY_EXISTS":      http.StatusConflict,
		"ABORTED":             http.StatusConflict,
		"RESOURCE_EXHAUSTED":  http.StatusTooManyRequests,
		"CANCELLED":           499,
		"INTERNAL":            http.StatusInternalServerError,
		"DATA_LOSS":           http.StatusInternalServerError,
		"UNKNOWN":             http.StatusInternalServerError,
		"UNIMPLEMENTED":       http.StatusNotImplemented,
		"UNAVAILABLE":         http.StatusServiceUnavailable,
		"DEADLINE_EXCEEDED":   http.StatusGatewayTimeout,
	}),
	Bare429: turns.ClassThrottled,
}

func statuses(words map[string]int) map[string]int {
	all := make(map[string]int, 2*len(words))
	for word, status := range words {
		all[word], all[strings.ToLower(word)] = status, status
	}
	return all
}

// Classify says what a response of a bad status means.
func Classify(a wire.Answer) wire.Verdict {
	f := read(a.Body)
	said := f.said()
	v := wire.Verdict{Word: said.Word()}
	v.Wait, v.HasWait = f.wait()
	v.Class = rules.Answer(a.Status, said, a.Hinted || v.HasWait)
	return v
}

// read finds the error in a body, which some of the vendor's servers put into a list.
func read(body []byte) *Failure {
	var wrapped struct {
		Error *Failure `json:"error"`
	}
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) != 1 {
			return nil
		}
		body = list[0]
	}
	if json.Unmarshal(body, &wrapped) != nil {
		return nil
	}
	return wrapped.Error
}

// IsKnown reports whether a word is one of the vendor's, in either of its forms.
func IsKnown(word string) bool { return rules.Statuses[word] != 0 }

// EventError is an error in a stream that began well. Its own number decides before its word: the same word stands for a
// limit of rate and for credit that is gone.
func (f *Failure) EventError() *wire.EventError {
	said := f.said()
	v := wire.Verdict{Word: said.Word()}
	v.Wait, v.HasWait = f.wait()
	if said.Own && said.Status >= 300 && said.Status <= 599 {
		v.Class = rules.Answer(said.Status, said, v.HasWait)
	} else {
		v.Class = rules.Event(said)
	}
	return &wire.EventError{Verdict: v}
}
