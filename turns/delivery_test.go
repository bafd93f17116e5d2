package turns

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func plainDelivery() Delivery {
	return Delivery{Input: Input{Turn: TurnID{uuid.Max}, Content: []Block{Text{Text: "hi"}}}}
}

func TestABadDeliveryIsRefusedByFieldAndNeverQuoted(t *testing.T) {
	const secret = "wordsofauser"
	for name, c := range map[string]struct {
		change func(*Delivery)
		code   Code
		field  string
	}{
		"no turn id":       {func(d *Delivery) { d.Input.Turn = TurnID{} }, CodeInvalidField, "input.turn_id"},
		"no content":       {func(d *Delivery) { d.Input.Content = nil }, CodeContentEmpty, "input.content"},
		"blank content":    {func(d *Delivery) { d.Input.Content = []Block{Text{Text: " \n\t "}, Text{}} }, CodeContentEmpty, "input.content"},
		"too large":        {func(d *Delivery) { d.Input.Content = []Block{Text{Text: strings.Repeat(secret, 100)}} }, CodeContentTooLarge, "input.content"},
		"not UTF-8":        {func(d *Delivery) { d.Input.Content = []Block{Text{Text: secret + "\xff"}} }, CodeInvalidField, "input.content[0].text"},
		"a reply's block":  {func(d *Delivery) { d.Input.Content = []Block{Thinking{Text: secret}} }, CodeInvalidField, "input.content[0]"},
		"a negative grace": {func(d *Delivery) { d.DisconnectGrace = -1 }, CodeInvalidField, "input.disconnect_grace"},
		"an image in a result": {func(d *Delivery) {
			d.Input.Content = []Block{ToolResult{ToolUseID: "a", Content: []Block{Image{MediaType: "image/png", URL: secret}}}}
		}, CodeInvalidField, "input.content[0].content[0].image.url"},
		"a document in a result": {func(d *Delivery) {
			d.Input.Content = []Block{ToolResult{ToolUseID: "a", Content: []Block{Document{MediaType: "text/plain", Data: []byte(secret)}}}}
		}, CodeInvalidField, "input.content[0].content[0]"},
		"a result in a result": {func(d *Delivery) {
			d.Input.Content = []Block{ToolResult{ToolUseID: "a", Content: []Block{ToolResult{ToolUseID: secret}}}}
		}, CodeInvalidField, "input.content[0].content[0]"},
		"a result that is not UTF-8": {func(d *Delivery) {
			d.Input.Content = []Block{ToolResult{ToolUseID: "a", Content: []Block{Text{Text: secret + "\xff"}}}}
		}, CodeInvalidField, "input.content[0].content[0].text"},
		"a result of no call":     {func(d *Delivery) { d.Input.Content = []Block{ToolResult{}} }, CodeInvalidField, "input.content[0].tool_use_id"},
		"a tool of no name":       {func(d *Delivery) { d.Input.Options.Tools = []Tool{{}} }, CodeInvalidField, "input.options.tools[0].name"},
		"a tool's odd name":       {func(d *Delivery) { d.Input.Options.Tools = []Tool{{Name: secret + "."}} }, CodeInvalidField, "input.options.tools[0].name"},
		"two tools of a name":     {func(d *Delivery) { d.Input.Options.Tools = []Tool{{Name: secret}, {Name: secret}} }, CodeInvalidField, "input.options.tools[1].name"},
		"a schema that is a list": {func(d *Delivery) { d.Input.Options.Tools = []Tool{{Name: "f", InputSchemaJSON: `["wordsofauser"]`}} }, CodeInvalidField, "input.options.tools[0].input_schema_json"},
		"a schema cut short":      {func(d *Delivery) { d.Input.Options.Tools = []Tool{{Name: "f", InputSchemaJSON: `{"wordsofauser":`}} }, CodeInvalidField, "input.options.tools[0].input_schema_json"},
		"a choice without a name": {func(d *Delivery) { d.Input.Options.ToolChoice = &ToolChoice{Mode: ToolChoiceTool} }, CodeInvalidField, "input.options.tool_choice.tool_name"},
		"a name without a choice": {func(d *Delivery) { d.Input.Options.ToolChoice = &ToolChoice{ToolName: secret} }, CodeInvalidField, "input.options.tool_choice.tool_name"},
		"a choice never heard of": {func(d *Delivery) { d.Input.Options.ToolChoice = &ToolChoice{Mode: secret} }, CodeInvalidField, "input.options.tool_choice.mode"},
		"a negative budget":       {func(d *Delivery) { d.Input.Options.ThinkingBudgetTokens = -1 }, CodeInvalidField, "input.options.thinking_budget_tokens"},
		"a negative deadline":     {func(d *Delivery) { d.Deadline = -1 }, CodeInvalidField, "input.deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			d := plainDelivery()
			c.change(&d)
			err := d.validate(1000)
			require.Error(t, err)
			require.Equal(t, c.code, CodeOf(err))
			require.Equal(t, c.field, err.(*Error).Field)
			require.NotContains(t, err.Error(), secret)
		})
	}
	require.NoError(t, plainDelivery().validate(1000))
}

