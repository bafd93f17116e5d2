// Package responses speaks OpenAI's Responses, streaming: to the vendor itself and to servers that are compatible with it.
//
// What an endpoint's capabilities ask for decides how a call is made, so that its answer is not lost with its connection:
//
//   - resume: the response is made in the background and stored. It goes on without its client; its stream is read again by
//     the response's id, from the beginning or from where it broke off, and it can be stopped.
//   - lookup or fence, without resume: the response is made in a conversation of its own, whose id is known before the call
//     leaves. When the response is whole its items are there; while it is made a second one is refused.
//   - neither: nothing is stored, and a lost answer is lost.
//
// The history goes out whole each time: no call depends on what the vendor keeps. Text, calls and their results go out and
// come in; arguments are streamed and kept as the model wrote them. Reasoning comes in as thinking, as far as the vendor shows
// it, and goes back sealed to the model that made it, where nothing is stored: only then the vendor gives the seal. Images and
// PDFs go out. What a text cites, and which part of the answer it is, goes back with it, and a refusal as one. Other items are
// skipped.
//
// A reply is whole when its terminal event was read. Usage comes only there, so a call that was cut has none, but a response
// in the background has it for whoever asks later.
//
// What surprises: a response that was cut short (incomplete) is a reply that is whole, with the reason. An answer found by its
// conversation alone has no usage, since items have none; by the id of its response it has. An error event that is not the
// response's own says nothing of a response in the background, which may still be made: it is asked for again. The wire has no stop sequences and no budget for thinking, so Build
// refuses both.
package responses

import (
	"context"
	"iter"
	"net/http"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// Adapter is this package as the router knows it.
func Adapter() llm.Adapter {
	return llm.Adapter{
		Wire:     llm.WireOpenAIResponses,
		Provider: openai.Provider,
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

// New makes a client of an endpoint. Its key goes out as a bearer token.
func New(http *wire.Client, e llm.Endpoint) *Client {
	if e.BaseURL == "" {
		e.BaseURL = openai.DefaultBaseURL
	}
	return &Client{http: http, base: e.BaseURL, header: openai.Header(e.Key), limits: e.Limits}
}

// post is a request below the base URL.
func (c *Client) post(method, path string, body []byte, limits turns.Limits) wire.Post {
	return wire.Post{Method: method, URL: wire.Join(c.base, path), Header: c.header, Body: body, Limits: limits}
}

// vendor reads a stream by one translator.
func vendor(s *stream) wire.Vendor {
	return wire.Vendor{RequestID: openai.RequestIDs(), Translator: func() wire.Translator { return s }, Classify: classify}
}

// Generate implements turns.Generator's method for this endpoint.
func (c *Client) Generate(ctx context.Context, call turns.Call) iter.Seq2[turns.Delta, error] {
	route := call.Request.Route
	post := c.post(http.MethodPost, "responses", inConversation(call.Request.Body, call.Session), route.Limits)
	post.Key, post.MaySend = call.Key, call.MaySend
	s := &stream{model: route.ProviderModel, last: -1}
	asked := vendor(s)
	asked.Extra = wire.GatewayExtra // of what generates; a question again costs nothing
	seq := c.http.Stream(ctx, post, asked)
	if !route.Capabilities.Resume {
		return seq
	}
	return remembering(seq, s)
}

// remembering adds to the failure of a stream where to go on.
func remembering(seq iter.Seq2[turns.Delta, error], s *stream) iter.Seq2[turns.Delta, error] {
	return func(yield func(turns.Delta, error) bool) {
		for d, err := range seq {
			s.seen.add(d)
			if !yield(d, s.marked(err)) {
				return
			}
		}
	}
}
