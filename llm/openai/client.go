// Package openai speaks Chat Completions, streaming: to the vendor itself and to the many servers that are compatible
// with it, by their base URL.
//
// Two names differ between the two: the vendor wants max_completion_tokens and the role developer, compatible servers
// know max_tokens and system. llm.Endpoint's Dialect says which; by default the host does.
//
// Text, tool calls and their results go out and come in, images go out, and PDFs to the vendor alone. A result is text here, so
// its images come first in the user's message behind it. A refusal goes back as one to the vendor. Arguments are streamed and
// kept as the model wrote them, to the byte, and where the model wrote none, as {}. Reasoning that a compatible server shows comes in as thinking and never goes
// back: nobody signs it. What else comes in is skipped without harm to what stands around it. A reply is whole when both its
// finish_reason and [DONE] were read: a server that leaves out either can't be told apart from one whose answer was cut.
//
// An endpoint whose capabilities say lookup is asked to keep its replies, with whose they are beside them, and is asked for
// one whose answer was lost. It keeps whole replies only, and there is no telling how soon one can be found: that none is
// there is no proof that none comes. Nothing can be resumed or stopped.
//
// What surprises: the parts of several calls may come mixed, and blocks of a reply do not, so a call that began while
// another was open is shown once that one is over. The wire has no budget for thinking, so Build refuses one.
// Usage comes only in the last event before [DONE], so a call that was cut has none; some servers report it as they go.
package openai

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
	Provider       = "openai"
	DefaultBaseURL = "https://api.openai.com/v1"
)

// vendorHost is the host, and the domain of the regional hosts, that speak DialectVendor by default.
const vendorHost = "api.openai.com"

// Adapter is this package as the router knows it.
func Adapter() llm.Adapter {
	return llm.Adapter{
		Wire:     llm.WireOpenAIChat,
		Provider: Provider,
		Open:     func(http *wire.Client, e llm.Endpoint) llm.Caller { return New(http, e) },
	}
}

// Client calls one endpoint. It is safe for concurrent use.
type Client struct {
	http    *wire.Client
	url     string
	header  http.Header
	dialect llm.Dialect
}

// New makes a client of an endpoint. Its key goes out as a bearer token.
func New(http *wire.Client, e llm.Endpoint) *Client {
	if e.BaseURL == "" {
		e.BaseURL = DefaultBaseURL
	}
	if e.Dialect == "" {
		e.Dialect = dialectOf(e.BaseURL)
	}
	return &Client{http: http, url: wire.Join(e.BaseURL, "chat/completions"), header: headerOf(e.Key), dialect: e.Dialect}
}

func dialectOf(base string) llm.Dialect {
	u, err := url.Parse(base)
	if err != nil {
		return llm.DialectCompatible
	}
	host := strings.ToLower(u.Hostname())
	if host == vendorHost || strings.HasSuffix(host, "."+vendorHost) {
		return llm.DialectVendor
	}
	return llm.DialectCompatible
}

func headerOf(key wire.Secret) http.Header {
	h := make(http.Header)
	if key != "" {
		h.Set("Authorization", "Bearer "+key.Reveal())
	}
	return h
}

// Generate implements turns.Generator's method for this endpoint.
func (c *Client) Generate(ctx context.Context, call turns.Call) iter.Seq2[turns.Delta, error] {
	return c.http.Stream(ctx, wire.Post{
		URL:    c.url,
		Header: c.header,
		Body:   named(call),
		Key:    call.Key,
		Limits: call.Request.Route.Limits,

		MaySend: call.MaySend,
	}, vendor(call.Request.Route.ProviderModel))
}

// vendor is what is this vendor's own, and that of the servers and gateways that are compatible with it.
func vendor(model string) wire.Vendor {
	return wire.Vendor{
		RequestID:  RequestIDs(),
		Translator: func() wire.Translator { return &stream{model: model} },
		Classify:   classify,
		Extra:      wire.GatewayExtra,
	}
}
