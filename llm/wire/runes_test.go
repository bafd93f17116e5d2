package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/wire"
)

func text(t testing.TB, literal string) wire.Text {
	t.Helper()
	var v struct{ Text wire.Text }
	require.NoError(t, json.Unmarshal([]byte(`{"Text":"`+literal+`"}`), &v))
	return v.Text
}

// joined runs deltas through one block and checks each on its way.
func joined(t testing.TB, deltas ...wire.Text) string {
	t.Helper()
	var r wire.Runes
	var sb strings.Builder
	add := func(s string) {
		require.True(t, utf8.ValidString(s), "%q", s)
		require.NotContains(t, s, "\x00")
		sb.WriteString(s)
	}
	for _, d := range deltas {
		add(string(r.Add(nil, d)))
	}
	add(string(r.End(nil)))
	require.Empty(t, r.End(nil), "a block ends once")
	return sb.String()
}

func TestTextOfDeltasIsJoinedIntoWholeRunes(t *testing.T) {
	for _, tt := range []struct {
		name   string
		deltas []string // as they stand between the quotes of JSON
		want   string
	}{
		{"plain", []string{"naïve 你好", "🦀"}, "naïve 你好🦀"},
		{"escapes", []string{`\"\\\/\b\f\n\r\t\u00e9`}, "\"\\/\b\f\n\r\té"},
		{"a pair in one delta", []string{`\ud83e\udd80`}, "🦀"},
		{"a pair over two", []string{`a\ud83e`, `\udd80b`}, "a🦀b"},
		{"a pair over three", []string{`\uD83E`, ``, `\uDD80`}, "🦀"},
		{"high at the end", []string{`a\ud83e`}, "a\uFFFD"},
		{"high and then text", []string{`\ud83e`, `x`}, "\uFFFDx"},
		{"high and then high and low", []string{`\ud83e\ud83e`, `\udd80`}, "\uFFFD🦀"},
		{"low alone", []string{`a\udd80b`}, "a\uFFFDb"},
		{"NUL", []string{`a\u0000b`, `\u0000`, `c`}, "abc"},
		{"NUL within a pair", []string{`\ud83e\u0000`, `\u0000\udd80`}, "🦀"},
		{"raw bytes over two", []string{"a\xf0\x9f", "\xa6\x80b"}, "a🦀b"},
		{"raw bytes over four", []string{"\xf0", "\x9f", "\xa6", "\x80"}, "🦀"},
		{"half a rune at the end", []string{"a\xf0\x9f\xa6"}, "a\uFFFD"},
		{"half a rune and then text", []string{"\xe4\xbd", "x"}, "\uFFFDx"},
		{"bytes that are no text", []string{"a\xff\xfeb"}, "a\uFFFD\uFFFDb"},
		{"surrogates as raw bytes", []string{"\xed\xa0", "\xbe\xed", "\xb6\x80"}, "🦀"},
		{"half a raw surrogate", []string{"\xed", "x\xed\x9f\xbf"}, "\uFFFDx\ud7ff"},
		{"noncharacters pass", []string{`\uffff\ufffd`}, "\uffff\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var deltas []wire.Text
			var all wire.Text
			for _, d := range tt.deltas {
				deltas = append(deltas, text(t, d))
				all = append(all, text(t, d)...)
			}
			require.Equal(t, tt.want, joined(t, deltas...))
			require.Equal(t, tt.want, joined(t, all), "in one delta")
		})
	}
}

func TestABrokenStringIsNoText(t *testing.T) {
	for _, literal := range []string{`7`, `{}`, `true`, `"\`, `"\q"`, `"\u12"`, `"\u12g4"`, `"`, ``} {
		var got wire.Text
		require.Error(t, got.UnmarshalJSON([]byte(literal)), literal)
	}
	got := wire.Text("old")
	require.NoError(t, got.UnmarshalJSON([]byte("null")))
	require.Empty(t, got)
}

func FuzzTextDoesNotDependOnWhereDeltasAreCut(f *testing.F) {
	f.Add([]byte("na\xc3\xafve \xf0\x9f\xa6\x80"), uint8(3))
	f.Add([]byte("\xed\xa0\xbe\x00\xed\xb6\x80"), uint8(1))
	f.Add([]byte("\xed\xa0\xed\xa0\xbe\xe4\xbd"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		size := int(n%7) + 1
		var deltas []wire.Text
		for rest := b; len(rest) > 0; {
			k := min(size, len(rest))
			deltas = append(deltas, wire.Text(rest[:k]))
			rest = rest[k:]
		}
		require.Equal(t, joined(t, wire.Text(b)), joined(t, deltas...))
		if utf8.Valid(b) {
			require.Equal(t, strings.ReplaceAll(string(b), "\x00", ""), joined(t, deltas...))
		}
	})
}

func FuzzTextAgreesWithTheStandardDecoder(f *testing.F) {
	f.Add(`"a\ud83e\udd80\n"`)
	f.Add(`"\ud83e\ud83e\udd80\udd80"`)
	f.Fuzz(func(t *testing.T, literal string) {
		var std string
		if !utf8.ValidString(literal) || !strings.HasPrefix(literal, `"`) || json.Unmarshal([]byte(literal), &std) != nil {
			return // not a JSON string
		}
		if strings.Contains(std, "\x00") {
			return // the halves of a pair around a NUL are joined here alone
		}
		var own wire.Text
		require.NoError(t, json.Unmarshal([]byte(literal), &own))
		require.Equal(t, std, joined(t, own))
	})
}
