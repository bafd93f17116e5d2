package scripted_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

const (
	messages    = "/v1/messages"
	completions = "/v1/chat/completions"
	// Both bodies hold seven words of text: two of the system's and five of the user's.
	anthropicBody = `{"model":"demo","max_tokens":64,"stream":true,"system":"Be brief.",` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"please say hello to me"}]}]}`
	openaiBody = `{"model":"demo","stream":true,"stream_options":{"include_usage":true},` +
		`"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"please say hello to me"}]}`
	wordsSent = 7
)

// vendor is one wire as a client sees it.
type vendor struct {
	name, path, body, terminal, idHeader string
}

var vendors = []vendor{
	{"anthropic.messages", messages, anthropicBody, "message_stop", "Request-Id"},
	{"openai.chat", completions, openaiBody, "[DONE]", "X-Request-Id"},
}

func eachVendor(t *testing.T, test func(*testing.T, vendor)) {
	for _, v := range vendors {
		t.Run(v.name, func(t *testing.T) { test(t, v) })
	}
}

func whole(body string) string { return strings.Replace(body, `"stream":true`, `"stream":false`, 1) }

// start serves one rule for everything.
func start(t *testing.T, plan scripted.Plan) *scripted.Server {
	return scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Name: "rule", Plan: plan}}})
}

func deltas(n int) *scripted.Reply { return &scripted.Reply{Deltas: n, DeltaBytes: 8, Seed: 1} }

// limit is the time after which a test that waits has failed.
func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// line is a connection to the provider that shows what happens on TCP.
type line struct {
	*net.TCPConn
	t *testing.T
}

func dial(t *testing.T, s *scripted.Server) line {
	u, err := url.Parse(s.URL())
	require.NoError(t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	return line{conn.(*net.TCPConn), t}
}

// post sends a request and asks for the connection to be closed after it, so that reading to the end shows how it ended.
func (l line) post(path, body string, headers ...string) line {
	extra := ""
	for _, h := range headers {
		extra += h + "\r\n"
	}
	_, err := fmt.Fprintf(l, "POST %s HTTP/1.1\r\nHost: scripted\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n%s",
		path, len(body), extra, body)
	require.NoError(l.t, err)
	return l
}

// all reads until the connection ends; a nil error is FIN.
func (l line) all() (string, error) {
	raw, err := io.ReadAll(l)
	return string(raw), err
}

// answer is a response whose body was read, with how the reading ended.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func parse(t *testing.T, r io.Reader) answer {
	response, err := http.ReadResponse(bufio.NewReader(r), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body), err}
}

func ask(t *testing.T, s *scripted.Server, path, body string, headers ...string) answer {
	return parse(t, dial(t, s).post(path, body, headers...))
}

// control calls the control API on a connection of its own.
func control(t *testing.T, s *scripted.Server, method, path, body string) (int, string) {
	request, err := http.NewRequestWithContext(limit(t), method, s.URL()+"/_scripted/"+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(raw)
}

// event is one server-sent event with LF line endings.
type event struct {
	name, data string
}

func events(t *testing.T, body string) []event {
	var all []event
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var e event
		for field := range strings.SplitSeq(block, "\n") {
			name, value, found := strings.Cut(field, ": ")
			require.True(t, found, "line %q", field)
			switch name {
			case "event":
				e.name = value
			case "data":
				e.data = value
			}
		}
		all = append(all, e)
	}
	return all
}

// names lists what the events are: their names or, where they have none, what their data holds.
func names(all []event) []string {
	var list []string
	for _, e := range all {
		list = append(list, e.name)
	}
	return list
}

// at decodes the data of an event, or of a whole body, and walks down its keys and indices.
func at(t *testing.T, data string, path ...any) any {
	var v any
	decoder := json.NewDecoder(bytes.NewReader([]byte(data)))
	require.NoError(t, decoder.Decode(&v), "data %q", data)
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, ok := v.(map[string]any)
			require.True(t, ok, "%v in %s", path, data)
			v = object[step]
		case int:
			list, ok := v.([]any)
			require.True(t, ok && step < len(list), "%v in %s", path, data)
			v = list[step]
		}
	}
	return v
}

// said joins the text deltas of either wire.
func said(t *testing.T, body string) string {
	var text strings.Builder
	for _, e := range events(t, body) {
		switch {
		case e.name == "content_block_delta":
			text.WriteString(at(t, e.data, "delta", "text").(string))
		case e.name == "" && strings.Contains(e.data, `"delta":{"content":"`):
			text.WriteString(at(t, e.data, "choices", 0, "delta", "content").(string))
		}
	}
	return text.String()
}

// only returns the one call that a server has seen, once it has ended.
func only(t *testing.T, s *scripted.Server) scripted.Call {
	require.NoError(t, s.WaitFinished(limit(t), 1))
	calls := s.Calls()
	require.Len(t, calls, 1)
	return calls[0]
}
