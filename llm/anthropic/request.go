package anthropic

import (
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// builderVersion grows with every change of the bytes that Build makes.
const builderVersion = 1

// defaultMaxTokens is sent where neither the options nor the endpoint say how long a reply may be: the API wants a number.
const defaultMaxTokens = 4096

// request is the body of a call. The order of its fields is the order of the bytes, so a change of it is a new builder
// version: a retry on another worker must send the same bytes.
type request struct {
	Model         string    `json:"model"`
	MaxTokens     int       `json:"max_tokens"`
	System        []block   `json:"system,omitempty"`
	Messages      []message `json:"messages"`
	StopSequences []string  `json:"stop_sequences,omitempty"`
	Stream        bool      `json:"stream"`
}

// message has its content as a list of blocks even where one string would do, so that the bytes of a message do not
// change when it is merged with a neighbour.
type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// Build implements turns.Generator's method for this endpoint. Neighbours of one role are merged here, as the vendor would
// do it: then the count of messages is the same on every server that speaks the wire.
func (c *Client) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	if prompt.Options.Temperature != nil {
		return turns.Request{}, &turns.Error{Code: turns.CodeInvalidField, Field: "input.options.temperature",
			Problem: "models of this provider take no temperature; leave it unset"}
	}
	plain, err := wire.PlainMessages(prompt)
	if err != nil {
		return turns.Request{}, err
	}
	body, err := wire.Encode(request{
		Model:         route.ProviderModel,
		MaxTokens:     maxTokens(prompt.Options, route.Limits),
		System:        blocks(wire.PlainSystem(prompt.Options)),
		Messages:      messages(plain),
		StopSequences: prompt.Options.StopSequences,
		Stream:        true,
	})
	if err != nil {
		return turns.Request{}, err
	}
	return turns.NewRequest(route, body, builderVersion), nil
}

func maxTokens(o turns.Options, l turns.Limits) int {
	if n := wire.MaxOutput(o, l); n > 0 {
		return n
	}
	return defaultMaxTokens
}

// messages keeps the text as it is, trailing space too: the last message is the user's, and only a last one of the
// assistant may not end in space.
func messages(plain []wire.PlainMessage) []message {
	out := make([]message, len(plain))
	for i, m := range plain {
		out[i] = message{Role: string(m.Role), Content: blocks(m.Texts)}
	}
	return out
}

func blocks(texts []string) []block {
	out := make([]block, len(texts))
	for i, t := range texts {
		out[i] = block{Type: "text", Text: t}
	}
	return out
}
