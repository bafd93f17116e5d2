// Package gemini speaks generateContent of the Generative Language API, streaming.
//
// The wire has no terminal event. A reply is whole at a candidate's finishReason, or where the vendor says that it blocked
// the prompt; a stream that offers to go on by another request is one that was cut, and is never gone on with by itself:
// that would be a second bill for the prompt.
//
// Text, images, documents, tool calls, their results and thinking go out; text, calls and thinking come in. A call comes
// whole. The vendor signs the first call of a step, and text or thoughts at times: the signature is kept as a seal and goes
// back to the same model on the same part. One that came in a part of its own is kept as thinking of which nothing is shown,
// and goes back in a part of its own. Thoughts themselves don't go back; the vendor does not ask for them. A call that another
// model made goes out with the word by which this vendor takes it unsigned.
//
// What surprises: usage is a running total, so a call that was cut has an
// exact figure all the same. How long to wait after a refusal stands in the body of the error, not in a header. The vendor
// says the same word for a limit of rate and for credit that is gone; only the status tells them apart.
package gemini

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Provider is the vendor's name in routes and figures, DefaultBaseURL where it listens.
const (
	Provider       = "gemini"
	DefaultBaseURL = "https://generativelanguage.googleapis.com"
)

// version is the part of the path where a base URL names none.
const version = "v1beta"

// Adapter is this package as the router knows it.
func Adapter() llm.Adapter {
	return llm.Adapter{
		Wire:     llm.WireGeminiGenerate,
		Provider: Provider,
		Open:     func(http *wire.Client, e llm.Endpoint) llm.Caller { return New(http, e) },
	}
}

// Client calls one endpoint. It is safe for concurrent use.
type Client struct {
	http   *wire.Client
	base   string
	header http.Header
}

// New makes a client of an endpoint. Its key goes out as x-goog-api-key.
func New(http *wire.Client, e llm.Endpoint) *Client {
	return &Client{http: http, base: e.BaseURL, header: HeaderOf(e.Key)}
}

// HeaderOf is what every request to this vendor carries.
func HeaderOf(key wire.Secret) http.Header {
	h := make(http.Header)
	if key != "" {
		h.Set("X-Goog-Api-Key", key.Reveal())
	}
	return h
}

// URLOf is the URL of a method below a base, which is the vendor's own if empty.
func URLOf(base, method string) string {
	if base == "" {
		base = DefaultBaseURL
	}
	return wire.JoinVersion(base, version, method)
}

// RequestIDs are the headers that may hold an id of a request; the vendor itself promises none.
var RequestIDs = []string{"X-Request-Id", "X-Goog-Request-Id"}

// Generate implements turns.Generator's method for this endpoint.
func (c *Client) Generate(ctx context.Context, call turns.Call) iter.Seq2[turns.Delta, error] {
	model, limits := call.Request.Route.ProviderModel, call.Request.Route.Limits
	return c.http.Stream(ctx, wire.Post{
		URL:    URLOf(c.base, methodOf(model)),
		Header: c.header,
		Body:   call.Request.Body,
		Key:    call.Key,
		Limits: limits,

		MaySend: call.MaySend,
	}, wire.Vendor{
		RequestID:  RequestIDs,
		Translator: func() wire.Translator { return &stream{model: model} },
		Classify:   Classify,
	})
}

func methodOf(model string) string {
	collection, name := nameOf(model)
	return collection + "/" + url.PathEscape(name) + ":streamGenerateContent?alt=sse"
}

// nameOf is a model's whole name. One of another collection, such as a tuned one, is configured with it.
func nameOf(model string) (collection, name string) {
	collection, name, found := strings.Cut(model, "/")
	if !found {
		return "models", model
	}
	return collection, name
}
