package interactions

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// builderVersion grows with every change of the bytes that Build makes.
const builderVersion = 2

// request is the body of a call. The order of its fields is the order of the bytes, so a change of it is a new builder
// version: a retry on another worker must send the same bytes.
type request struct {
	Model             string            `json:"model"`
	SystemInstruction string            `json:"system_instruction,omitempty"`
	Input             []step            `json:"input"`
	Tools             []tool            `json:"tools,omitempty"`
	GenerationConfig  *generationConfig `json:"generation_config,omitempty"`
	Stream            bool              `json:"stream"`
	Store             bool              `json:"store"`
	Background        bool              `json:"background,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type generationConfig struct {
	MaxOutputTokens int      `json:"max_output_tokens,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	StopSequences   []string `json:"stop_sequences,omitempty"`
	ToolChoice      any      `json:"tool_choice,omitempty"`
}

// namedChoice is the choice of one tool; the other choices are words.
type namedChoice struct {
	AllowedTools allowedTools `json:"allowed_tools"`
}

type allowedTools struct {
	Mode  string   `json:"mode"`
	Tools []string `json:"tools"`
}

// step is every kind of input; each uses some of the fields. The result of a call may be the empty text.
type step struct {
	Type      string          `json:"type"`
	Content   []piece         `json:"content,omitempty"`
	Summary   []piece         `json:"summary,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    any             `json:"result,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// Build implements turns.Generator's method for this endpoint. Labels go with what is stored alone: to anything else they
// would be of no use.
func (c *Client) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	if prompt.Options.ThinkingBudgetTokens > 0 {
		return turns.Request{}, &turns.Error{Code: turns.CodeInvalidField, Field: "input.options.thinking_budget_tokens",
			Problem: "this endpoint takes no budget for thinking; leave it unset"}
	}
	if err := gemini.CheckOptions(prompt.Options); err != nil {
		return turns.Request{}, err
	}
	history, err := wire.HistoryOf(prompt, takes(route.ProviderModel))
	if err != nil {
		return turns.Request{}, err
	}
	kept := route.Capabilities.Resume
	r := request{
		Model:            route.ProviderModel,
		Input:            steps(history.Messages, route.ProviderModel),
		Tools:            tools(prompt.Options),
		GenerationConfig: generationOf(prompt.Options, route.Limits),
		Stream:           true, Store: kept, Background: kept,
	}
	for _, system := range wire.PlainSystem(prompt.Options) {
		r.SystemInstruction = system
	}
	if kept {
		r.Labels = wire.Metadata(prompt.Origin)
	}
	return wire.Built(route, r, builderVersion, gemini.MediaOf(r.Model).MaxBody, history)
}

// generationOf is nil where nothing is asked for.
func generationOf(o turns.Options, l turns.Limits) *generationConfig {
	g := generationConfig{
		MaxOutputTokens: wire.MaxOutput(o, l), Temperature: o.Temperature, StopSequences: o.StopSequences, ToolChoice: choiceOf(o),
	}
	if g.MaxOutputTokens == 0 && g.Temperature == nil && len(g.StopSequences) == 0 && g.ToolChoice == nil {
		return nil
	}
	return &g
}

func tools(o turns.Options) (out []tool) {
	for _, t := range o.Tools {
		one := tool{Type: "function", Name: t.Name, Description: wire.CleanText(t.Description)}
		if t.InputSchemaJSON != "" {
			one.Parameters = wire.Object(t.InputSchemaJSON)
		}
		out = append(out, one)
	}
	return out
}

// choiceOf is the choice among tools, and nothing where there are none.
func choiceOf(o turns.Options) any {
	c := o.ToolChoice
	if c == nil || len(o.Tools) == 0 {
		return nil
	}
	switch c.Mode {
	case turns.ToolChoiceNone, turns.ToolChoiceAny:
		return string(c.Mode)
	case turns.ToolChoiceTool:
		return namedChoice{allowedTools{"any", []string{c.ToolName}}}
	}
	return nil
}

// steps are a history, one step for each part of it. Text that follows text is more of the same step.
func steps(history []turns.Message, model string) (out []step) {
	names := make(map[string]string) // of calls by their ids, which are unique
	for _, m := range history {
		words := "user_input"
		if m.Role == turns.RoleAssistant {
			words = "model_output"
		}
		begin := len(out)
		for _, b := range callsLast(m.Content) {
			if p, ok := pieceOf(b); ok {
				if n := len(out); n == begin || out[n-1].Type != words {
					out = append(out, step{Type: words})
				}
				last := &out[len(out)-1]
				last.Content = append(last.Content, p)
				continue
			}
			switch b := b.(type) {
			case turns.Thinking:
				out = appendThought(out, b, model)
			case turns.ToolUse:
				names[b.ID] = b.Name
				out = append(out, step{Type: "function_call", ID: b.ID, Name: b.Name, Arguments: wire.Object(b.InputJSON)})
			case turns.ToolResult:
				out = append(out, step{Type: "function_result", CallID: b.ToolUseID, Name: names[b.ToolUseID], Result: resultOf(b), IsError: b.IsError})
			}
		}
	}
	return out
}

// callsLast are the blocks of a message with its calls behind all else, if words follow a call: on this wire nothing but
// results may. Another vendor's model can have said them so.
func callsLast(content []turns.Block) []turns.Block {
	var calls, rest []turns.Block
	moved := false
	for _, b := range content {
		switch b.(type) {
		case turns.ToolUse:
			calls = append(calls, b)
			continue
		case turns.Text:
			moved = moved || len(calls) > 0
		}
		rest = append(rest, b)
	}
	if !moved {
		return content
	}
	return append(rest, calls...)
}

// appendThought adds a thought that this model had. Without its signature, or as another's, it does not go back.
func appendThought(out []step, t turns.Thinking, model string) []step {
	signature, ok := sealer.Open(model, t.Seal)
	if !ok {
		return out
	}
	s := step{Type: "thought", Signature: signature}
	if t.Text != "" {
		s.Summary = []piece{textOf(t.Text)}
	}
	return append(out, s)
}
