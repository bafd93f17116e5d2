package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// pngs takes images of one type, at most three a request and 16 KiB in all.
var pngs = wire.Takes{Media: wire.Media{Images: []string{"image/png"}, MaxImage: 8 << 10, MaxPieces: 3, MaxBody: 16 << 10}}

func png(size int) turns.Block {
	return turns.Image{MediaType: "image/png", Data: []byte(strings.Repeat("x", size))}
}

// shape is a history as words: i for an image, - for one that was left out.
func shape(h wire.History) (out string) {
	var add func([]turns.Block)
	add = func(content []turns.Block) {
		for _, b := range content {
			switch b := b.(type) {
			case turns.Image:
				out += "i"
			case turns.ToolResult:
				add(b.Content)
			case turns.Text:
				if strings.HasPrefix(b.Text, "[image left out: ") {
					out += "-"
				}
			}
		}
	}
	for _, m := range h.Messages {
		add(m.Content)
	}
	return out
}

func TestOldImagesGiveWayToTextAndToNewerOnes(t *testing.T) {
	text := words(strings.Repeat("x", 7<<10))
	for name, tt := range map[string]struct {
		in   []turns.Message
		want string
	}{
		"all fit":            {[]turns.Message{user(png(9)), assistant(words("a")), user(png(9), png(9))}, "iii"},
		"too many":           {[]turns.Message{user(png(9), png(9)), assistant(words("a")), user(png(9), png(9))}, "-iii"},
		"too large together": {[]turns.Message{user(png(3000)), assistant(words("a")), user(png(3000)), assistant(words("a")), user(png(3000))}, "-ii"},
		"text goes first":    {[]turns.Message{user(png(3000)), assistant(text), user(png(3000))}, "-i"},
		"none older than one that has no room": {[]turns.Message{user(png(9)), assistant(words("a")), user(png(6000)),
			assistant(words("a")), user(png(6000))}, "--i"},
		"in results too": {[]turns.Message{user(words("a")), assistant(use("1")), user(result("1", png(9), png(9))), assistant(words("a")),
			user(png(9), png(9))}, "-iii"},
	} {
		h, err := wire.HistoryOf(turns.Prompt{Messages: tt.in}, pngs)
		require.NoError(t, err, name)
		require.Equal(t, tt.want, shape(h), name)
		require.Equal(t, strings.Count(tt.want, "-"), h.Healed[turns.HealedMedia], name)
	}
}

func TestWhatTheNewestTurnCarriesAndTheEndpointDoesNotTakeIsRefusedByField(t *testing.T) {
	for name, tt := range map[string]struct {
		content []turns.Block
		field   string
		says    string
	}{
		"another type":    {[]turns.Block{words("a"), turns.Image{MediaType: "image/gif", Data: []byte("GIF89a")}}, "input.content[1].image", "image/png alone"},
		"too large":       {[]turns.Block{png(8 << 10)}, "input.content[0].image", "send a smaller one"},
		"a URL":           {[]turns.Block{turns.Image{MediaType: "image/png", URL: "https://example.com"}}, "input.content[0].image", "send the bytes"},
		"a PDF":           {[]turns.Block{turns.Document{MediaType: "application/pdf", Data: []byte("%PDF-")}}, "input.content[0].document", "send its text"},
		"too many":        {[]turns.Block{png(1), png(1), png(1), png(1)}, "input.content[0].image", "send fewer"},
		"too much":        {[]turns.Block{png(6000), png(6000)}, "input.content[0].image", "send less"},
		"inside a result": {[]turns.Block{result("1", words("a"), turns.Image{MediaType: "image/gif"})}, "input.content[0].content[1].image", "image/png"},
	} {
		in := []turns.Message{user(words("a")), assistant(use("1")), user(tt.content...)}
		_, err := wire.HistoryOf(turns.Prompt{Messages: in}, pngs)
		var refused *turns.Error
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, turns.CodeInvalidField, refused.Code, name)
		require.Equal(t, tt.field, refused.Field, name)
		require.Contains(t, refused.Problem, tt.says, name)
	}
	_, err := wire.HistoryOf(turns.Prompt{Messages: []turns.Message{user(png(1))}}, wire.Takes{})
	require.ErrorContains(t, err, "takes no images")
}

func TestADocumentOfTextGoesOutAsTextWhereThereIsNoOtherForm(t *testing.T) {
	doc := turns.Document{MediaType: "text/csv", Title: "a\x00b", Data: []byte("1,\x002")}
	h, err := wire.HistoryOf(turns.Prompt{Messages: []turns.Message{user(doc, words("sum?"))}}, wire.Takes{})
	require.NoError(t, err)
	require.Equal(t, []turns.Message{user(words("Document \"ab\":\n\n1,2"), words("sum?"))}, h.Messages)
	require.Empty(t, h.Healed)
}

func TestARequestThatIsLargerThanItsEndpointTakesIsRefusedBeforeAnyCall(t *testing.T) {
	_, err := wire.Built(turns.Route{}, strings.Repeat("x", 100), 1, 50, wire.History{})
	require.Equal(t, turns.CodePromptTooLarge, turns.CodeOf(err))
	request, err := wire.Built(turns.Route{}, "x", 7, 50, wire.History{Healed: turns.Healed{turns.HealedBlank: 1}})
	require.NoError(t, err)
	require.Equal(t, 7, request.BuilderVersion)
	require.Equal(t, turns.Healed{turns.HealedBlank: 1}, request.Healed)
}

func TestWhatIsHealedIsCountedByItsKind(t *testing.T) {
	bad := turns.ToolUse{ID: "not/taken", Name: "a b", InputJSON: `{"cut`}
	in := []turns.Message{
		user(words("a\x00"), words(" ")), user(words("b")),
		assistant(turns.Thinking{Text: "hm", Seal: "other"}, turns.Opaque{Seal: "other"}, bad, bad, use("2")),
		user(result("not/taken", words("1")), result("nobody's")),
		assistant(words(" \n")),
		user(turns.Image{MediaType: "image/tiff"}, words("now")), user(words("x")),
	}
	h, err := wire.HistoryOf(turns.Prompt{Messages: in}, wire.Takes{})
	require.NoError(t, err)
	require.Equal(t, turns.Healed{
		turns.HealedText: 1, turns.HealedBlank: 2, turns.HealedRoles: 3, turns.HealedReasoning: 1, turns.HealedOpaque: 1, turns.HealedInput: 2,
		turns.HealedName: 2, turns.HealedDuplicate: 1, turns.HealedID: 1, turns.HealedUnanswered: 1, turns.HealedOrphan: 1, turns.HealedEmpty: 1,
		turns.HealedMedia: 1,
	}, h.Healed)
	for kind := range h.Healed {
		require.Contains(t, turns.Healings(), kind)
	}
	require.Len(t, h.Healed, len(turns.Healings())-1, "a row that does not decode is left out before")
}
