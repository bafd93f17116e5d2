package turns

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// memLog is a LiveLog in memory.
type memLog struct {
	LiveLog
	log *Log
}

func (l memLog) Append(p Piece) error { return l.log.Append(p) }
func (l memLog) Len() uint32          { return l.log.Len() }

// repeating is a log of which some is stored, and the wrapper that repeats it.
func repeating(t *testing.T, stored []Piece) (*Log, *repeatLog) {
	t.Helper()
	log, err := LogOf(stored)
	require.NoError(t, err)
	l := newRepeatLog(memLog{log: log}, stored)
	l.begin()
	return log, l
}

func TestAnAnswerThatComesAgainIsWrittenOnceHoweverItIsCut(t *testing.T) {
	answer := wholeLog(t)
	want, length, err := answer.From(0, 0)
	require.NoError(t, err)
	var steps []Piece
	for _, p := range want {
		steps = append(steps, stepsOf(p)...)
	}
	for stored := uint32(0); stored <= length; stored++ {
		if stored == 8 || stored == 10 { // inside a rune
			continue
		}
		for name, pieces := range map[string][]Piece{"in whole blocks": want, "step by step": steps} {
			log, l := repeating(t, upTo(t, answer, stored))
			for _, p := range pieces {
				require.NoError(t, l.Append(p), "%d stored, %s", stored, name)
				require.GreaterOrEqual(t, log.Len(), stored)
			}
			require.False(t, l.behind())
			got, _, err := log.From(0, 0)
			require.NoError(t, err)
			require.Equal(t, want, got, "%d stored, %s", stored, name)
		}
	}
}

func TestAnAnswerThatDiffersFromWhatIsStoredWritesNothing(t *testing.T) {
	stored := []Piece{{Kind: KindText, Starts: true, Text: "ab", Ends: true}, {Block: 1, Kind: KindToolUse, Starts: true, ToolUseID: "t", ToolName: "n", Text: "{"}}
	for name, answer := range map[string][]Piece{
		"other text":         {{Kind: KindText, Starts: true, Text: "ax"}},
		"another kind":       {{Kind: KindRefusal, Starts: true, Text: "ab"}},
		"another type":       {{Kind: KindText, Starts: true, Type: "x", Text: "ab"}},
		"an end too early":   {{Kind: KindText, Starts: true, Text: "a", Ends: true}},
		"more before an end": {{Kind: KindText, Starts: true, Text: "abc"}},
		"another call":       {{Kind: KindText, Starts: true, Text: "ab", Ends: true}, {Block: 1, Kind: KindToolUse, Starts: true, ToolUseID: "u", ToolName: "n", Text: "{"}},
		"a block too few":    {{Kind: KindText, Starts: true, Text: "ab", Ends: true}, {Block: 1, Kind: KindText, Starts: true, Text: "{"}},
	} {
		t.Run(name, func(t *testing.T) {
			log, l := repeating(t, stored)
			before := log.Len()
			var err error
			for _, p := range answer {
				if err = l.Append(p); err != nil {
					break
				}
			}
			require.ErrorIs(t, err, errDiverged)
			require.Equal(t, before, log.Len())
		})
	}
}

func TestAnAnswerThatBreaksOffMayBeginAgainFromItsStart(t *testing.T) {
	stored := []Piece{{Kind: KindText, Starts: true, Text: "abcd"}}
	log, l := repeating(t, stored)
	require.NoError(t, l.Append(Piece{Kind: KindText, Starts: true, Text: "ab"}))
	require.True(t, l.behind(), "an answer that ends here is shorter than what was shown")
	l.begin()
	require.NoError(t, l.Append(Piece{Kind: KindText, Starts: true, Text: "abcdef"}))
	require.False(t, l.behind())
	require.EqualValues(t, 7, log.Len())
}
