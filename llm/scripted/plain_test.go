package scripted

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlainTextIsFramedAsAnyOtherIs(t *testing.T) {
	for _, end := range []LineEnd{LineEndLF, LineEndCRLF, LineEndCR} {
		for _, text := range []string{"", "sixteen bytes ok", "<b>&amp;</b>", "a\u007fb", "quo\"te", "back\\slash", "new\nline", "größer", "\u2028", "\xff", "~ {}[]/"} {
			v := anthropicVoice{reply: reply{lines: newLines(end)}}
			v.piece(piece{kind: pieceOpen, index: 12})
			p := piece{kind: pieceText, index: 12, text: text}
			want := v.delta(p, anthropicDelta{Type: "text_delta", Text: &p.text})
			require.Equal(t, string(want), string(v.piece(p)), "%q", text)
			if isPlain(text) {
				require.Equal(t, string(want), string(v.plainText(p)), "%q", text)
			}
		}
	}
}
