package turns

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAToolResultAnswersACallOfTheLastReplyOnce(t *testing.T) {
	cut := toolLine(2)
	cut[0].Reply.Status, cut[0].Reply.Reason = StatusAbandoned, ReasonAmbiguous
	for name, c := range map[string]struct {
		path    []PathRow
		content []Block
		field   string
	}{
		"all calls":                    {toolLine(2), results("a2", "b2"), ""},
		"one of two":                   {toolLine(2), results("b2"), ""},
		"none of them":                 {toolLine(2), []Block{Text{Text: "never mind"}}, ""},
		"a call of an earlier reply":   {toolLine(2), results("a2", "a1"), "input.content[1].tool_use_id"},
		"a call twice":                 {toolLine(2), results("a2", "a2"), "input.content[1].tool_use_id"},
		"no call at all":               {line(2), results("a2"), "input.content[0].tool_use_id"},
		"the first turn":               {nil, results("a2"), "input.content[0].tool_use_id"},
		"a call of a reply that broke": {cut, results("a2"), "input.content[0].tool_use_id"},
		"again, where the last answer's own reply broke": {cut, results("a1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkResults(c.path, c.content)
			if c.field == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, CodeInvalidToolResult, CodeOf(err))
			require.Equal(t, c.field, err.(*Error).Field)
		})
	}
}
