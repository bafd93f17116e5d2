package turns

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asEncodingJSON asserts that what is read in place is read as encoding/json reads it, and says what was.
func asEncodingJSON(t *testing.T, text []byte) (pieces, texts bool) {
	t.Helper()
	c := compact{text}
	got, pieces := c.pieces()
	if pieces {
		var want []Piece
		require.NoError(t, json.Unmarshal(text, &want))
		require.Equal(t, want, got)
	}
	c = compact{text}
	content, texts := c.texts()
	if texts {
		var stored []storedBlock
		require.NoError(t, json.Unmarshal(text, &stored))
		want, err := fromStored(stored)
		require.NoError(t, err)
		require.Equal(t, want, content)
	}
	return pieces, texts
}

// What is stored most is read in place, and so is what it is escaped by.
func TestPiecesAndTextsAreReadInPlace(t *testing.T) {
	spoken := "one\ttwo \"three\" <four> & \\five\\ \u2028 \x00\x1f \b\f\r\n zwölf 世界 🙂"
	text, err := EncodePieces([]Piece{
		{Block: 0, Kind: KindThinking, Starts: true, Redacted: true, Text: spoken, Ends: true, Seal: "seal=="},
		{Block: 1, Kind: KindToolUse, Starts: true, ToolUseID: "call_1", ToolName: "look", Text: `{"a":1}`, Ends: true},
		{Block: 2, Kind: KindRefusal, Starts: true, Type: "cyber"},
		{Block: 2, Kind: KindRefusal, Text: spoken},
		{Block: 123456789, Kind: KindText, Ends: true},
	})
	require.NoError(t, err)
	pieces, _ := asEncodingJSON(t, text)
	require.True(t, pieces)

	text, err = EncodeContent([]Block{Text{Text: spoken}, Text{}, Text{Text: strings.Repeat("long ", 1000)}})
	require.NoError(t, err)
	_, texts := asEncodingJSON(t, text)
	require.True(t, texts)
}

func FuzzCompact(f *testing.F) {
	for _, text := range []string{
		`[{"b":0,"k":"text","s":true,"t":"a\u003cb\n","e":true}]`, `[{"kind":"text","text":"hi"}]`, `[{"kind":"text"},{"kind":"text","text":"\ud83d\ude42"}]`,
		`[]`, `[{"b":01,"k":"text"}]`, `[{"b":4294967296,"k":"text"}]`, "[{\"b\":0,\"k\":\"\xff\"}]", "[{\"b\":0,\"k\":\"\n\"}]", `[{"b":0,"k":"\ud800"}]`,
		`[{"b":0,"k":"\x"}]`, `[{"b":0,"k":"\u12`, `[{"b":0,"k":"a"}] `, `[{"b":0,"k":"a"},]`, `[{"b":0,"k":"a","e":true,"s":true}]`, `[{"b":-1,"k":"a"}]`,
		`[{"kind":"text","text":"a","text":"b"}]`, `[{"kind":"image","url":"u"}]`, `[{"b":0,"k":"a"}`, `[{"b":0,"k":"a\`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { asEncodingJSON(t, text) })
}

func TestUnsetOptionsAreReadAsSuch(t *testing.T) {
	text, err := EncodeOptions(Options{})
	require.NoError(t, err)
	var want Options
	require.NoError(t, json.Unmarshal(text, &want))
	got, err := DecodeOptions(text)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
