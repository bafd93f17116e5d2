package responses

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// builderVersion grows with every change of the bytes that Build makes.
const builderVersion = 2

// request is the body of a call. The order of its fields is the order of the bytes, so a change of it is a new builder
// version: a retry on another worker must send the same bytes.
type request struct {
	Model           string            `json:"model"`
	Instructions    string            `json:"instructions,omitempty"`
	Input           []item            `json:"input"`
	MaxOutputTokens int               `json:"max_output_tokens,omitempty"`
	Temperature     *float64          `json:"temperature,omitempty"`
	Tools           []tool            `json:"tools,omitempty"`
	ToolChoice      any               `json:"tool_choice,omitempty"`
	Include         []string          `json:"include,omitempty"`
	Metadata        map[string]string `json:"metadata,omitempty"`
	Store           bool              `json:"store"`
	Background      bool              `json:"background,omitempty"`
	Stream          bool              `json:"stream"`
	StreamOptions   streamOptions     `json:"stream_options"`
}

// streamOptions leave out the padding of deltas, which doubles what is read.
type streamOptions struct {
	IncludeObfuscation bool `json:"include_obfuscation"`
}

// tool has a strictness that is always said: unlike on the vendor's other wire the default is to change the schema.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// namedChoice is the choice of one tool; the other choices are words.
type namedChoice struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// sealedReasoning asks for reasoning in the form in which it can go back.
const sealedReasoning = "reasoning.encrypted_content"

// mayReason reports whether a model may be asked for its reasoning: the vendor refuses that for those of its models that have
// none. They are older than the others, so a name that is not known is taken for one that reasons.
func mayReason(model string) bool {
	model = strings.TrimPrefix(strings.ToLower(model), "ft:")
	for _, family := range []string{"gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"} {
		if strings.HasPrefix(model, family) {
			return false
		}
	}
	return true
}

// Build implements turns.Generator's method for this endpoint. The conversation that a call is made in is no part of what is
// built: it is another one for each call.
func (c *Client) Build(route turns.Route, prompt turns.Prompt) (turns.Request, error) {
	if err := check(prompt.Options); err != nil {
		return turns.Request{}, err
	}
	history, err := wire.HistoryOf(prompt, takes(route.ProviderModel))
	if err != nil {
		return turns.Request{}, err
	}
	r := request{
		Model:           route.ProviderModel,
		Input:           items(history.Messages, route.ProviderModel),
		MaxOutputTokens: wire.MaxOutput(prompt.Options, route.Limits),
		Temperature:     prompt.Options.Temperature,
		Background:      route.Capabilities.Resume,
		Store:           route.Capabilities.Resume || inSession(route.Capabilities),
		Stream:          true,
	}
	for _, text := range wire.PlainSystem(prompt.Options) {
		r.Instructions = text
	}
	r.Tools, r.ToolChoice = tools(prompt.Options)
	if r.Store {
		r.Metadata = wire.Metadata(prompt.Origin)
	} else if mayReason(r.Model) {
		r.Include = []string{sealedReasoning}
	}
	return wire.Built(route, r, builderVersion, media.MaxBody, history)
}

// inSession says that calls are made in a conversation.
func inSession(c turns.Capabilities) bool { return !c.Resume && (c.Lookup || c.Fence) }

// check refuses options that the wire has no place for, by their fields.
func check(o turns.Options) error {
	refuse := func(field, problem string) error {
		return &turns.Error{Code: turns.CodeInvalidField, Field: "input.options." + field, Problem: problem}
	}
	switch {
	case o.ThinkingBudgetTokens > 0:
		return refuse("thinking_budget_tokens", "models of this provider take no budget for thinking; leave it unset")
	case len(o.StopSequences) > 0:
		return refuse("stop_sequences", "this wire of the provider takes no stop sequences; leave them out")
	}
	return wire.CheckOptions(o, 0)
}

// tools are those on offer and the choice among them, which the vendor refuses where there are none.
func tools(o turns.Options) (out []tool, choice any) {
	for _, t := range o.Tools {
		parameters := json.RawMessage(`{"type":"object","properties":{}}`)
		if t.InputSchemaJSON != "" {
			parameters = wire.Object(t.InputSchemaJSON)
		}
		out = append(out, tool{Type: "function", Name: t.Name, Description: wire.CleanText(t.Description), Parameters: parameters})
	}
	if c := o.ToolChoice; c != nil && len(out) > 0 {
		switch c.Mode {
		case turns.ToolChoiceNone:
			choice = "none"
		case turns.ToolChoiceAny:
			choice = "required"
		case turns.ToolChoiceTool:
			choice = namedChoice{"function", c.ToolName}
		}
	}
	return out, choice
}

// inConversation is a body with the conversation that the call is made in, as its last field.
func inConversation(body []byte, session string) []byte {
	open, ok := bytes.CutSuffix(body, []byte("}"))
	if session == "" || !ok {
		return body
	}
	named, _ := json.Marshal(session) // a string always can be
	return bytes.Join([][]byte{open, []byte(`,"conversation":`), named, []byte("}")}, nil)
}
