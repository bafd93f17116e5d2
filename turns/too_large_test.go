package turns

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPromptTooLargeSaysWhichPartOfItIsAndWhatToSendInstead(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	said := []Block{Text{Text: "go"}}
	call := func(input string) []PathRow {
		asked := PathRow{ID: rowID(0), User: &UserTurn{Content: said}}
		reply := PathRow{ID: rowID(1), Parent: rowID(0), Reply: &Reply{Status: StatusComplete,
			Content: []Piece{{Kind: KindToolUse, Starts: true, ToolUseID: "t", ToolName: "f", Text: input, Ends: true}}}}
		return []PathRow{reply, asked}
	}
	result := func(text string) []Block {
		return []Block{ToolResult{ToolUseID: "t", Content: []Block{Text{Text: text}}}}
	}
	for name, tt := range map[string]struct {
		path    []PathRow
		content []Block
		options Options
		field   string
		says    string
		instead []Block // fits
	}{
		"the system text": {nil, said, Options{System: long}, "input.options.system", "send less of them", nil},
		"the tools":       {nil, said, Options{System: "be kind", Tools: []Tool{{Name: "f", Description: long}}}, "input.options.tools", "send less of them", nil},
		"the turn":        {nil, []Block{Text{Text: long}}, Options{}, "input.content", "; send less", said},
		"the turn under a system text": {nil, []Block{Text{Text: long}}, Options{System: "be very kind"}, "input.content",
			"send less, or less than the", said},
		"a result":          {call(`{}`), result(long), Options{}, "input.content", "shorter or empty results", result("")},
		"results and calls": {call(`{"a":"` + long[:300] + `"}`), result(long[:300]), Options{}, "input.content", "shorter or empty results, or a plain message", result("")},
		"the call above":    {call(`{"a":"` + long + `"}`), result(""), Options{}, "input.content", "; send a plain message in place of the results", said},
	} {
		t.Run(name, func(t *testing.T) {
			q := asking(tt.path, tt.content, 120, RowID{})
			q.Options = tt.options
			_, err := buildWindow(q)
			require.Equal(t, CodePromptTooLarge, CodeOf(err))
			require.Equal(t, tt.field, err.(*Error).Field)
			require.ErrorContains(t, err, tt.says)
			require.NotEmpty(t, err.(*Error).Meta["tokens"])
			if tt.instead != nil {
				q.Turn.Content = tt.instead
				_, err = buildWindow(q)
				require.NoError(t, err, "what it says to send instead fits")
			}
		})
	}
}
