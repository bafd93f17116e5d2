package openai

import (
	"encoding/json"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// builderVersion grows with every change of the bytes that Build makes.
const builderVersion = 3

// maxStops is how many stop sequences the vendor takes.
const maxStops = 4

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
	Tools               []tool        `json:"tools,omitempty"`
	ToolChoice          any           `json:"tool_choice,omitempty"`
	// Store and Metadata go to endpoints that can be asked for a reply afterwards.
	Store    bool              `json:"store,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// tool and its kin have a type that is always "function".
type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// namedChoice is the choice of one tool; the other choices are words.
type namedChoice struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

// streamOptions ask for the usage, which is not streamed otherwise.
type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Build implements turns.Generator's method for this endpoint. Without a limit from options or endpoint none is sent: the
// vendor's own default holds then.
func (c *Client) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	if prompt.Options.ThinkingBudgetTokens > 0 {
		return turns.Request{}, &turns.Error{Code: turns.CodeInvalidField, Field: "input.options.thinking_budget_tokens",
			Problem: "models of this provider take no budget for thinking; leave it unset"}
	}
	if err := wire.CheckOptions(prompt.Options, maxStops); err != nil {
		return turns.Request{}, err
	}
	history, err := wire.HistoryOf(prompt, c.takes())
	if err != nil {
		return turns.Request{}, err
	}
	r := request{
		Model:         route.ProviderModel,
		Messages:      c.messages(wire.PlainSystem(prompt.Options), history.Messages),
		Temperature:   prompt.Options.Temperature,
		Stop:          prompt.Options.StopSequences,
		Stream:        true,
		StreamOptions: streamOptions{IncludeUsage: true},
	}
	r.Tools, r.ToolChoice = tools(prompt.Options)
	limit := wire.MaxOutput(prompt.Options, route.Limits)
	if c.dialect == llm.DialectVendor {
		r.MaxCompletionTokens = limit
	} else {
		r.MaxTokens = limit
	}
	if route.Capabilities.Lookup {
		r.Store, r.Metadata = true, wire.Metadata(prompt.Origin)
	}
	return wire.Built(route, r, builderVersion, maxBody, history)
}

// tools are those on offer and the choice among them, which the vendor refuses where there are none.
func tools(o turns.Options) (out []tool, choice any) {
	for _, t := range o.Tools {
		f := function{Name: t.Name, Description: wire.CleanText(t.Description)}
		if t.InputSchemaJSON != "" {
			f.Parameters = wire.Object(t.InputSchemaJSON)
		}
		out = append(out, tool{"function", f})
	}
	if c := o.ToolChoice; c != nil && len(out) > 0 {
		switch c.Mode {
		case turns.ToolChoiceNone:
			choice = "none"
		case turns.ToolChoiceAny:
			choice = "required"
		case turns.ToolChoiceTool:
			choice = namedChoice{"function", function{Name: c.ToolName}}
		}
	}
	return out, choice
}

func (c *Client) systemRole() string {
	if c.dialect == llm.DialectVendor {
		return "developer"
	}
	return "system"
}
