package wire

import (
	"net/http"

	"github.com/turnd/turnd/turns"
)

// Two statuses that net/http has no name for.
const (
	statusClientClosed = 499
	statusOverloaded   = 529
)

// Said is what a provider's error body or error event says, as far as the vendor's adapter could read it.
type Said struct {
	// Own says that the body has the form of the vendor's own errors. What a proxy in between wrote has not.
	Own bool
	// Code and Type are the vendor's words, the more exact one first. Either may be empty.
	Code string
	Type string
	// Status is the status a body or an event names itself; 0 if none.
	Status int
}

// Word is the more exact of code and type.
func (s Said) Word() string {
	if s.Code != "" {
		return s.Code
	}
	return s.Type
}

// Rules are a vendor's table of failures.
type Rules struct {
	// Codes decide by code or type alone, whatever the status.
	Codes map[string]turns.CallClass
	// Statuses give the status that a code or type stands for, for events in a stream whose status was 200.
	Statuses map[string]int
	// Bare429 is the class of a 429 that doesn't say how long to wait.
	Bare429 turns.CallClass
}

// Answer classifies a response of a bad status. hinted says that it asked to wait for some time.
func (r Rules) Answer(status int, said Said, hinted bool) turns.CallClass {
	if class, ok := r.byCode(said); ok {
		return class
	}
	if status == http.StatusTooManyRequests && !hinted {
		return r.Bare429
	}
	return byStatus(status, said.Own, hinted)
}

// Event classifies an error event in a stream that began with 200. An event that no table knows says neither that the
// work failed for good nor that it may go on: it is ambiguous.
func (r Rules) Event(said Said) turns.CallClass {
	if class, ok := r.byCode(said); ok {
		return class
	}
	status, ok := r.Statuses[said.Code]
	if !ok {
		status, ok = r.Statuses[said.Type]
	}
	if !ok {
		status = said.Status
	}
	return byStatus(status, true, false)
}

func (r Rules) byCode(said Said) (turns.CallClass, bool) {
	if class, ok := r.Codes[said.Code]; ok {
		return class, true
	}
	class, ok := r.Codes[said.Type]
	return class, ok
}

// byStatus is the part of the table that all vendors share. A status that a proxy can write as well as the vendor does
// not say whether the work was done: without the vendor's own body a 5xx is ambiguous, and a timeout always is.
func byStatus(status int, own, hinted bool) turns.CallClass {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, statusClientClosed, http.StatusGatewayTimeout:
		return turns.ClassAmbiguous
	case http.StatusTooManyRequests:
		return turns.ClassThrottled
	case http.StatusServiceUnavailable, statusOverloaded:
		if own && hinted {
			return turns.ClassThrottled
		}
	}
	switch {
	case 300 <= status && status < 500:
		return turns.ClassTerminal
	case 500 <= status && own:
		return turns.ClassTransient
	}
	return turns.ClassAmbiguous
}
