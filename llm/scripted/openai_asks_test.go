package scripted_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

var chatID = regexp.MustCompile(`chatcmpl-[0-9a-f]+`)

// complete asks for a stored completion with metadata and returns its id; empty is one that did not come whole.
func complete(t *testing.T, s *scripted.Server, stream bool, metadata string) string {
	t.Helper()
	_, said := say(t, s, "POST", "/v1/chat/completions", fmt.Sprintf(
		`{"model":"demo","stream":%t,"store":true,"metadata":%s,"messages":[{"role":"user","content":"one two"}]}`, stream, metadata))
	return chatID.FindString(said)
}

// listed are the ids of what a query finds.
func listed(t *testing.T, s *scripted.Server, query string) (ids []string, more bool) {
	t.Helper()
	status, said := say(t, s, "GET", "/v1/chat/completions"+query, "")
	require.Equal(t, 200, status, said)
	var page struct {
		Object string
		Data   []struct {
			ID       string
			Metadata map[string]string
		}
		First string `json:"first_id"`
		Last  string `json:"last_id"`
		More  bool   `json:"has_more"`
	}
	require.NoError(t, json.Unmarshal([]byte(said), &page))
	require.Equal(t, "list", page.Object)
	for _, c := range page.Data {
		ids = append(ids, c.ID)
	}
	if len(ids) > 0 {
		require.Equal(t, []string{ids[0], ids[len(ids)-1]}, []string{page.First, page.Last})
	}
	return ids, page.More
}

func TestStoredCompletionsAreFoundByTheirMetadata(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{{Text: "a b"}, {ToolUse: &scripted.ToolUse{ID: "t", Name: "f", Input: `{"x":1}`}}}})
	first := complete(t, s, true, `{"turn":"1","generation":"1"}`)
	second := complete(t, s, false, `{"turn":"1","generation":"2"}`)
	third := complete(t, s, true, `{"turn":"2"}`)
	say(t, s, "POST", "/v1/chat/completions", `{"model":"demo","messages":[{"role":"user","content":"not stored"}]}`)
	all := []string{first, second, third}
	for query, want := range map[string][]string{
		"": all, "?order=asc": all, "?order=desc": {third, second, first}, "?model=demo": all, "?model=other": nil,
		"?" + url.Values{"metadata[turn]": {"1"}}.Encode():                                {first, second},
		"?" + url.Values{"metadata[turn]": {"1"}, "metadata[generation]": {"2"}}.Encode(): {second},
		"?metadata[turn]=3": nil, "?limit=2": {first, second}, "?limit=2&after=" + second: {third},
	} {
		got, more := listed(t, s, query)
		require.Equal(t, want, got, query)
		require.Equal(t, query == "?limit=2", more, query)
	}
	status, _ := say(t, s, "GET", "/v1/chat/completions?limit=0", "")
	require.Equal(t, 400, status)
	status, said := say(t, s, "GET", "/v1/chat/completions/"+first, "")
	require.Equal(t, 200, status)
	var whole struct {
		Choices  []struct{ Message struct{ Content string } }
		Metadata map[string]string
		Usage    struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(said), &whole))
	require.Equal(t, "a b", whole.Choices[0].Message.Content)
	require.Equal(t, map[string]string{"turn": "1", "generation": "1"}, whole.Metadata)
	require.Equal(t, 2, whole.Usage.Prompt)
	require.Equal(t, 4, s.Counts().Requests, "asking generates nothing")
}

func TestOnlyAWholeCompletionIsStoredAndOnlyAfterAWhile(t *testing.T) {
	var now atomic.Int64
	s := serve(t, scripted.Script{
		Endpoint: scripted.Endpoint{LookupDelayMS: 5000},
		Rules: []scripted.Rule{
			{Match: scripted.Match{Nth: 1}, Plan: scripted.Plan{Reply: deltas(3), Steps: []scripted.Step{{At: scripted.AfterDelta(2), Do: scripted.DoErrorEvent}}}},
			{Match: scripted.Match{Nth: 2}, Plan: scripted.Plan{Reply: deltas(3), Steps: []scripted.Step{{At: scripted.AfterDelta(2), Do: scripted.DoClose}}}},
		},
	}, scripted.Options{Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	failed, cut := complete(t, s, true, `{"n":"1"}`), complete(t, s, true, `{"n":"2"}`)
	require.NoError(t, s.WaitFinished(limit(t), 2))
	for _, second := range []int64{4, 5} {
		now.Store(second)
		var want []string
		if second == 5 {
			want = []string{cut}
		}
		got, _ := listed(t, s, "")
		require.Equal(t, want, got, "after %d s", second)
		status, _ := say(t, s, "GET", "/v1/chat/completions/"+cut, "")
		require.Equal(t, want != nil, status == 200)
		status, _ = say(t, s, "GET", "/v1/chat/completions/"+failed, "")
		require.Equal(t, 404, status)
	}
}

func TestMetadataWithoutStoreIsRefused(t *testing.T) {
	s := start(t, scripted.Plan{})
	status, said := say(t, s, "POST", "/v1/chat/completions", `{"model":"demo","metadata":{"a":"b"},"messages":[{"role":"user","content":"a"}]}`)
	require.Equal(t, 400, status)
	require.Contains(t, said, "invalid_request_error")
}
