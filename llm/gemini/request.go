package gemini

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// builderVersion grows with every change of the bytes that Build makes.
const builderVersion = 2

// request is the body of a call. The order of its fields is the order of the bytes, so a change of it is a new builder
// version: a retry on another worker must send the same bytes. The model is that of the URL, which the vendor allows here: the
// bytes for one model are not those for another, and neither are the keys made from them.
type request struct {
	Model             string            `json:"model"`
	Contents          []content         `json:"contents"`
	SystemInstruction *content          `json:"systemInstruction,omitempty"`
	Tools             []toolSet         `json:"tools,omitempty"`
	ToolConfig        *toolConfig       `json:"toolConfig,omitempty"`
	GenerationConfig  *generationConfig `json:"generationConfig,omitempty"`
}

type toolSet struct {
	FunctionDeclarations []functionDeclaration `json:"functionDeclarations"`
}

// functionDeclaration has its parameters as JSON Schema; the field of that purpose that is older takes a subset.
type functionDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type toolConfig struct {
	FunctionCallingConfig functionCalling `json:"functionCallingConfig"`
}

type functionCalling struct {
	Mode                 string   `json:"mode"`
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

type generationConfig struct {
	MaxOutputTokens int             `json:"maxOutputTokens,omitempty"`
	Temperature     *float64        `json:"temperature,omitempty"`
	StopSequences   []string        `json:"stopSequences,omitempty"`
	ThinkingConfig  *thinkingConfig `json:"thinkingConfig,omitempty"`
}

type thinkingConfig struct {
	IncludeThoughts bool `json:"includeThoughts"`
	ThinkingBudget  int  `json:"thinkingBudget"`
}

// Build implements turns.Generator's method for this endpoint. Without a limit from options or endpoint none is sent: the
// model's own holds then.
func (c *Client) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	if err := CheckOptions(prompt.Options); err != nil {
		return turns.Request{}, err
	}
	history, err := wire.HistoryOf(prompt, takes(route.ProviderModel))
	if err != nil {
		return turns.Request{}, err
	}
	collection, name := nameOf(route.ProviderModel)
	r := request{
		Model:             collection + "/" + name,
		Contents:          contents(history.Messages, route.ProviderModel),
		SystemInstruction: systemOf(prompt.Options),
		GenerationConfig:  generationOf(prompt.Options, route.Limits),
	}
	r.Tools, r.ToolConfig = tools(prompt.Options)
	return wire.Built(route, r, builderVersion, maxBody, history)
}

func systemOf(o turns.Options) *content {
	var out *content
	for _, text := range wire.PlainSystem(o) {
		out = &content{Parts: []part{{Text: &text}}}
	}
	return out
}

// generationOf is nil where nothing is asked for.
func generationOf(o turns.Options, l turns.Limits) *generationConfig {
	g := generationConfig{MaxOutputTokens: wire.MaxOutput(o, l), Temperature: o.Temperature, StopSequences: o.StopSequences}
	if o.ThinkingBudgetTokens > 0 {
		g.ThinkingConfig = &thinkingConfig{IncludeThoughts: true, ThinkingBudget: int(o.ThinkingBudgetTokens)}
	}
	if g.MaxOutputTokens == 0 && g.Temperature == nil && len(g.StopSequences) == 0 && g.ThinkingConfig == nil {
		return nil
	}
	return &g
}

// tools are those on offer and the choice among them.
func tools(o turns.Options) ([]toolSet, *toolConfig) {
	if len(o.Tools) == 0 {
		return nil, nil
	}
	declared := make([]functionDeclaration, len(o.Tools))
	for i, t := range o.Tools {
		declared[i] = functionDeclaration{Name: t.Name, Description: wire.CleanText(t.Description)}
		if t.InputSchemaJSON != "" {
			declared[i].Parameters = wire.Object(t.InputSchemaJSON)
		}
	}
	return []toolSet{{declared}}, choiceOf(o.ToolChoice)
}

func choiceOf(c *turns.ToolChoice) *toolConfig {
	if c == nil {
		return nil
	}
	switch c.Mode {
	case turns.ToolChoiceNone:
		return &toolConfig{functionCalling{Mode: "NONE"}}
	case turns.ToolChoiceAny:
		return &toolConfig{functionCalling{Mode: "ANY"}}
	case turns.ToolChoiceTool:
		return &toolConfig{functionCalling{Mode: "ANY", AllowedFunctionNames: []string{c.ToolName}}}
	}
	return nil
}
