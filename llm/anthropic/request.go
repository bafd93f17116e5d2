package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// builderVersion grows with every change of the bytes that Build makes.
const builderVersion = 3

// defaultMaxTokens is sent where neither the options nor the endpoint say how long a reply may be: the API wants a number.
// With a budget for thinking, which counts against it, it is added to the budget.
const defaultMaxTokens = 4096

// minThinking is the smallest budget that the API takes.
const minThinking = 1024

// request is the body of a call. The order of its fields is the order of the bytes, so a change of it is a new builder
// version: a retry on another worker must send the same bytes.
type request struct {
	Model         string      `json:"model"`
	MaxTokens     int         `json:"max_tokens"`
	System        []block     `json:"system,omitempty"`
	Messages      []message   `json:"messages"`
	StopSequences []string    `json:"stop_sequences,omitempty"`
	Stream        bool        `json:"stream"`
	Tools         []tool      `json:"tools,omitempty"`
	ToolChoice    *toolChoice `json:"tool_choice,omitempty"`
	Thinking      *thinking   `json:"thinking,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

type toolChoice struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
}

type thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens"`
}

// Build implements turns.Generator's method for this endpoint. Neighbours of one role are merged here, as the vendor would
// do it: then the count of messages is the same on every server that speaks the wire.
func (c *Client) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	if prompt.Options.Temperature != nil {
		return turns.Request{}, &turns.Error{Code: turns.CodeInvalidField, Field: "input.options.temperature",
			Problem: "models of this provider take no temperature; leave it unset"}
	}
	if err := checkStops(prompt.Options.StopSequences); err != nil {
		return turns.Request{}, err
	}
	history, err := wire.HistoryOf(prompt, takes(route.ProviderModel))
	if err != nil {
		return turns.Request{}, err
	}
	r := request{
		Model:         route.ProviderModel,
		MaxTokens:     maxTokens(prompt.Options, route.Limits),
		System:        texts(wire.PlainSystem(prompt.Options)),
		Messages:      messages(history.Messages, route.ProviderModel),
		StopSequences: prompt.Options.StopSequences,
		Stream:        true,
	}
	r.Tools, r.ToolChoice = tools(prompt.Options, history.Messages)
	if r.Thinking, err = thinkingOf(prompt.Options, r); err != nil {
		return turns.Request{}, err
	}
	return wire.Built(route, r, builderVersion, media.MaxBody, history)
}

// checkStops refuses what the vendor does: a sequence of white space alone.
func checkStops(stops []string) error {
	for i, s := range stops {
		if strings.TrimSpace(s) == "" {
			return &turns.Error{Code: turns.CodeInvalidField, Field: fmt.Sprintf("input.options.stop_sequences[%d]", i),
				Problem: "must hold more than white space with models of this provider"}
		}
	}
	return nil
}

func maxTokens(o turns.Options, l turns.Limits) int {
	if n := wire.MaxOutput(o, l); n > 0 {
		return n
	}
	return int(o.ThinkingBudgetTokens) + defaultMaxTokens
}

// tools are those on offer and the choice among them. A history with calls and no tools is refused by the vendor, so the
// tools that were called then stand there by name, and none of them may be called.
func tools(o turns.Options, history []turns.Message) ([]tool, *toolChoice) {
	if len(o.Tools) == 0 {
		if called := calledTools(history); len(called) > 0 {
			return called, &toolChoice{Type: "none"}
		}
		return nil, nil
	}
	out := make([]tool, len(o.Tools))
	for i, t := range o.Tools {
		out[i] = tool{Name: t.Name, Description: wire.CleanText(t.Description), InputSchema: schema(t.InputSchemaJSON)}
	}
	c := o.ToolChoice
	if c == nil || c.Mode == "" {
		return out, nil
	}
	return out, &toolChoice{Type: string(c.Mode), Name: c.ToolName}
}

func schema(text string) json.RawMessage {
	if text == "" {
		return json.RawMessage(`{"type":"object"}`)
	}
	return wire.Object(text)
}

// calledTools are the tools of a history, each once, in the order of their first calls.
func calledTools(history []turns.Message) (out []tool) {
	seen := make(map[string]bool)
	for _, m := range history {
		for _, b := range m.Content {
			if use, ok := b.(turns.ToolUse); ok && !seen[use.Name] {
				seen[use.Name] = true
				out = append(out, tool{Name: use.Name, InputSchema: schema("")})
			}
		}
	}
	return out
}

// thinkingOf is the budget for thinking, if one is asked for and the history allows it. A budget that the vendor would
// refuse is refused here, by its field.
//
// While results of calls are on their way back the vendor wants to see the thoughts that led to the calls. If they are
// not there, because another model had them or none were asked for then, this one step goes without thinking.
func thinkingOf(o turns.Options, r request) (*thinking, error) {
	budget := int(o.ThinkingBudgetTokens)
	refuse := func(field, problem string) (*thinking, error) {
		return nil, &turns.Error{Code: turns.CodeInvalidField, Field: "input.options." + field, Problem: problem}
	}
	switch {
	case budget == 0:
		return nil, nil
	case budget < minThinking:
		return refuse("thinking_budget_tokens", fmt.Sprintf("must be at least %d with models of this provider", minThinking))
	case budget >= r.MaxTokens:
		return refuse("thinking_budget_tokens", fmt.Sprintf("must be less than the %d tokens that the whole reply may take", r.MaxTokens))
	case r.ToolChoice != nil && (r.ToolChoice.Type == "any" || r.ToolChoice.Type == "tool"):
		return refuse("tool_choice", "must not force a call while a budget for thinking is set, with models of this provider")
	case resultsWithoutThoughts(r.Messages):
		return nil, nil
	}
	return &thinking{Type: "enabled", BudgetTokens: budget}, nil
}

// resultsWithoutThoughts reports whether the last message answers calls of a message that does not begin with thoughts.
func resultsWithoutThoughts(messages []message) bool {
	n := len(messages)
	if n < 2 || messages[n-1].Content[0].Type != "tool_result" {
		return false
	}
	return !messages[n-2].Content[0].isThinking()
}
