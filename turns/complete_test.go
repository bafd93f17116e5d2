package turns

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// storedLog is a log of three blocks, the last of them open.
func storedLog() []Piece {
	return []Piece{
		{Block: 0, Kind: KindThinking, Starts: true, Text: "hm", Ends: true, Seal: "sealed"},
		{Block: 1, Kind: KindOpaque, Starts: true, Type: "search", Ends: true, Seal: "found"},
		{Block: 2, Kind: KindText, Starts: true, Text: "It is "},
		{Block: 2, Kind: KindText, Text: "ni"},
	}
}

func TestContentThatBeginsWithWhatIsStoredExtendsItAndKeepsItsSeals(t *testing.T) {
	pieces, length, err := extended(storedLog(), []Block{Thinking{Text: "hm"}, Opaque{Type: "search"}, Text{Text: "It is nine."},
		ToolUse{ID: "u", Name: "clock", InputJSON: "{}"}})
	require.NoError(t, err)
	log, err := LogOf(pieces)
	require.NoError(t, err)
	require.Equal(t, length, log.Len())
	blocks, _ := log.Blocks(0)
	require.Equal(t, []Block{Thinking{Text: "hm", Seal: "sealed"}, Opaque{Type: "search", Seal: "found"}, Text{Text: "It is nine."},
		ToolUse{ID: "u", Name: "clock", InputJSON: "{}"}}, blocks)
}

func TestContentThatDiffersFromWhatIsStoredByAByteOrABlockIsRefused(t *testing.T) {
	for name, content := range map[string][]Block{
		"nothing":           nil,
		"a block less":      {Thinking{Text: "hm"}, Opaque{Type: "search"}},
		"shorter":           {Thinking{Text: "hm"}, Opaque{Type: "search"}, Text{Text: "It is n"}},
		"another byte":      {Thinking{Text: "hm"}, Opaque{Type: "search"}, Text{Text: "It is nI"}},
		"longer where over": {Thinking{Text: "hmm"}, Opaque{Type: "search"}, Text{Text: "It is nine."}},
		"another kind":      {Text{Text: "hm"}, Opaque{Type: "search"}, Text{Text: "It is nine."}},
		"redacted":          {Thinking{Text: "hm", Redacted: true}, Opaque{Type: "search"}, Text{Text: "It is nine."}},
		"another type":      {Thinking{Text: "hm"}, Opaque{Type: "code"}, Text{Text: "It is nine."}},
		"a block left out":  {Thinking{Text: "hm"}, Text{Text: "It is nine."}},
	} {
		_, _, err := extended(storedLog(), content)
		require.ErrorIs(t, err, errDiverged, name)
		var told *Error
		require.ErrorAs(t, doesNotExtend(Reply{Status: StatusHeld, Length: 16}, err), &told)
		require.Equal(t, CodeWrongState, told.Code)
		require.Equal(t, "16", told.Meta["stored_length"])
	}
}

func TestABlockThatOnlyAVendorCanWriteOrThatSaysNothingIsNotAdded(t *testing.T) {
	for _, more := range []Block{Text{}, Thinking{}, Refusal{}, Opaque{Type: "search"}} {
		_, _, err := extended(nil, []Block{Text{Text: "x"}, more})
		require.ErrorIs(t, err, errNothingSaid)
	}
}

func TestContentOfAReplyIsCheckedByField(t *testing.T) {
	s := &Service{set: Settings{MaxOutputBytes: 20}}
	for _, c := range []struct {
		content []Block
		field   string
		code    Code
	}{
		{[]Block{Text{Text: strings.Repeat("x", 19)}}, "content", CodeContentTooLarge},
		{[]Block{Text{Text: " \n"}}, "content", CodeContentEmpty},
		{nil, "content", CodeContentEmpty},
		{[]Block{Text{Text: "x"}, Image{URL: "u"}}, "content[1]", CodeInvalidField},
		{[]Block{ToolResult{ToolUseID: "u"}}, "content[0]", CodeInvalidField},
		{[]Block{ToolUse{ID: "u"}}, "content[0].tool_use", CodeInvalidField},
		{[]Block{ToolUse{ID: "u", Name: "n", InputJSON: "{"}}, "content[0].tool_use.input_json", CodeInvalidField},
		{[]Block{Text{Text: "\xff"}}, "content[0].text", CodeInvalidField},
	} {
		_, err := s.checkReplyContent(c.content)
		var told *Error
		require.ErrorAs(t, err, &told)
		require.Equal(t, c.field, told.Field)
		require.Equal(t, c.code, told.Code)
	}
	got, err := s.checkReplyContent([]Block{Text{Text: "a\x00b"}, ToolUse{ID: "u", Name: "n"}})
	require.NoError(t, err)
	require.Equal(t, []Block{Text{Text: "ab"}, ToolUse{ID: "u", Name: "n"}}, got)
}

func TestACompletedReplyStopsAsAModelWouldHave(t *testing.T) {
	require.Equal(t, StopEndTurn, stopReasonOf([]Block{Text{Text: "x"}}))
	require.Equal(t, StopRefusal, stopReasonOf([]Block{Text{Text: "x"}, Refusal{Text: "no"}}))
	require.Equal(t, StopToolUse, stopReasonOf([]Block{Refusal{Text: "no"}, ToolUse{ID: "u", Name: "n"}}))
}

func TestATokenOfAPageLeadsBackToItsPlaceInItsOwnListAlone(t *testing.T) {
	at, id := time.UnixMicro(1_777_000_000_123_456), uuid.New()
	token := placeToken(heldPage, at, id)
	gotAt, gotID, err := parsePlace(heldPage, token)
	require.NoError(t, err)
	require.True(t, at.Equal(gotAt))
	require.Equal(t, id, gotID)
	for _, bad := range []string{placeToken(callPage, at, id), token[1:], token + "AA", "%", "AA"} {
		_, _, err := parsePlace(heldPage, bad)
		var told *Error
		require.True(t, errors.As(err, &told) && told.Field == "page_token", bad)
	}
}

func TestTheIdBeforeAnotherIsTheNextSmaller(t *testing.T) {
	for id, want := range map[string]string{
		"00000000-0000-0000-0000-000000000001": "00000000-0000-0000-0000-000000000000",
		"00000000-0000-0000-0000-000000000100": "00000000-0000-0000-0000-0000000000ff",
		"01000000-0000-0000-0000-000000000000": "00ffffff-ffff-ffff-ffff-ffffffffffff",
	} {
		require.Equal(t, want, before(ReplyID{uuid.MustParse(id)}).String())
	}
}
