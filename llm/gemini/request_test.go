package gemini_test

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

const model = "gemini-3.5-flash"

func user(blocks ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleUser, Content: blocks}
}

func assistant(blocks ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleAssistant, Content: blocks}
}

func text(s string) turns.Block { return turns.Text{Text: s} }

func hello() turns.Prompt { return turns.Prompt{Messages: []turns.Message{user(text("hello"))}} }

// ask makes one call to a scripted provider.
func ask(t *testing.T, s *scripted.Server) llmtest.Result {
	t.Helper()
	http := wire.NewClient(wire.Options{})
	t.Cleanup(http.Close)
	c := gemini.New(http, llm.Endpoint{BaseURL: s.URL()})
	req, err := c.Build(turns.Route{ProviderModel: model}, hello())
	require.NoError(t, err)
	return llmtest.Collect(t, c.Generate(t.Context(), turns.Call{Request: req}))
}

func build(t *testing.T, limits turns.Limits, p turns.Prompt) string {
	t.Helper()
	route := turns.Route{ProviderModel: model, Limits: limits}
	got, err := gemini.New(nil, llm.Endpoint{}).Build(route, p)
	require.NoError(t, err)
	again, err := gemini.New(nil, llm.Endpoint{}).Build(route, p)
	require.NoError(t, err)
	require.Equal(t, got, again, "the same prompt makes the same bytes")
	require.Equal(t, sha256.Sum256(got.Body), got.Hash)
	return string(got.Body)
}

func TestARequestIsTheseBytes(t *testing.T) {
	temperature := 0.5
	require.Equal(t, `{"model":"models/gemini-3.5-flash","contents":[{"role":"user","parts":[{"text":"hello"}]}]}`, build(t, turns.Limits{}, hello()))
	p := turns.Prompt{
		Options: turns.Options{
			System: "be brief", MaxOutputTokens: 1000, Temperature: &temperature, StopSequences: []string{"END"}, ThinkingBudgetTokens: 128,
			Tools:      []turns.Tool{{Name: "f", Description: "does <f>", InputSchemaJSON: `{"type": "object"}`}, {Name: "g"}},
			ToolChoice: &turns.ToolChoice{Mode: turns.ToolChoiceTool, ToolName: "g"},
		},
		Messages: []turns.Message{user(text("a")), assistant(text("b ")), user(text("c"), text("d"))},
	}
	require.Equal(t, `{"model":"models/gemini-3.5-flash","contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b "}]},`+
		`{"role":"user","parts":[{"text":"c"},{"text":"d"}]}],"systemInstruction":{"parts":[{"text":"be brief"}]},`+
		`"tools":[{"functionDeclarations":[{"name":"f","description":"does <f>","parametersJsonSchema":{"type":"object"}},{"name":"g"}]}],`+
		`"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}},`+
		`"generationConfig":{"maxOutputTokens":500,"temperature":0.5,"stopSequences":["END"],"thinkingConfig":{"includeThoughts":true,"thinkingBudget":128}}}`,
		build(t, turns.Limits{MaxOutputTokens: 500}, p))
}

func TestAChoiceAmongToolsGoesWithTools(t *testing.T) {
	for mode, want := range map[turns.ToolChoiceMode]string{
		turns.ToolChoiceNone: `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`,
		turns.ToolChoiceAny:  `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`,
	} {
		p := hello()
		p.Options.ToolChoice = &turns.ToolChoice{Mode: mode}
		require.NotContains(t, build(t, turns.Limits{}, p), "toolConfig", "without tools there is no choice")
		p.Options.Tools = []turns.Tool{{Name: "f"}}
		require.Contains(t, build(t, turns.Limits{}, p), want)
	}
}

// The vendor refuses a call that is not signed as it was, and takes one that none of its models made by a word for it.
func TestSignaturesGoBackOnTheirOwnParts(t *testing.T) {
	const sealed = "gemini.generate/" + model + "\n"
	result := func(id string) turns.Block {
		return turns.ToolResult{ToolUseID: id, Content: []turns.Block{text("12")}}
	}
	got := build(t, turns.Limits{}, turns.Prompt{Messages: []turns.Message{
		user(text("a")),
		assistant(
			turns.Thinking{Text: "hm", Seal: sealed + "th"}, turns.Text{Text: "b", Seal: sealed + "tx"}, turns.Thinking{Redacted: true, Seal: sealed + "al"},
			turns.ToolUse{ID: "1", Name: "f", InputJSON: `{"n": 12345678901234567890.10}`, Seal: sealed + "cl"},
			turns.ToolUse{ID: "2", Name: "g", InputJSON: `{"cut`, Seal: sealed}),
		user(result("1"), turns.ToolResult{ToolUseID: "2", IsError: true}),
		assistant(turns.Thinking{Text: "no", Seal: "gemini.generate/other\nxx"}, turns.Thinking{Text: "no"}, turns.ToolUse{ID: "3", Name: "f", Seal: "anthropic"}, turns.ToolUse{ID: "4", Name: "f"}),
		user(result("3"), result("4"), text("c")),
	}})
	require.JSONEq(t, `{"model":"models/gemini-3.5-flash","contents":[
		{"role":"user","parts":[{"text":"a"}]},
		{"role":"model","parts":[{"text":"","thoughtSignature":"th"},{"text":"b","thoughtSignature":"tx"},{"text":"","thoughtSignature":"al"},
			{"functionCall":{"id":"1","name":"f","args":{"n":12345678901234567890.10}},"thoughtSignature":"cl"},
			{"functionCall":{"id":"2","name":"g","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"12"}}},
			{"functionResponse":{"id":"2","name":"g","response":{"error":"The tool failed."}}}]},
		{"role":"model","parts":[{"functionCall":{"id":"3","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},
			{"functionCall":{"id":"4","name":"f","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"3","name":"f","response":{"output":"12"}}},
			{"functionResponse":{"id":"4","name":"f","response":{"output":"12"}}},{"text":"c"}]}]}`, got)
	require.Contains(t, got, "12345678901234567890.10")
	require.True(t, json.Valid([]byte(got)))
}

func TestTheModelStandsInTheURLAndInTheBodyAndTheKeyInAHeader(t *testing.T) {
	for base, names := range map[string]map[string]string{
		"": {model: "models/" + model}, "/": {"a b?c": "models/a b?c"}, "/x/v1": {"tunedModels/mine": "tunedModels/mine"}, "/gemini": {"models/y": "models/y"},
	} {
		for name, whole := range names {
			path := strings.TrimSuffix(base, "/") + "/v1beta/" + whole + ":streamGenerateContent"
			if base == "/x/v1" {
				path = "/x/v1/" + whole + ":streamGenerateContent"
			}
			p := llmtest.Play(t, func(x *llmtest.Exchange) {
				require.Equal(t, path, x.Path)
				require.Equal(t, "the key", x.Header.Get("X-Goog-Api-Key"))
				require.Empty(t, x.Header.Get("Authorization"))
				require.Contains(t, x.Body, `"model":"`+whole+`"`)
				x.Stream(event(finish("STOP")))
			})
			http := wire.NewClient(wire.Options{})
			t.Cleanup(http.Close)
			c := gemini.New(http, llm.Endpoint{BaseURL: p.URL() + base, Key: "the key"})
			req, err := c.Build(turns.Route{ProviderModel: name}, hello())
			require.NoError(t, err)
			require.Nil(t, llmtest.Collect(t, c.Generate(t.Context(), turns.Call{Request: req})).Err)
		}
	}
}
