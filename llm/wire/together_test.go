package wire_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// reads is a body that gives each of its parts in one read. before is told of each read which it is.
type reads struct {
	parts  []string
	n      int
	before func(n int)
}

func (r *reads) Read(p []byte) (int, error) {
	r.before(r.n)
	if r.n == len(r.parts) {
		return 0, errors.New("cut")
	}
	r.n++
	return copy(p, r.parts[r.n-1]), nil
}

// texts are the deltas of text that a call yields whose body comes in these parts, and how it failed.
func texts(t *testing.T, before func(read int, texts []string), parts ...string) (texts []string, failed error) {
	t.Helper()
	body := &reads{parts: parts, before: func(n int) { before(n, texts) }}
	c := wire.NewClient(wire.Options{Transport: stack(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body)}, nil
	})})
	defer c.Close()
	for d, err := range c.Stream(t.Context(), wire.Post{URL: "http://127.0.0.1:1/x", Body: []byte("{}")}, plain) {
		if failed = err; err != nil {
			continue
		}
		if d, ok := d.(turns.BlockDelta); ok {
			texts = append(texts, d.Text)
		}
	}
	return texts, failed
}

func TestTextsThatCameTogetherAreOneDelta(t *testing.T) {
	got, err := texts(t, func(int, []string) {}, "data: a\n\ndata: b\n\n: ping\n\ndata: c\n\n", "data: d\n\ndata: end\n\n")
	require.NoError(t, err)
	require.Equal(t, []string{"abc", "d"}, got)
}

func TestNoTextWaitsForWhatIsYetToCome(t *testing.T) {
	want := []string{"", "a", "a", "abc", "abcd"}
	got, err := texts(t, func(read int, texts []string) {
		all := ""
		for _, text := range texts {
			all += text
		}
		require.Equal(t, want[read], all, "before read %d", read)
	}, "data: a\n\ndata: ", "b\n", "\ndata: c\n\n", "data: d\r\rdat")
	require.Error(t, err)
	require.Equal(t, []string{"a", "bc", "d"}, got, "what came before the stream broke is yielded, once and in order")
}

func TestATextBeforeAnEventThatIsBrokenIsYielded(t *testing.T) {
	got, err := texts(t, func(int, []string) {}, "data: a\n\ndata: bad\n\ndata: b\n\n")
	require.ErrorIs(t, err, wire.ErrMalformed)
	require.Equal(t, []string{"a"}, got)
}
