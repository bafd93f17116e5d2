package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/turns"
)

func TestOptionsThatTheVendorRefusesAreRefusedByField(t *testing.T) {
	hot := 2.5
	for field, o := range map[string]turns.Options{
		"tools[1].name":  {Tools: []turns.Tool{{Name: "_a"}, {Name: "1st"}}},
		"tools[0].name":  {Tools: []turns.Tool{{Name: "-x"}}},
		"temperature":    {Temperature: &hot},
		"stop_sequences": {StopSequences: []string{"1", "2", "3", "4", "5", "6"}},
	} {
		p := hello()
		p.Options = o
		_, err := gemini.New(nil, llm.Endpoint{}).Build(turns.Route{ProviderModel: model}, p)
		var refused *turns.Error
		require.ErrorAs(t, err, &refused)
		require.Equal(t, turns.CodeInvalidField, refused.Code)
		require.Equal(t, "input.options."+field, refused.Field)
	}
}

func TestACallOfAnotherModelBearsNoSignatureOfItsOwn(t *testing.T) {
	got := build(t, turns.Limits{}, turns.Prompt{Messages: []turns.Message{
		user(text("a")),
		assistant(turns.ToolUse{ID: "1", Name: "f", InputJSON: "{}", Seal: "gemini.generate/other\nQQ=="}, turns.ToolUse{ID: "2", Name: "f", InputJSON: "{}", Seal: "gemini.generate/other\n"},
			turns.ToolUse{ID: "3", Name: "f", InputJSON: "{}", Seal: "anthropic.messages/m\nx"}),
		user(text("b")),
	}})
	require.Contains(t, got, `{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},`+
		`{"functionCall":{"id":"2","name":"f","args":{}}},{"functionCall":{"id":"3","name":"f","args":{}}}]`)
}
