package turns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// story plays a conversation from bytes, each of which says what happens next, and keeps its path, newest row first. The
// replies carry what a provider would have reported of the requests that were built for them.
type story struct {
	t     *testing.T
	path  []PathRow
	rows  int
	open  []string // calls of the last reply
	limit int
	model string
}

func (s *story) id() RowID { s.rows++; return rowID(10_000 + s.rows) }

func (s *story) parent() RowID {
	if len(s.path) == 0 {
		return RowID{}
	}
	return s.path[0].ID
}

func (s *story) add(row PathRow) {
	row.Parent = s.parent()
	s.path = append([]PathRow{row}, s.path...)
}

// play is a story of some bytes. limit is the window of the requests while it goes on.
func play(t *testing.T, data []byte, limit int) *story {
	s := &story{t: t, limit: limit, model: "one"}
	for i := 0; i+1 < len(data) && i < 240; i += 2 {
		s.step(data[i], int(data[i+1]))
	}
	return s
}

func (s *story) step(op byte, size int) {
	words := strings.Repeat("word ", 1+size%40)
	ask := []Block{Text{Text: words}}
	switch op % 12 {
	case 0, 1, 2:
		s.exchange(ask, Reply{Status: StatusComplete}, size, piecesOf(words+words)...)
	case 3:
		s.exchange(ask, Reply{Status: StatusComplete}, size, s.calls(1+size%3)...)
	case 4, 5:
		s.exchange(s.answers(size), Reply{Status: StatusComplete}, size, s.calls(size%4)...)
	case 6:
		s.exchange(ask, Reply{Status: StatusAbandoned, Reason: ReasonCancelled}, size, piecesOf("part")...)
	case 7:
		s.exchange(ask, Reply{Status: StatusAbandoned, Reason: ReasonSuperseded}, size, piecesOf(words)...)
	case 8:
		s.exchange([]Block{Text{Text: []string{"", "  ", "\x00", "\n"}[size%4]}}, Reply{Status: StatusComplete}, size, piecesOf(words)...)
	case 9:
		s.exchange(nil, Reply{Status: StatusComplete}, size, Piece{Block: 7, Kind: KindText, Text: "no log"})
	case 10:
		s.exchange([]Block{ToolResult{ToolUseID: "of nothing"}}, Reply{Status: StatusComplete}, size,
			Piece{Kind: KindThinking, Starts: true, Text: "hm", Ends: true}) // thoughts alone
	case 11:
		s.model = []string{"one", "two"}[size%2]
	}
}

func piecesOf(text string) []Piece {
	return []Piece{{Kind: KindText, Starts: true, Text: text, Ends: true}}
}

// calls is a reply of so many parallel calls; of none it is a text.
func (s *story) calls(n int) (pieces []Piece) {
	if n == 0 {
		return piecesOf("done")
	}
	for i := range n {
		pieces = append(pieces, Piece{Block: uint32(i), Kind: KindToolUse, Starts: true, Ends: true,
			ToolUseID: fmt.Sprint("c", s.rows, "-", i), ToolName: "f", Text: []string{`{}`, `{"a":`, "no json"}[i]})
	}
	return pieces
}

// answers are results for the open calls, some of them, in some order, or a plain message where none are open.
func (s *story) answers(size int) (content []Block) {
	for i, id := range s.open {
		if i == 0 || size%3 != 0 {
			content = append([]Block{ToolResult{ToolUseID: id, Content: []Block{Text{Text: "twelve"}}}}, content...)
		}
	}
	if len(content) == 0 {
		content = []Block{Text{Text: "plain"}}
	}
	return content
}

// exchange asks for a reply, as the service does, and stores both.
func (s *story) exchange(content []Block, r Reply, size int, pieces ...Piece) {
	turn := s.id()
	q := s.question(content, s.limit)
	q.Turn.ID = TurnID(turn)
	w, err := buildWindow(q)
	if err != nil {
		require.Equal(s.t, CodePromptTooLarge, CodeOf(err))
		return
	}
	s.add(PathRow{ID: turn, User: &UserTurn{ID: TurnID(turn), Content: content, Options: q.Options}})
	r.ID, r.Turn, r.Model, r.WindowStart, r.Content = ReplyID(s.id()), TurnID(turn), s.model, w.start, pieces
	r.Usage = s.usage(w, pieces, size)
	s.add(PathRow{ID: r.ID.Row(), Reply: &r})
	if r.counts() {
		s.open = nil
		for _, p := range pieces {
			if p.Kind == KindToolUse {
				s.open = append(s.open, p.ToolUseID)
			}
		}
	}
}

// usage is what a provider that counts its own way reports, which now and then is nonsense.
func (s *story) usage(w window, pieces []Piece, size int) Usage {
	in, out := int64(40), int64(3)
	for _, m := range w.prompt.Messages {
		in += EstimateContent(m.Content)*3/4 + 5
	}
	for _, p := range pieces {
		out += int64(len(p.Text)) / 5
	}
	u := Usage{Input: in, Output: out + 7, Reasoning: 7, Source: SourceReported, Calls: 1}
	switch size % 16 {
	case 3:
		u.Source = SourceEstimated
	case 5:
		u.Input = -in
	case 7:
		u.Output = 0
	case 9:
		u.Input = 1 << 62
	case 11:
		u.Calls = 2
	case 13:
		u.Input = 1
	}
	return u
}

func (s *story) question(content []Block, limit int) Question {
	return Question{Path: s.path, Turn: UserTurn{ID: TurnID(rowID(999)), Parent: s.parent(), Content: content},
		Route: Route{Model: s.model, Limits: Limits{WindowTokens: limit}}, Options: Options{System: "be kind"}}
}

// holds demands of a window all that must be true of any.
func (s *story) holds(q Question, w window) {
	t, messages := s.t, w.prompt.Messages
	t.Helper()
	require.Equal(t, Message{Role: RoleUser, Content: q.Turn.Content}, messages[len(messages)-1], "the new turn is last")
	require.Equal(t, RoleUser, messages[0].Role, "the first message is the user's")
	require.Equal(t, q.Options, w.prompt.Options, "system text is kept")
	require.LessOrEqual(t, w.tokens, q.budget())
	at := placeOf(q.Path, w.start)
	require.Equal(t, at < 0, w.start == q.Turn.ID.Row(), "it starts at a row of the path, or at the turn")
	var want []Message
	for _, row := range slices.Backward(q.Path[:at+1]) {
		if m, counts := messageOf(row); counts {
			want = append(want, m)
		}
	}
	require.Equal(t, append(want, messages[len(messages)-1]), messages, "it holds all there is from its start on, in order")
	if at >= 0 {
		start := q.Path[at]
		require.NotNil(t, start.User)
		require.True(t, opens(start.User.Content))
		require.True(t, start.Parent.IsZero() || !answersCalls(start.User.Content), "no result without its call")
	} else {
		require.False(t, answersCalls(q.Turn.Content) && len(openCalls(q.Path).ids) > 0, "no result without its call")
	}
}
