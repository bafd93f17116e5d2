package turns

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withStatus is a path whose newest reply ended otherwise.
func withStatus(path []PathRow, status Status, reason Reason) []PathRow {
	path[0].Reply.Status, path[0].Reply.Reason = status, reason
	return path
}

// below is a path with a user turn on top.
func below(path []PathRow, content []Block) []PathRow {
	return append([]PathRow{{ID: rowID(5000), Parent: path[0].ID, User: &UserTurn{Content: content}}}, path...)
}

// below is a failed reply to that turn.
func failed(path []PathRow) []PathRow {
	return append([]PathRow{{ID: rowID(5001), Parent: path[0].ID, Reply: &Reply{Status: StatusAbandoned, Reason: ReasonProviderError}}}, path...)
}

// calling is a path that ends in a reply of one call for each input, and how it stopped.
func calling(stop StopReason, inputs ...string) []PathRow {
	path := toolsBelow(line(1), 1)
	path[0].Reply.StopReason, path[0].Reply.Content = stop, nil
	for i, in := range inputs {
		path[0].Reply.Content = append(path[0].Reply.Content, Piece{Block: uint32(i), Kind: KindToolUse, Starts: true,
			ToolUseID: fmt.Sprint("c", i), ToolName: "f", Text: in, Ends: true})
	}
	return path
}

func TestATurnAnswersAllCallsOfTheLastReplyOrNone(t *testing.T) {
	both := results("a2", "b2")
	for name, c := range map[string]struct {
		path    []PathRow
		content []Block
	}{
		"all calls":                        {toolLine(2), both},
		"in another order, with text":      {toolLine(2), append([]Block{Text{Text: "here"}}, results("b2", "a2")...)},
		"with errors":                      {toolLine(2), []Block{ToolResult{ToolUseID: "a2", IsError: true}, ToolResult{ToolUseID: "b2"}}},
		"none of them":                     {toolLine(2), []Block{Text{Text: "never mind"}}},
		"below a reply that is superseded": {withStatus(toolLine(2), StatusAbandoned, ReasonSuperseded), both},
		"again, where the last answer's own reply failed":        {failed(below(toolLine(2), both)), both},
		"the other one, where the last answer's reply failed":    {failed(below(toolLine(2), results("a2"))), results("b2")},
		"all, below a turn that went on without them and failed": {failed(below(toolLine(2), []Block{Text{Text: "x"}})), both},
		"those of the reply before one that broke":               {withStatus(toolLine(2), StatusAbandoned, ReasonCancelled), results("a1", "b1")},
		"the whole ones of a reply that was cut at its length":   {calling(StopLength, `{}`, `{"a":`), results("c0")},
		"broken input that the model itself finished":            {calling(StopToolUse, `{"a":`), results("c0")},
		"calls of one id": {append([]PathRow{}, calling(StopToolUse, `{}`)...), results("c0")},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, checkResults(c.path, c.content)) })
	}
}

func TestAToolResultThatAnswersNoOpenCallIsRefusedAndToldWhy(t *testing.T) {
	for name, c := range map[string]struct {
		path    []PathRow
		content []Block
		at      int
		says    string
	}{
		"a call of an earlier reply":          {toolLine(2), results("a2", "a1"), 1, "of an earlier reply"},
		"a call twice":                        {toolLine(2), results("a2", "a2"), 1, "twice"},
		"no call at all":                      {line(2), results("a2"), 0, "no call of the reply"},
		"the first turn":                      {nil, results("a2"), 0, "no call of the reply"},
		"a call of a reply that was cut off":  {withStatus(toolLine(2), StatusAbandoned, ReasonCancelled), results("a2"), 0, "was cut off"},
		"a call of a reply that is held":      {withStatus(toolLine(2), StatusHeld, ""), results("a2"), 0, "was cut off"},
		"a call that was cut at the length":   {calling(StopLength, `{}`, `{"a":`), results("c0", "c1"), 1, "could not finish"},
		"a call of no id":                     {withID(toolLine(1), ""), results(""), 0, ""},
		"an answered call of the reply above": {below(toolLine(2), results("a2", "b2")), results("a1"), 0, "of an earlier reply"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkResults(c.path, c.content)
			require.Equal(t, CodeInvalidToolResult, CodeOf(err))
			require.Equal(t, fmt.Sprintf("input.content[%d].tool_use_id", c.at), err.(*Error).Field)
			require.Contains(t, err.(*Error).Problem, c.says)
		})
	}
}

// withID is a path whose newest reply calls by this id.
func withID(path []PathRow, id string) []PathRow {
	for i := range path[0].Reply.Content {
		path[0].Reply.Content[i].ToolUseID = id
	}
	return path
}

func TestATurnThatLeavesCallsIsToldWhichWait(t *testing.T) {
	for name, c := range map[string]struct {
		path    []PathRow
		content []Block
		waits   string
	}{
		"one of two": {toolLine(2), results("b2"), "a2"},
		"one of two, below a plain turn that failed": {failed(below(toolLine(2), []Block{Text{Text: "x"}})), results("a2"), "b2"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkResults(c.path, c.content)
			require.Equal(t, CodeWaitingForTools, CodeOf(err))
			require.Equal(t, map[string]string{"tool_use_ids": c.waits, "open_calls": "1"}, err.(*Error).Meta)
		})
	}
	many := calling(StopToolUse, make([]string, 2_000)...)
	err := checkResults(many, results("c7"))
	meta := err.(*Error).Meta
	require.Equal(t, "1999", meta["open_calls"])
	require.LessOrEqual(t, len(meta["tool_use_ids"]), waitingIDs)
	require.True(t, strings.HasPrefix(meta["tool_use_ids"], "c0,c1,"))
	long := withID(toolLine(1), strings.Repeat("x", 1<<20))
	long[0].Reply.Content[2].ToolUseID = "short"
	err = checkResults(long, results("short"))
	require.Empty(t, err.(*Error).Meta["tool_use_ids"], "an id that has no room is counted and not named")
}
