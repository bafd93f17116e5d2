package turns

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func rowID(n int) RowID { return RowID{uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n))} }

// line is a path of n answered turns, newest row first. Turn i says "ask i" and its reply "answer i".
func line(n int) []PathRow {
	var path []PathRow
	for i := range n {
		user := PathRow{ID: rowID(2 * i), User: &UserTurn{ID: TurnID(rowID(2 * i)), Content: []Block{Text{Text: fmt.Sprintf("ask %d", i)}}}}
		if i > 0 {
			user.Parent = rowID(2*i - 1)
		}
		reply := PathRow{ID: rowID(2*i + 1), Parent: user.ID, Reply: &Reply{ID: ReplyID(rowID(2*i + 1)), Status: StatusComplete,
			Content: []Piece{{Kind: KindText, Starts: true, Text: fmt.Sprintf("answer %d", i), Ends: true}}}}
		path = append([]PathRow{reply, user}, path...)
	}
	return path
}

func texts(p Prompt) string {
	var out []string
	for _, m := range p.Messages {
		out = append(out, string(m.Role[0])+":"+PlainText(m.Content))
	}
	return strings.Join(out, "|")
}

// asking is a question of turn 999 below a path.
func asking(path []PathRow, content []Block, limit int, pinned RowID) Question {
	return Question{Path: path, Turn: UserTurn{ID: TurnID(rowID(999)), Content: content}, Pinned: pinned,
		Route: Route{Limits: Limits{WindowTokens: limit}}}
}

func build(t *testing.T, path []PathRow, limit int, pinned RowID) window {
	t.Helper()
	w, err := buildWindow(asking(path, []Block{Text{Text: "now"}}, limit, pinned))
	require.NoError(t, err)
	return w
}

func TestAPromptIsThePathFromOldToNew(t *testing.T) {
	w := build(t, line(2), 0, RowID{})
	require.Equal(t, "u:ask 0|a:answer 0|u:ask 1|a:answer 1|u:now", texts(w.prompt))
	require.Equal(t, rowID(0), w.start)
	alone := build(t, nil, 0, RowID{})
	require.Equal(t, "u:now", texts(alone.prompt))
	require.Equal(t, rowID(999), alone.start)
}

func TestAFailedReplyIsNoPartOfTheHistoryAndASupersededOneIs(t *testing.T) {
	for reason, want := range map[Reason]string{
		ReasonSuperseded:   "u:ask 0|a:answer 0|u:now",
		ReasonLeaseExpired: "u:ask 0|u:now",
		ReasonCancelled:    "u:ask 0|u:now",
	} {
		path := line(1)
		path[0].Reply.Status, path[0].Reply.Reason = StatusAbandoned, reason
		require.Equal(t, want, texts(build(t, path, 0, RowID{}).prompt), "%s", reason)
	}
	empty := line(1)
	empty[0].Reply.Content = nil
	require.Equal(t, "u:ask 0|u:now", texts(build(t, empty, 0, RowID{}).prompt))
}

func TestAReplyOfWhatOnlyItsVendorUnderstandsIsPartOfTheHistoryIfThatWasKept(t *testing.T) {
	path := line(1)
	for seal, want := range map[string]string{"sealed": "u:ask 0|a:|u:now", "": "u:ask 0|u:now"} {
		path[0].Reply.Content = []Piece{{Kind: KindOpaque, Starts: true, Type: "search", Ends: true, Seal: seal}}
		require.Equal(t, want, texts(build(t, path, 0, RowID{}).prompt), seal)
	}
	path[0].Reply.Content[0].Seal = strings.Repeat("s", 4000)
	require.Equal(t, "u:now", texts(build(t, path, 100, RowID{}).prompt), "it takes room in the window")
}

func TestEveryWindowStartsAtAUserTurnAndKeepsTheNewest(t *testing.T) {
	path := line(20)
	last := -1
	for limit := 1; limit < 200; limit++ {
		w := build(t, path, limit, RowID{})
		got := texts(w.prompt)
		require.True(t, strings.HasPrefix(got, "u:"), got)
		require.True(t, strings.HasSuffix(got, "u:now"), got)
		require.True(t, strings.HasSuffix(texts(build(t, path, 0, RowID{}).prompt), got), "a window is the end of the whole path")
		require.GreaterOrEqual(t, len(got), last, "a larger window never holds less")
		last = len(got)
	}
}

