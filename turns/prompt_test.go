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
		user := PathRow{ID: rowID(2 * i), User: &UserTurn{ID: TurnID(rowID(2 * i)), Content: []Block{Text{fmt.Sprintf("ask %d", i)}}}}
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

func build(t *testing.T, path []PathRow, limit int, pinned RowID) window {
	t.Helper()
	w, err := buildWindow(path, TurnID(rowID(999)), []Block{Text{"now"}}, Options{}, Limits{WindowTokens: limit}, pinned)
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
	_, err := buildWindow(nil, TurnID(rowID(1)), []Block{Text{strings.Repeat("x", 100)}}, Options{}, Limits{WindowTokens: 10}, RowID{})
	require.Equal(t, CodePromptTooLarge, CodeOf(err))
}
