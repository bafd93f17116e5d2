package live_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
)

func drawHint(t *rapid.T) (h live.Hint) {
	copy(h.Reply.UUID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	h.Epoch = rapid.Int64Range(0, 1<<62).Draw(t, "epoch")
	h.Length = rapid.Uint32().Draw(t, "length")
	h.Ended, h.Stop = rapid.Bool().Draw(t, "ended"), rapid.Bool().Draw(t, "stop")
	if rapid.Bool().Draw(t, "pieces") {
		h.From = rapid.Uint32().Draw(t, "from")
		h.Pieces = []turns.Piece{whole(rapid.Uint32().Draw(t, "block"), rapid.String().Draw(t, "text"))}
	}
	return h
}

func TestHintsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hints := rapid.SliceOfN(rapid.Custom(drawHint), 1, 20).Draw(t, "hints")
		max := rapid.IntRange(64, 4096).Draw(t, "max")
		messages, err := live.EncodeHints(hints, max)
		require.NoError(t, err)
		var got []live.Hint
		for _, m := range messages {
			require.LessOrEqual(t, len(m), max)
			decoded, err := live.DecodeHints(m)
			require.NoError(t, err)
			got = append(got, decoded...)
		}
		require.Len(t, got, len(hints))
		for i, want := range hints {
			if len(got[i].Pieces) == 0 { // it was too big for a message
				want.From, want.Pieces = 0, nil
			}
			require.Equal(t, want, got[i])
		}
	})
}

func FuzzAMessageThatIsNoneIsRefused(f *testing.F) {
	messages, err := live.EncodeHints([]live.Hint{{Length: 5, Epoch: 1, Pieces: []turns.Piece{whole(0, "word")}}, {Stop: true}}, 1024)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(messages[0])
	f.Add([]byte{})
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, message []byte) {
		hints, err := live.DecodeHints(message)
		if err != nil {
			return
		}
		require.LessOrEqual(t, 19*len(hints), len(message), "no message makes more than it holds")
		for i := range message {
			broken := bytes.Clone(message)
			broken[i] ^= 0x40
			_, err := live.DecodeHints(broken)
			require.Error(t, err, "byte %d", i)
		}
	})
}