func TestAPinnedWindowIsRebuiltWhateverTheLimitSays(t *testing.T) {
	path := line(10)
	first := build(t, path, 30, RowID{})
	require.NotEqual(t, rowID(0), first.start)
	require.Equal(t, first, build(t, path, 1000, first.start))
}

func TestATurnAloneOverTheWindowIsRefusedBeforeAnyCall(t *testing.T) {
	_, err := buildWindow(asking(nil, []Block{Text{Text: strings.Repeat("x", 100)}}, 10, RowID{}))
	require.Equal(t, CodePromptTooLarge, CodeOf(err))
}

// toolLine is a path of n rounds below one question: a reply with two calls and thoughts, a turn with their results. The
// newest row is the last reply, whose calls are open.
func toolLine(n int) []PathRow { return toolsBelow(line(1), n) }

func toolsBelow(path []PathRow, n int) []PathRow {
	for i := 1; i <= n; i++ {
		call := func(name string) Piece {
			return Piece{Kind: KindToolUse, Starts: true, ToolUseID: fmt.Sprint(name, i), ToolName: "f", Text: `{"n":12345678901234567890}`, Ends: true}
		}
		a, b := call("a"), call("b")
		a.Block, b.Block = 1, 2
		reply := PathRow{ID: rowID(1000 + 2*i), Parent: path[0].ID, Reply: &Reply{Status: StatusComplete, Content: []Piece{
			{Kind: KindThinking, Starts: true, Text: "hm", Ends: true, Seal: "s"}, a, b}}}
		path = append([]PathRow{reply}, path...)
		if i == n {
			break
		}
		user := PathRow{ID: rowID(1001 + 2*i), Parent: reply.ID, User: &UserTurn{Content: []Block{
			ToolResult{ToolUseID: fmt.Sprint("a", i), Content: []Block{Text{Text: "12"}}}, ToolResult{ToolUseID: fmt.Sprint("b", i), IsError: true}}}}
		path = append([]PathRow{user}, path...)
	}
	return path
}

func results(ids ...string) (content []Block) {
	for _, id := range ids {
		content = append(content, ToolResult{ToolUseID: id, Content: []Block{Text{Text: "done"}}})
	}
	return content
}

func TestAReplyGoesIntoThePromptWithAllThatItSaid(t *testing.T) {
	w, err := buildWindow(asking(toolLine(1), results("b1", "a1"), 0, RowID{}))
	require.NoError(t, err)
	require.Equal(t, Message{Role: RoleAssistant, Content: []Block{
		Thinking{Text: "hm", Seal: "s"}, ToolUse{ID: "a1", Name: "f", InputJSON: `{"n":12345678901234567890}`},
		ToolUse{ID: "b1", Name: "f", InputJSON: `{"n":12345678901234567890}`},
	}}, w.prompt.Messages[2])
	thoughts := line(1)
	thoughts[0].Reply.Content = []Piece{{Kind: KindThinking, Starts: true, Text: "hm", Ends: true}}
	require.Equal(t, "u:ask 0|u:now", texts(build(t, thoughts, 0, RowID{}).prompt), "thoughts alone are no answer")
}

func TestNoWindowPartsACallFromItsResult(t *testing.T) {
	path, whole := toolsBelow(line(3), 4), 0
	for limit := 1; limit < 400; limit++ {
		w, err := buildWindow(asking(path, results("a4", "b4"), limit, RowID{}))
		if err != nil {
			require.Equal(t, CodePromptTooLarge, CodeOf(err))
			require.Zero(t, whole, "a larger window is never too small where a smaller one was not")
			continue
		}
		whole++
		first := w.prompt.Messages[0]
		require.Equal(t, RoleUser, first.Role)
		require.False(t, answersCalls(first.Content))
		again, err := buildWindow(asking(path, results("a4", "b4"), 1, w.start))
		require.Equal(t, CodePromptTooLarge, CodeOf(err), "%v", again)
		again, err = buildWindow(asking(path, results("a4", "b4"), 100_000, w.start))
		require.NoError(t, err)
		require.Equal(t, w, again)
	}
	require.Positive(t, whole)
}
