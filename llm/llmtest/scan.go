package llmtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
)

// shapes are ways to write an event of text that mean the same, something else, or nothing. %TEXT is what stands between the
// quotes of its text.
var shapes = []struct{ name, old, with string }{
	{"as it is", "", ""},
	{"an escape", "%TEXT", `a\n\"\u00e9\ud83e\udd80\/`},
	{"half a pair", "%TEXT", `\ud83e`},
	{"bytes that are no text", "%TEXT", "\xf0\x9f"},
	{"an escape that is none", "%TEXT", `\x`},
	{"half an escape", "%TEXT", `\u12`},
	{"a control character", "%TEXT", "\t"},
	{"no text", `"%TEXT"`, "null"},
	{"a number", `"%TEXT"`, "7"},
	{"a list", `"%TEXT"`, `["a",{"b":[]}]`},
	{"white space", ":", " :\t\r\n "},
	{"a comma too many", "}", ",}"},
	{"a key of another case", `"index"`, `"Index"`},
	{"a key with an escape", `"index"`, `"\u0069ndex"`},
	{"a key of letters that fold", `"index"`, `"Index","ſ"`},
	{"a field twice", `"index":0`, `"index":0,"index":1`},
	{"a fraction", `"index":0`, `"index":0.0`},
	{"a power", `"index":0`, `"index":1e1`},
	{"a nought before", `"index":0`, `"index":01`},
	{"less than nothing", `"index":0`, `"index":-0`},
	{"a number too large", `"index":0`, `"index":123456789012345678901234567890`},
	{"no number", `"index":0`, `"index":null`},
	{"more fields", `{`, `{"more":{"a":[1,-2.5e-3,true,false,null,"x\u0000"]},`},
	{"a field of nothing", `{`, `{"more":,`},
	{"an error", `{`, `{"error":{"message":"x"},`},
	{"no error", `{`, `{"error":null,"usage":null,`},
	{"a deep field", `{`, `{"more":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `,`},
}

// Scanned checks that a scan of events that is there for speed takes those of text, and that it reads whatever it takes as the
// parse does in whose place it is. Its corpus are the wire's own events, all the package's recorded ones, and odd forms of them.
func Scanned[E any](f *testing.F, wire llm.Wire, scan func([]byte) (E, bool), parse func([]byte) (E, error), opts ...cmp.Option) {
	text := dataOf(Voices[wire].Text("%TEXT"))[0]
	_, ok := scan([]byte(text))
	require.True(f, ok, "%s is left to the parse", text)
	for _, s := range shapes {
		f.Add([]byte(strings.ReplaceAll(text, s.old, s.with)))
		f.Add([]byte(strings.Replace(text, s.old, s.with, 1)))
	}
	f.Add([]byte(text + "x"))
	f.Add([]byte(text[:len(text)-1]))
	recorded, err := filepath.Glob("testdata/*.sse")
	require.NoError(f, err)
	for _, file := range recorded {
		stream, err := os.ReadFile(file)
		require.NoError(f, err)
		for _, data := range dataOf(string(stream)) {
			f.Add([]byte(data))
		}
	}
	for _, data := range dataOf(Voices[wire].Whole("a") + Voices[wire].Calls) {
		f.Add([]byte(data))
	}
	opts = append(opts, cmpopts.EquateEmpty())
	f.Fuzz(func(t *testing.T, data []byte) {
		fast, ok := scan(data)
		if !ok {
			return
		}
		slow, err := parse(data)
		require.NoError(t, err, "%q is taken, and can't be parsed", data)
		require.Empty(t, cmp.Diff(slow, fast, opts...), "%q", data)
	})
}

// dataOf is the data of a stream's events.
func dataOf(stream string) (all []string) {
	for line := range strings.Lines(strings.ReplaceAll(stream, "\r", "\n")) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			all = append(all, strings.TrimRight(data, "\n"))
		}
	}
	return all
}
