package turns

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// cutLog is a LiveLog of which only the part from an offset on is in memory.
type cutLog struct {
	LiveLog
	log   *Log
	first uint32
}

func (l cutLog) First() uint32 { return l.first }

func (l cutLog) Tail(from uint32) ([]Piece, uint32) {
	if from < l.first {
		return nil, l.log.Len()
	}
	pieces, _, err := l.log.From(from, 0)
	if err != nil {
		return nil, l.log.Len()
	}
	return pieces, l.log.Len()
}

// rowStore is a Store in which one reply is read.
type rowStore struct {
	Store
	row Reply
	err error
}

func (s rowStore) ReadReply(context.Context, ConversationKey, ReplyID) (Reply, error) {
	return s.row, s.err
}

func wholeLog(t *testing.T) *Log {
	t.Helper()
	log, err := LogOf([]Piece{
		{Block: 0, Kind: KindThinking, Starts: true, Text: "hm", Ends: true, Seal: "s"},
		{Block: 1, Kind: KindText, Starts: true, Text: "grüße", Ends: true},
		{Block: 2, Kind: KindToolUse, Starts: true, ToolUseID: "t", ToolName: "n", Text: "{}"},
	})
	require.NoError(t, err)
	return log
}

// upTo is the log's beginning of this length, which must end between runes.
func upTo(t *testing.T, log *Log, n uint32) []Piece {
	t.Helper()
	all, _, err := log.From(0, 0)
	require.NoError(t, err)
	begun := new(Log)
	for _, p := range all {
		for _, step := range stepsOf(p) {
			if begun.Len() == n {
				pieces, _, err := begun.From(0, 0)
				require.NoError(t, err)
				return pieces
			}
			require.NoError(t, begun.Append(step))
		}
	}
	require.Equal(t, n, begun.Len())
	return all
}

// stepsOf cuts a piece into its smallest parts.
func stepsOf(p Piece) (steps []Piece) {
	head, rest := p, Piece{Block: p.Block, Kind: p.Kind}
	head.Text, head.Ends, head.Seal = "", false, ""
	steps = append(steps, head)
	for _, r := range p.Text {
		rest.Text = string(r)
		steps = append(steps, rest)
	}
	if rest.Text = ""; p.Ends {
		rest.Ends, rest.Seal = true, p.Seal
		steps = append(steps, rest)
	}
	return steps
}

func TestALogIsWholeHoweverMuchOfItIsOnlyStored(t *testing.T) {
	log := wholeLog(t)
	want, length, err := log.From(0, 0)
	require.NoError(t, err)
	inside := map[uint32]bool{8: true, 10: true} // inside a rune
	for first := uint32(1); first <= length; first++ {
		for stored := first; stored <= length; stored++ {
			if inside[first] || inside[stored] {
				continue
			}
			row := Reply{Content: upTo(t, log, stored), Length: stored}
			r := &run{Service: &Service{store: rowStore{row: row}}, log: cutLog{log: log, first: first}}
			got, n, err := r.whole(t.Context())
			require.NoError(t, err, "first %d, stored %d", first, stored)
			require.Equal(t, length, n)
			require.Equal(t, want, got)
		}
	}
}

func TestALogWithAHoleIsNeverCalledWhole(t *testing.T) {
	log := wholeLog(t)
	other, err := LogOf([]Piece{{Kind: KindThinking, Starts: true, Text: "hm", Ends: true, Seal: "s"}, {Block: 1, Kind: KindText, Starts: true, Text: "gross"}})
	require.NoError(t, err)
	foreign, _, err := other.From(0, 0)
	require.NoError(t, err)
	for name, s := range map[string]rowStore{
		"no row":       {err: NotFound("reply", "")},
		"too short":    {row: Reply{Content: upTo(t, log, 5)}},
		"other bytes":  {row: Reply{Content: foreign}},
		"makes no log": {row: Reply{Content: []Piece{{Block: 3}}}},
	} {
		r := &run{Service: &Service{store: s}, log: cutLog{log: log, first: 6}}
		pieces, n, err := r.whole(t.Context())
		require.ErrorIs(t, err, errHole, name)
		kept, err := LogOf(pieces)
		require.NoError(t, err, name)
		require.Equal(t, kept.Len(), n, "%s: what is left has no gap", name)
	}
}

func TestAStoreThatCannotBeAskedMakesNoHole(t *testing.T) {
	away := Unavailable(errors.New("away"))
	r := &run{Service: &Service{store: rowStore{err: away}}, log: cutLog{log: wholeLog(t), first: 6}}
	_, _, err := r.whole(t.Context())
	require.ErrorIs(t, err, ErrStoreUnavailable)
	require.NotErrorIs(t, err, errHole)
}

func TestAStoredLogThatLostItsEndIsStoredAgainWhereMemoryHasIt(t *testing.T) {
	for length, lost := range map[uint32]bool{3: true, 5: true, 6: false, 11: false} {
		var cause error
		fence := Fence{Epoch: 1, Owner: WorkerID{newID()}}
		row := Reply{Status: StatusInFlight, Epoch: 1, Owner: fence.Owner, Length: length}
		r := &run{Service: &Service{store: rowStore{row: row}}, log: cutLog{log: wholeLog(t), first: 6}, fence: fence, stored: 12,
			cancel: func(err error) { cause = err }}
		r.refused(t.Context())
		require.Equal(t, length, r.stored)
		require.Equal(t, lost, r.over, "with %d stored no checkpoint may go on behind a hole", length)
		require.Equal(t, lost, errors.Is(cause, errHole))
	}
}
