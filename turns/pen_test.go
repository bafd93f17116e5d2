package turns

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// plainLog is a LiveLog without followers.
type plainLog struct {
	LiveLog
	Log
}

func (l *plainLog) Append(p Piece) error { return l.Log.Append(p) }

func (l *plainLog) Len() uint32 { return l.Log.Len() }

func (l *plainLog) First() uint32 { return l.Log.First() }

func (l *plainLog) HasContent() bool { return l.Log.HasContent() }

func newPen(max int) (*pen, *plainLog) {
	log := new(plainLog)
	return &pen{log: log, max: max}, log
}

func TestABlockThatSaysNothingLeavesNoTrace(t *testing.T) {
	p, log := newPen(100)
	require.NoError(t, p.start(BlockStarted{Kind: KindText}))
	require.Zero(t, log.Len(), "a start is held back until the first byte, so that another call may follow on the reply")
	require.NoError(t, p.write(""))
	require.NoError(t, p.end())
	require.Zero(t, log.Len())
	require.NoError(t, p.start(BlockStarted{Kind: KindText}))
	require.NoError(t, p.write("hi"))
	require.NoError(t, p.end())
	require.Equal(t, uint32(4), log.Len())
	require.NoError(t, p.start(BlockStarted{Kind: KindToolUse, ToolUseID: "a", ToolName: "f"}))
	require.NoError(t, p.end())
	require.Equal(t, uint32(6), log.Len(), "a tool call without input is content")
}

func TestABlockLeftOpenIsEndedByTheNext(t *testing.T) {
	p, log := newPen(100)
	require.NoError(t, p.write("a delta without a block is dropped"))
	require.NoError(t, p.start(BlockStarted{Kind: KindText}))
	require.NoError(t, p.write("one"))
	require.NoError(t, p.start(BlockStarted{Kind: KindText}))
	require.NoError(t, p.write("two"))
	require.NoError(t, p.end())
	require.Equal(t, uint32(10), log.Len())
}

func TestALogStopsAtItsLimitBetweenRunes(t *testing.T) {
	for limit := 1; limit < 40; limit++ {
		p, log := newPen(limit)
		require.NoError(t, p.start(BlockStarted{Kind: KindText}))
		require.NoError(t, p.write(strings.Repeat("你", 20)))
		require.True(t, p.full)
		blocks, _ := log.Blocks(0)
		require.True(t, utf8.ValidString(PlainText(blocks)))
		require.LessOrEqual(t, len(PlainText(blocks)), limit)
		require.NoError(t, p.write("more"), "what comes after is dropped")
	}
}

func TestALogIsNeverLongerThanItsLimit(t *testing.T) {
	for limit := 1; limit < 40; limit++ {
		p, log := newPen(limit)
		var err error
		for _, d := range []Delta{
			BlockStarted{Kind: KindText}, BlockDelta{Text: "one"}, BlockEnded{},
			BlockStarted{Kind: KindToolUse, ToolUseID: "a", ToolName: "f"}, BlockEnded{},
			BlockStarted{Kind: KindText}, BlockDelta{Text: strings.Repeat("two", 20)},
		} {
			if err = p.put(d); err != nil {
				break
			}
		}
		require.ErrorIs(t, err, errFull)
		require.NoError(t, p.end())
		require.LessOrEqual(t, log.Len(), uint32(limit))
		if limit >= 10 {
			require.Equal(t, uint32(limit), log.Len(), "and takes all of it")
		}
	}
}

func TestASealIsWrittenWithTheEndOfItsBlockEvenIfNothingElseIs(t *testing.T) {
	p, log := newPen(100)
	p.keep("of no block")
	require.NoError(t, p.start(BlockStarted{Kind: KindThinking}))
	require.NoError(t, p.write("hm"))
	p.keep("s1")
	require.NoError(t, p.start(BlockStarted{Kind: KindThinking, Redacted: true}))
	p.keep("s2")
	require.NoError(t, p.end())
	require.NoError(t, p.start(BlockStarted{Kind: KindThinking}))
	require.NoError(t, p.end())
	blocks, _ := log.Blocks(0)
	require.Equal(t, []Block{Thinking{Text: "hm", Seal: "s1"}, Thinking{Redacted: true, Seal: "s2"}}, blocks)
	require.Equal(t, uint32(6), log.Len())
}

func TestABlockWithoutTextIsKeptIfItsVendorHasAWordForIt(t *testing.T) {
	p, log := newPen(100)
	require.NoError(t, p.start(BlockStarted{Kind: KindOpaque, Type: "search"}))
	p.keep("{}")
	require.NoError(t, p.end())
	require.NoError(t, p.start(BlockStarted{Kind: KindRefusal, Type: "cyber"}))
	require.NoError(t, p.end())
	require.NoError(t, p.start(BlockStarted{Kind: KindRefusal}))
	require.NoError(t, p.end())
	blocks, _ := log.Blocks(0)
	require.Equal(t, []Block{Opaque{Type: "search", Seal: "{}"}, Refusal{Category: "cyber"}}, blocks)
}

func TestSealsAreBoundedLikeTheLog(t *testing.T) {
	p, log := newPen(100)
	for range 10 {
		require.NoError(t, p.start(BlockStarted{Kind: KindThinking}))
		require.NoError(t, p.write("hm"))
		p.keep(strings.Repeat("s", 40))
		require.NoError(t, p.end())
	}
	blocks, _ := log.Blocks(0)
	require.Len(t, blocks, 10)
	size := 0
	for _, b := range blocks {
		size += len(b.(Thinking).Seal)
	}
	require.Equal(t, 80, size)
}
