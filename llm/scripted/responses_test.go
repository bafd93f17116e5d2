package scripted_test

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

// say makes one request and returns its status and body.
func say(t *testing.T, s *scripted.Server, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL()+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(said)
}

// idIn finds the first id of a kind.
func idIn(t *testing.T, text, kind string) string {
	t.Helper()
	id := regexp.MustCompile(kind + `_[0-9a-f]+`).FindString(text)
	require.NotEmpty(t, id)
	return id
}

const backgroundBody = `{"model":"demo","stream":true,"background":true,"input":"one two"}`

func TestABackgroundResponseIsReadAgainFromAnyEvent(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{
		{Thinking: "let me see", Signature: "sealed"}, {Text: "a b c"}, {ToolUse: &scripted.ToolUse{ID: "t", Name: "f", Input: "{}"}},
	}})
	_, whole := say(t, s, "POST", "/v1/responses", backgroundBody)
	id := idIn(t, whole, "resp")
	events := strings.SplitAfter(whole, "\n\n")
	events = events[:len(events)-1]
	require.Contains(t, events[0], "response.queued")
	require.Contains(t, events[len(events)-1], `"status":"completed"`)
	_, again := say(t, s, "GET", "/v1/responses/"+id+"?stream=true", "")
	require.Equal(t, whole, again)
	for after := range events {
		status, rest := say(t, s, "GET", "/v1/responses/"+id+"?stream=true&starting_after="+strconv.Itoa(after), "")
		require.Equal(t, 200, status)
		require.Equal(t, strings.Join(events[after+1:], ""), rest)
	}
	counts := s.Counts()
	require.Equal(t, 1, counts.Requests)
	require.Equal(t, 1, counts.Generations)
	require.Equal(t, 1+len(events), counts.Asked)
	require.Equal(t, 2, counts.InputTokens)
}
