package turns_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
)

// drawLog draws a log by what may be appended to one: blocks of text with runes of every width, tool calls, empty ones.
func drawLog(t *rapid.T) *turns.Log {
	log := new(turns.Log)
	blocks := rapid.IntRange(0, 5).Draw(t, "blocks")
	for i := range blocks {
		kind := rapid.SampledFrom([]turns.BlockKind{turns.KindText, turns.KindThinking, turns.KindToolUse, turns.KindRefusal, turns.KindOpaque}).Draw(t, "kind")
		first := turns.Piece{Block: uint32(i), Kind: kind, Starts: true}
		last := turns.Piece{Block: uint32(i), Kind: kind, Ends: true}
		switch kind {
		case turns.KindToolUse:
			first.ToolUseID, first.ToolName = "call", "lookup"
		case turns.KindThinking:
			first.Redacted = rapid.Bool().Draw(t, "redacted")
			last.Seal = rapid.SampledFrom([]string{"", "seal"}).Draw(t, "seal")
		case turns.KindRefusal, turns.KindOpaque:
			first.Type = rapid.SampledFrom([]string{"", "type"}).Draw(t, "type")
			last.Seal = rapid.SampledFrom([]string{"", "seal"}).Draw(t, "seal")
		}
		must(t, log.Append(first))
		for range rapid.IntRange(0, 4).Draw(t, "writes") {
			text := rapid.SampledFrom([]string{"a", "é", "你好", "🦀", "👩‍👩‍👧", "plain words ", "\n"}).Draw(t, "text")
			must(t, log.Append(turns.Piece{Block: uint32(i), Kind: kind, Text: text}))
		}
		if i < blocks-1 || rapid.Bool().Draw(t, "ended") {
			must(t, log.Append(last))
		}
	}
	return log
}

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

func TestALogReadInAnyStepsFromAnyOffsetIsTheSameLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		whole, end, err := log.From(0, 0)
		require.NoError(t, err)
		require.Equal(t, log.Len(), end)
		copied := new(turns.Log)
		for offset := uint32(0); offset < log.Len(); {
			pieces, next, err := log.From(offset, rapid.IntRange(1, 9).Draw(t, "step"))
			require.NoError(t, err)
			require.Greater(t, next, offset, "a read that is not at the end must move on")
			for _, p := range pieces {
				require.True(t, utf8.ValidString(p.Text))
				must(t, copied.Append(p))
			}
			offset = next
		}
		again, _, err := copied.From(0, 0)
		require.NoError(t, err)
		require.Equal(t, whole, again)
	})
}

func TestStoredPiecesRebuildTheLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		pieces, _, err := log.From(0, 0)
		require.NoError(t, err)
		data, err := turns.EncodePieces(pieces)
		require.NoError(t, err)
		decoded, err := turns.DecodePieces(data)
		require.NoError(t, err)
		rebuilt, err := turns.LogOf(decoded)
		require.NoError(t, err)
		require.Equal(t, log.Len(), rebuilt.Len())
		again, _, err := rebuilt.From(0, 0)
		require.NoError(t, err)
		require.Equal(t, pieces, again)
	})
}

func TestEveryOffsetIsARuneBoundaryOrRefused(t *testing.T) {
	log := new(turns.Log)
	must(t, log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: "é🦀", Ends: true}))
	require.Equal(t, uint32(8), log.Len())
	good := map[uint32]bool{0: true, 1: true, 3: true, 7: true, 8: true}
	for offset := uint32(0); offset <= 10; offset++ {
		_, _, err := log.From(offset, 0)
		if good[offset] {
			require.NoError(t, err, "offset %d", offset)
		} else {
			require.ErrorIs(t, err, turns.ErrBadOffset, "offset %d", offset)
		}
	}
}

func TestALogTakesOnlyWhatContinuesIt(t *testing.T) {
	log := new(turns.Log)
	require.Error(t, log.Append(turns.Piece{Text: "no block is open"}))
	must(t, log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: "a"}))
	require.Error(t, log.Append(turns.Piece{Block: 1, Kind: turns.KindText, Starts: true}), "another block while one is open")
	require.Error(t, log.Append(turns.Piece{Block: 1, Text: "b"}), "a block that did not start")
	require.Error(t, log.Append(turns.Piece{Text: "\xe4\xbd"}), "half a rune")
	must(t, log.Append(turns.Piece{Ends: true}))
	require.Error(t, log.Append(turns.Piece{Text: "b"}), "more of a block that ended")
	require.Error(t, log.Append(turns.Piece{Block: 3, Starts: true}), "a block out of order")
	require.Equal(t, uint32(3), log.Len(), "what was refused changes nothing")
}