func TestToolsAndTheirResultsAreTaken(t *testing.T) {
	d := plainDelivery()
	d.Input.Content = []Block{ToolResult{ToolUseID: "a"}, ToolResult{ToolUseID: "b", IsError: true, Content: []Block{Text{Text: "no"}}}}
	d.Input.Options = Options{Tools: []Tool{{Name: "look-up_1", InputSchemaJSON: ` {"type":"object"}`}, {Name: "now"}},
		ToolChoice: &ToolChoice{Mode: ToolChoiceTool, ToolName: "now"}, ThinkingBudgetTokens: 2048}
	require.NoError(t, d.validate(1000))
}

func TestAChoiceAmongToolsIsCheckedWhereDefaultsAreKnown(t *testing.T) {
	choose := func(c ToolChoice, tools ...Tool) error {
		q := asking(nil, []Block{Text{Text: "a"}}, 0, RowID{})
		q.Options = Options{ToolChoice: &c}.Or(Options{Tools: tools})
		_, err := buildWindow(q)
		return err
	}
	named := ToolChoice{Mode: ToolChoiceTool, ToolName: "f"}
	require.NoError(t, choose(named, Tool{Name: "e"}, Tool{Name: "f"}))
	require.ErrorContains(t, choose(named, Tool{Name: "e"}), "input.options.tool_choice.tool_name")
	require.ErrorContains(t, choose(ToolChoice{Mode: ToolChoiceAny}), "input.options.tool_choice")
	require.NoError(t, choose(ToolChoice{Mode: ToolChoiceNone}))
	require.NoError(t, choose(ToolChoice{}))
}

func TestContentAtTheLimitIsTaken(t *testing.T) {
	d := plainDelivery()
	d.Input.Content = []Block{Text{Text: strings.Repeat("x", 1000)}}
	require.NoError(t, d.validate(1000))
	d.Input.Content = []Block{Text{Text: strings.Repeat("x", 1001)}}
	require.Equal(t, CodeContentTooLarge, CodeOf(d.validate(1000)))
}

func TestStoredContentComesBackAsItWas(t *testing.T) {
	content := []Block{
		Text{Text: "naive 你好🦀 👩‍👩‍👧 \"quoted\" <b>"}, Image{MediaType: "image/png", Data: []byte{0, 1}}, Image{URL: "u"},
		Document{MediaType: "text/plain", Title: "t", Data: []byte{2}}, ToolUse{ID: "a", Name: "f", InputJSON: `{"b":1,"a":1e99}`},
		ToolResult{ToolUseID: "a", IsError: true, Content: []Block{Text{Text: "x"}}}, Thinking{Text: "hm", Redacted: true},
		Refusal{Text: "no", Category: "c"}, Opaque{Provider: "p", Type: "t"},
	}
	data, err := EncodeContent(content)
	require.NoError(t, err)
	back, err := DecodeContent(data)
	require.NoError(t, err)
	require.Equal(t, content, back)
	_, err = DecodeContent([]byte(`[{"kind":"hologram"}]`))
	require.Error(t, err)
	warm := 0.0
	options := Options{Model: "m", Temperature: &warm, StopSequences: []string{"a"}, ToolChoice: &ToolChoice{Mode: "any"}}
	stored, err := EncodeOptions(options)
	require.NoError(t, err)
	again, err := DecodeOptions(stored)
	require.NoError(t, err)
	require.Equal(t, options, again)
}
