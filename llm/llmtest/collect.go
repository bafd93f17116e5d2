package llmtest

import (
	"errors"
	"iter"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Result is what a call yielded.
type Result struct {
	Deltas []turns.Delta
	// Err is how it failed; nil if it was whole.
	Err *turns.CallError
	// Blocks are all of it, Text the texts of the text blocks joined.
	Blocks []Block
	Text   string
	// Usage is the last that was reported; nil if none was.
	Usage    *turns.Usage
	Finished *turns.Finished
	// ResponseID and Responded are zero if they did not come.
	ResponseID string
	Responded  turns.Responded

	open bool
}

// Block is a block that a call yielded, as far as it came.
type Block struct {
	turns.BlockStarted
	Text string
	Seal string
}

// Collect reads a call to its end and checks what every call promises: blocks open one by one and hold whole runes
// without NUL, a call ends with Finished or with one *turns.CallError, and nothing follows.
func Collect(t testing.TB, seq iter.Seq2[turns.Delta, error]) Result {
	t.Helper()
	var r Result
	for d, err := range seq {
		require.Nil(t, r.Finished, "something follows Finished")
		require.Nil(t, r.Err, "something follows the error")
		if err != nil {
			require.True(t, errors.As(err, &r.Err), "an error of another type: %T", err)
			continue
		}
		r.Deltas = append(r.Deltas, d)
		r.add(t, d)
	}
	require.True(t, r.Err != nil || r.Finished != nil, "the call ended with neither Finished nor an error")
	return r
}

func (r *Result) add(t testing.TB, d turns.Delta) {
	t.Helper()
	switch d := d.(type) {
	case turns.Responded:
		require.Len(t, r.Deltas, 1, "the response is announced first")
		r.Responded = d
	case turns.ResponseStarted:
		r.ResponseID = d.ResponseID
	case turns.BlockStarted:
		require.False(t, r.open, "a block starts in a block")
		r.open = true
		r.Blocks = append(r.Blocks, Block{BlockStarted: d})
	case turns.BlockDelta:
		r.addText(t, d.Text)
	case turns.BlockSealed:
		require.True(t, r.open, "a seal outside of a block")
		require.NotEmpty(t, d.Data)
		r.Blocks[len(r.Blocks)-1].Seal = d.Data
	case turns.BlockEnded:
		require.True(t, r.open, "a block ends twice")
		r.open = false
	case turns.UsageReported:
		r.Usage = &d.Usage
	case turns.Finished:
		require.False(t, r.open, "the reply is whole and a block still open")
		r.Finished = &d
	}
}

func (r *Result) addText(t testing.TB, text string) {
	t.Helper()
	require.True(t, r.open, "text outside of a block")
	require.NotEmpty(t, text)
	require.True(t, utf8.ValidString(text), "half a rune in %q", text)
	require.False(t, strings.ContainsRune(text, 0), "NUL in %q", text)
	b := &r.Blocks[len(r.Blocks)-1]
	b.Text += text
	if b.Kind == turns.KindText {
		r.Text += text
	}
}
