// Package anthropic speaks the Messages API, streaming, in the version named by Version. Other servers speak it too; they
// are reached by their base URL.
//
// Text, tool calls, their results and thinking go out and come in, images and documents go out. What a text cites is kept as
// its seal and goes back to any of the vendor's models. A call's input is streamed and kept as the model wrote
// it, to the byte; one without a byte is {}, which is what the vendor means by it. Thinking comes with a signature, which is
// kept as the block's seal and goes back to the same model, and to no other. Blocks of other kinds (tools that the vendor runs
// itself, summaries of a long history, whatever a later server adds) are kept as they are, shown to nobody, and go back in
// their place, so that a reply that was paused can go on. Events and deltas that are not known are skipped without harm to
// what stands around them. The category of a refusal is a block of its own without text, after what the model had said.
//
// What surprises: this version of the API takes no temperature, so Build refuses one. Dropping it would answer a question
// the client did not ask. Input is reported at the first event, output only once the vendor has counted it: a call that was
// cut has the one and not the other. The vendor has no idempotency, no lookup and no resume; a lost call stays lost.
package anthropic

import (
	"context"
	"iter"
	"net/http"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Provider is the vendor's name in routes and figures, DefaultBaseURL where it listens, Version the API's version that
// every request names.
const (
	Provider       = "anthropic"
	DefaultBaseURL = "https://api.anthropic.com"
	Version        = "2026-10-21"
)

// Adapter is this package as the router knows it.
func Adapter() llm.Adapter {
	return llm.Adapter{
		Wire:     llm.WireAnthropicMessages,
		Provider: Provider,
		Open:     func(http *wire.Client, e llm.Endpoint) llm.Caller { return New(http, e) },
	}
}

// Client calls one endpoint. It is safe for concurrent use.
type Client struct {
	http   *wire.Client
	url    string
	header http.Header
}

// New makes a client of an endpoint. Its key goes out as x-api-key.
func New(http *wire.Client, e llm.Endpoint) *Client {
	if e.BaseURL == "" {
		e.BaseURL = DefaultBaseURL
	}
	return &Client{http: http, url: wire.Join(e.BaseURL, "messages"), header: headerOf(e.Key)}
}

func headerOf(key wire.Secret) http.Header {
	h := http.Header{"Anthropic-Version": {Version}}
	if key != "" {
		h.Set("X-Api-Key", key.Reveal())
	}
	return h
}

// Generate implements turns.Generator's method for this endpoint.
func (c *Client) Generate(ctx context.Context, call turns.Call) iter.Seq2[turns.Delta, error] {
	model := call.Request.Route.ProviderModel // and not the whole call, which would be kept for as long as it takes
	return c.http.Stream(ctx, wire.Post{
		URL:    c.url,
		Header: c.header,
		Body:   call.Request.Body,
		Key:    call.Key,
		Limits: call.Request.Route.Limits,

		MaySend: call.MaySend,
	}, wire.Vendor{
		RequestID:  []string{"Request-Id", "X-Request-Id"},
		Translator: func() wire.Translator { return &stream{model: model} },
		Classify:   classify,
		Extra:      wire.GatewayExtra,
	})
}
