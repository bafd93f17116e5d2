package openai

import (
	"strings"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// builderVersion grows with every change of the bytes that Build makes.
const builderVersion = 1

// request is the body of a call. The order of its fields is the order of the bytes, so a change of it is a new builder
// version: a retry on another worker must send the same bytes. At most one of the two limits is set.
type request struct {
	Model               string        `json:"model"`
	Messages            []message     `json:"messages"`
	MaxCompletionTokens int           `json:"max_completion_tokens,omitempty"`
	MaxTokens           int           `json:"max_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	Stop                []string      `json:"stop,omitempty"`
	Stream              bool          `json:"stream"`
	StreamOptions       streamOptions `json:"stream_options"`
}

// streamOptions ask for the usage, which is not streamed otherwise.
type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// message has its content as one string: the list form means the same and many compatible servers refuse it.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Build implements turns.Generator's method for this endpoint. Without a limit from options or endpoint none is sent: the
// vendor's own default holds then.
func (c *Client) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	plain, err := wire.PlainMessages(prompt)
	if err != nil {
		return turns.Request{}, err
	}
	r := request{
		Model:         route.ProviderModel,
		Messages:      c.messages(wire.PlainSystem(prompt.Options), plain),
		Temperature:   prompt.Options.Temperature,
		Stop:          prompt.Options.StopSequences,
		Stream:        true,
		StreamOptions: streamOptions{IncludeUsage: true},
	}
	limit := wire.MaxOutput(prompt.Options, route.Limits)
	if c.dialect == llm.DialectVendor {
		r.MaxCompletionTokens = limit
	} else {
		r.MaxTokens = limit
	}
	body, err := wire.Encode(r)
	if err != nil {
		return turns.Request{}, err
	}
	return turns.NewRequest(route, body, builderVersion), nil
}

// messages joins the texts of a message by an empty line, so that words of two blocks do not run together.
func (c *Client) messages(system []string, plain []wire.PlainMessage) []message {
	out := make([]message, 0, len(system)+len(plain))
	for _, text := range system {
		out = append(out, message{Role: c.systemRole(), Content: text})
	}
	for _, m := range plain {
		out = append(out, message{Role: string(m.Role), Content: strings.Join(m.Texts, "\n\n")})
	}
	return out
}

func (c *Client) systemRole() string {
	if c.dialect == llm.DialectVendor {
		return "developer"
	}
	return "system"
}
