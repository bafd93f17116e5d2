// Package interactions speaks Gemini's Interactions, streaming.
//
// With the capability resume an interaction is made in the background and stored: it goes on without its client, its stream
// is read again by its id, from the beginning or behind the last event that came, and it can be stopped. Without it nothing
// is stored, and a lost answer is lost. The vendor has no list and no lookup: an interaction whose id never came can't be
// found. Whose it is stands in its labels.
//
// The history goes out whole each time, as steps: no call depends on what the vendor keeps. Text, calls and their results go
// out and come in; arguments are streamed and kept as the model wrote them. Thoughts come in as far as the vendor shows them,
// and go back with their signature to the model that had them. Images and documents go out; what a text cites goes back with
// it. Other steps are skipped.
//
// A reply is whole when the event came that says how the interaction ended, and it did not end in failure. One that would go
// on by another request is not whole, and is never gone on with by itself.
//
// What surprises: the vendor says only what is to be done next. A reply that a filter ended looks like one that is complete.
// The wire has levels for thinking and no budget, so Build refuses one. Usage is told with each step that ends, so a call
// that was cut has a part of it.
package interactions

import (
	"context"
	"errors"
	"iter"
	"net/http"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Adapter is this package as the router knows it.
func Adapter() llm.Adapter {
	return llm.Adapter{
		Wire:     llm.WireGeminiInteractions,
		Provider: gemini.Provider,
		Open:     func(http *wire.Client, e llm.Endpoint) llm.Caller { return New(http, e) },
	}
}

// Client calls one endpoint. It is safe for concurrent use.
type Client struct {
	http   *wire.Client
	base   string
	header http.Header
	limits turns.Limits
}

// New makes a client of an endpoint. Its key goes out as x-goog-api-key.
func New(http *wire.Client, e llm.Endpoint) *Client {
	return &Client{http: http, base: e.BaseURL, header: gemini.HeaderOf(e.Key), limits: e.Limits}
}

// post is a request below the collection of interactions.
func (c *Client) post(method, below string, body []byte, limits turns.Limits) wire.Post {
	return wire.Post{
		Method: method, URL: gemini.URLOf(c.base, "interactions"+below), Header: c.header, Body: body, Limits: limits,
	}
}

// vendor reads a stream by one translator.
func vendor(s *stream) wire.Vendor {
	return wire.Vendor{
		RequestID: gemini.RequestIDs, Translator: func() wire.Translator { return s }, Classify: gemini.Classify,
	}
}

// Generate implements turns.Generator's method for this endpoint.
func (c *Client) Generate(ctx context.Context, call turns.Call) iter.Seq2[turns.Delta, error] {
	route := call.Request.Route
	post := c.post(http.MethodPost, "", call.Request.Body, route.Limits)
	post.Key, post.MaySend = call.Key, call.MaySend
	s := &stream{model: route.ProviderModel}
	seq := c.http.Stream(ctx, post, vendor(s))
	if !route.Capabilities.Resume {
		return seq
	}
	return func(yield func(turns.Delta, error) bool) {
		for d, err := range seq {
			var failed *turns.CallError
			if errors.As(err, &failed) {
				s.mark(failed)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