func TestContentIsCutAtItsLimitAndSaysSo(t *testing.T) {
	log := new(turns.Log)
	must(t, log.Append(turns.Piece{Kind: turns.KindText, Starts: true, Text: strings.Repeat("你", 100), Ends: true}))
	blocks, cut := log.Blocks(31)
	require.True(t, cut)
	require.True(t, utf8.ValidString(turns.PlainText(blocks)))
	require.InDelta(t, 31, len(turns.PlainText(blocks)), 3)
	blocks, cut = log.Blocks(0)
	require.False(t, cut)
	require.Equal(t, strings.Repeat("你", 100), turns.PlainText(blocks))
}

func TestASealStandsWithTheEndOfItsBlockAndTakesNoRoom(t *testing.T) {
	log := new(turns.Log)
	must(t, log.Append(turns.Piece{Kind: turns.KindThinking, Starts: true, Text: "hm", Seal: "too early"}))
	must(t, log.Append(turns.Piece{Kind: turns.KindThinking, Ends: true, Seal: "s1"}))
	must(t, log.Append(turns.Piece{Block: 1, Kind: turns.KindThinking, Starts: true, Redacted: true, Ends: true, Seal: "s2"}))
	must(t, log.Append(turns.Piece{Block: 2, Kind: turns.KindToolUse, Starts: true, ToolUseID: "t", ToolName: "f", Text: "{}", Ends: true, Seal: "s3"}))
	require.Equal(t, uint32(10), log.Len())
	for offset := range log.Len() {
		pieces, _, err := log.From(offset, 1)
		require.NoError(t, err)
		for _, p := range pieces {
			require.Equal(t, p.Ends, p.Seal != "", "offset %d", offset)
		}
	}
	blocks, _ := log.Blocks(0)
	require.Equal(t, []turns.Block{turns.Thinking{Text: "hm", Seal: "s1"}, turns.Thinking{Redacted: true, Seal: "s2"},
		turns.ToolUse{ID: "t", Name: "f", InputJSON: "{}", Seal: "s3"}}, blocks)
	open, _ := log.Blocks(1)
	require.Equal(t, []turns.Block{turns.Thinking{Text: "h"}}, open, "a block that is cut has no seal: the seal is of all of it")
}

func TestALogWithoutItsBeginningIsTheSameLogFromThereOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := drawLog(t)
		pieces, _, err := whole.From(0, 0)
		require.NoError(t, err)
		kept := new(turns.Log)
		for _, p := range pieces {
			must(t, kept.Append(p))
			before, asked := kept.First(), uint32(rapid.IntRange(0, int(whole.Len())).Draw(t, "drop"))
			kept.DropBefore(asked)
			require.GreaterOrEqual(t, kept.First(), before)
			if asked = min(asked, kept.Len()); asked > before {
				require.LessOrEqual(t, kept.First(), asked)
				require.Less(t, asked-kept.First(), uint32(utf8.UTFMax), "no more is kept than the asked rune")
			}
		}
		require.Equal(t, whole.Len(), kept.Len())
		require.Equal(t, whole.HasContent(), kept.HasContent())
		_, _, err = kept.From(kept.First(), 0)
		require.NoError(t, err, "what is kept begins with a rune")
		for offset := range whole.Len() + 1 {
			want, next, err := whole.From(offset, 0)
			got, gotNext, gotErr := kept.From(offset, 0)
			if offset < kept.First() {
				require.ErrorIs(t, gotErr, turns.ErrDropped)
				continue
			}
			require.Equal(t, err, gotErr, "offset %d", offset)
			require.Equal(t, want, got, "offset %d", offset)
			require.Equal(t, next, gotNext)
		}
	})
}

func TestAPieceSplitsAtEveryRuneIntoTwoThatMakeIt(t *testing.T) {
	for _, p := range []turns.Piece{
		{Kind: turns.KindText, Starts: true, Text: "é🦀", Ends: true},
		{Block: 2, Kind: turns.KindToolUse, Starts: true, ToolUseID: "call", ToolName: "lookup"},
		{Kind: turns.KindThinking, Text: "hm", Ends: true, Seal: "seal"},
	} {
		for at := uint32(0); at <= p.Len()+1; at++ {
			head, tail, err := p.Split(at)
			if err != nil {
				require.ErrorIs(t, err, turns.ErrBadOffset)
				continue
			}
			require.Equal(t, min(at, p.Len()), head.Len())
			require.Equal(t, p.Len(), head.Len()+tail.Len())
			switch {
			case at == 0:
				require.Equal(t, p, tail)
			case at >= p.Len():
				require.Equal(t, p, head)
			default:
				require.Equal(t, p.Starts, head.Starts)
				require.Equal(t, p.Ends, tail.Ends)
				require.Equal(t, p.Text, head.Text+tail.Text)
				require.Equal(t, []string{p.ToolUseID, "", p.Seal}, []string{head.ToolUseID, head.Seal, tail.Seal})
			}
		}
	}
	_, _, err := turns.Piece{Text: "é"}.Split(1)
	require.ErrorIs(t, err, turns.ErrBadOffset)
}
