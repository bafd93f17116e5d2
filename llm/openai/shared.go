package openai

import (
	"maps"
	"net/http"

	"github.com/turnd/turnd/llm/wire"
)

// Rules is the vendor's table of failures, which its other wires share; a copy, for them to add to.
func Rules() wire.Rules {
	r := rules
	r.Codes, r.Statuses = maps.Clone(rules.Codes), maps.Clone(rules.Statuses)
	return r
}

// ReadError finds the vendor's error in the body of an answer.
func ReadError(body []byte) wire.Said { return read(body) }

// Header carries a key as the vendor wants it.
func Header(key wire.Secret) http.Header { return headerOf(key) }

// RequestIDs are the headers that may hold the id of a request, the surest first.
func RequestIDs() []string { return []string{"X-Request-Id", "Request-Id"} }
