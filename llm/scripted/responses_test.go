package scripted_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

// say makes one request and returns its status and body.
func say(t *testing.T, s *scripted.Server, method, path, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(limit(t), method, s.URL()+path, strings.NewReader(body))
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

// begun makes a request whose reply waits at a gate, and returns its id.
func begun(t *testing.T, s *scripted.Server, body, gate string) string {
	t.Helper()
	n := len(s.Calls())
	l := dial(t, s).post(responses, body)
	t.Cleanup(func() { _ = l.Close() })
	require.NoError(t, s.WaitGate(limit(t), gate, 1))
	return s.Calls()[n].ResponseID
}

const (
	responses      = "/v1/responses"
	responsesBody  = `{"model":"demo","stream":true,"input":"one two"}`
	backgroundBody = `{"model":"demo","stream":true,"background":true,"input":"one two"}`
)

func statusOf(t *testing.T, body string) string {
	t.Helper()
	var r struct {
		Status string `json:"status"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &r))
	return r.Status
}

func TestABackgroundResponseIsReadAgainFromAnyEvent(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{
		{Thinking: "let me see", Signature: "sealed"}, {Text: "a b c"}, {ToolUse: &scripted.ToolUse{ID: "t", Name: "f", Input: "{}"}},
	}})
	_, whole := say(t, s, "POST", responses, backgroundBody)
	id := idIn(t, whole, "resp")
	events := strings.SplitAfter(whole, "\n\n")
	events = events[:len(events)-1]
	require.Contains(t, events[0], "response.queued")
	require.Contains(t, events[len(events)-1], `"status":"completed"`)
	_, again := say(t, s, "GET", responses+"/"+id+"?stream=true", "")
	require.Equal(t, whole, again)
	for after := range events {
		status, rest := say(t, s, "GET", responses+"/"+id+"?stream=true&starting_after="+strconv.Itoa(after), "")
		require.Equal(t, 200, status)
		require.Equal(t, strings.Join(events[after+1:], ""), rest)
	}
	counts := s.Counts()
	require.Equal(t, 1, counts.Requests)
	require.Equal(t, 1, counts.Generations)
	require.Equal(t, 1+len(events), counts.Asked)
	require.Equal(t, 2, counts.InputTokens)
	require.Len(t, s.Calls(), 1)
}

func TestABackgroundResponseGoesOnWithoutItsClientAndAnotherMayNot(t *testing.T) {
	for body, whole := range map[string]bool{backgroundBody: true, responsesBody: false} {
		s := start(t, scripted.Plan{Reply: deltas(4), OnClientGone: scripted.ClientGoneStop, Steps: []scripted.Step{
			{At: "delta:2", Do: scripted.DoWait, Gate: "mid"}, {At: "delta:2", Do: scripted.DoReset}, {At: "delta:2", Do: scripted.DoWait, Gate: "gone"}}})
		id := begun(t, s, body, "mid")
		require.NoError(t, s.OpenGate("mid"))
		if whole {
			require.NoError(t, s.WaitGate(limit(t), "gone", 1))
			_, told := say(t, s, "GET", responses+"/"+id, "")
			require.Equal(t, "in_progress", statusOf(t, told))
		}
		require.NoError(t, s.OpenGate("gone"))
		require.NoError(t, s.WaitFinished(limit(t), 1))
		status, told := say(t, s, "GET", responses+"/"+id, "")
		if !whole {
			require.Equal(t, 404, status, "what stopped with its client is not kept")
			continue
		}
		require.Equal(t, "completed", statusOf(t, told))
		require.Equal(t, 4, s.Counts().OutputTokens)
	}
}

func TestACancelledResponseStaysCancelled(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(4), Steps: []scripted.Step{{At: "delta:2", Do: scripted.DoWait, Gate: "mid"}}})
	id := begun(t, s, backgroundBody, "mid")
	for range 2 {
		status, told := say(t, s, "POST", responses+"/"+id+"/cancel", "")
		require.Equal(t, 200, status)
		require.Equal(t, "cancelled", statusOf(t, told))
	}
	counts := s.Counts()
	require.Zero(t, counts.Running)
	require.Equal(t, 2, counts.OutputTokens)
	require.NoError(t, s.WaitFinished(limit(t), 1))
	require.Equal(t, scripted.EndClosed, s.Calls()[0].End)
	_, stream := say(t, s, "GET", responses+"/"+id+"?stream=true", "")
	require.Equal(t, 2, strings.Count(stream, "output_text.delta\ndata"))
	require.NotContains(t, stream, "response.completed")
}

func TestACancelAfterTheEndChangesNothing(t *testing.T) {
	s := start(t, scripted.Plan{})
	_, whole := say(t, s, "POST", responses, backgroundBody)
	_, told := say(t, s, "POST", responses+"/"+idIn(t, whole, "resp")+"/cancel", "")
	require.Equal(t, "completed", statusOf(t, told))
	_, plain := say(t, s, "POST", responses, `{"model":"demo","input":"x"}`)
	status, _ := say(t, s, "POST", responses+"/"+idIn(t, plain, "resp")+"/cancel", "")
	require.Equal(t, 400, status, "only a background response can be cancelled")
	status, _ = say(t, s, "GET", responses+"/"+idIn(t, plain, "resp")+"?stream=true", "")
	require.Equal(t, 400, status, "only a background response can be streamed again")
	status, _ = say(t, s, "POST", responses+"/resp_0/cancel", "")
	require.Equal(t, 404, status)
}

func TestABackgroundResponseWithoutAStreamIsAReceipt(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(3), Steps: []scripted.Step{{At: "before_headers", Do: scripted.DoWait, Gate: "start"}}})
	status, told := say(t, s, "POST", responses, `{"model":"demo","background":true,"input":"x","metadata":{"a":"b"}}`)
	require.Equal(t, 200, status)
	require.Equal(t, "queued", statusOf(t, told))
	require.NoError(t, s.OpenGate("start"))
	require.NoError(t, s.WaitFinished(limit(t), 1))
	_, told = say(t, s, "GET", responses+"/"+idIn(t, told, "resp"), "")
	require.Equal(t, "completed", statusOf(t, told))
	require.Contains(t, told, `"metadata":{"a":"b"}`)
	require.Contains(t, told, `"output_tokens":3`)
}

func TestAResponseThatFailedSaysSoWhenItIsAskedFor(t *testing.T) {
	for kind, event := range map[string]string{"": "response.failed", "rate_limit_exceeded": "response.failed", "overloaded_error": "error"} {
		s := start(t, scripted.Plan{Reply: deltas(3), Steps: []scripted.Step{{At: "delta:1", Do: scripted.DoErrorEvent, Error: kind}}})
		_, stream := say(t, s, "POST", responses, backgroundBody)
		require.Contains(t, stream, "event: "+event+"\n")
		_, told := say(t, s, "GET", responses+"/"+idIn(t, stream, "resp"), "")
		require.Equal(t, "failed", statusOf(t, told))
		require.Contains(t, told, kind)
	}
}

func TestAReplyIsKnownAfterTheDelayAndForgottenAfterItsTime(t *testing.T) {
	var seconds atomic.Int64
	begin := time.Now()
	s := serve(t, scripted.Script{Endpoint: scripted.Endpoint{LookupDelayMS: 2000, KeptS: 60}}, scripted.Options{
		Now: func() time.Time { return begin.Add(time.Duration(seconds.Load()) * time.Second) },
	})
	_, background := say(t, s, "POST", responses, backgroundBody)
	_, plain := say(t, s, "POST", responses, responsesBody)
	_, unkept := say(t, s, "POST", responses, `{"model":"demo","store":false,"input":"x"}`)
	for _, tt := range []struct {
		after             int64
		background, plain int
	}{{0, 200, 404}, {1, 200, 404}, {2, 200, 200}, {59, 200, 200}, {60, 404, 404}} {
		seconds.Store(tt.after)
		for body, want := range map[string]int{background: tt.background, plain: tt.plain, unkept: 404} {
			status, _ := say(t, s, "GET", responses+"/"+idIn(t, body, "resp"), "")
			require.Equal(t, want, status, tt.after)
		}
	}
}

func TestAConversationIsForOneResponseAtATime(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{{Text: "a b"}, {ToolUse: &scripted.ToolUse{ID: "t", Name: "f", Input: "{}"}}},
		Steps: []scripted.Step{{At: "delta:1", Do: scripted.DoWait, Gate: "mid"}}})
	_, made := say(t, s, "POST", "/v1/conversations", "{}")
	conversation := idIn(t, made, "conv")
	body := `{"model":"demo","input":"one two","conversation":"` + conversation + `"}`
	items := "/v1/conversations/" + conversation + "/items"
	begun(t, s, body, "mid")
	status, told := say(t, s, "POST", responses, body)
	require.Equal(t, 400, status)
	require.Contains(t, told, `"code":"conversation_locked"`)
	_, told = say(t, s, "GET", items, "")
	require.Contains(t, told, `"data":[]`)
	require.NoError(t, s.OpenGate("mid"))
	require.NoError(t, s.WaitFinished(limit(t), 2))
	_, told = say(t, s, "GET", items+"?order=asc", "")
	require.Regexp(t, `one two.*"text":"a b".*function_call`, told)
	_, told = say(t, s, "GET", items+"?limit=2", "")
	require.Regexp(t, `function_call.*"text":"a b".*"has_more":true`, told)
	_, told = say(t, s, "GET", items+"?limit=2&after="+idIn(t, told, "msg_resp")+"_0", "")
	require.Contains(t, told, "one two")
	counts := s.Counts()
	require.Equal(t, 2, counts.Requests)
	require.Equal(t, 1, counts.Generations, "a refused request begins nothing")
	for _, unknown := range []string{`"conv_0"`, `{"id":"conv_0"}`} {
		status, _ = say(t, s, "POST", responses, `{"model":"demo","input":"x","conversation":`+unknown+`}`)
		require.Equal(t, 404, status)
	}
	status, _ = say(t, s, "GET", "/v1/conversations/conv_0/items", "")
	require.Equal(t, 404, status)
}

func TestARuleForAskingTroublesTheAskingAlone(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
		{Match: scripted.Match{Ask: scripted.AskResume, Nth: 2}, Plan: scripted.Plan{Steps: []scripted.Step{{At: "delta:2", Do: scripted.DoClose}}}},
		{Match: scripted.Match{Ask: scripted.AskRetrieve, Model: "demo"}, Times: 1,
			Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 429, Headers: map[string]string{"Retry-After": "3"}}}}},
		{Plan: scripted.Plan{Reply: deltas(4)}},
	}})
	_, whole := say(t, s, "POST", responses, backgroundBody)
	require.Contains(t, whole, "response.completed")
	at := responses + "/" + idIn(t, whole, "resp")
	for _, want := range []int{4, 2, 4} {
		_, again := say(t, s, "GET", at+"?stream=true", "")
		require.Equal(t, want, strings.Count(again, "output_text.delta\ndata"))
	}
	for _, want := range []int{429, 200} {
		status, _ := say(t, s, "GET", at, "")
		require.Equal(t, want, status)
	}
	for _, bad := range []scripted.Rule{
		{Match: scripted.Match{Ask: "tell"}},
		{Match: scripted.Match{Ask: scripted.AskResume}, Plan: scripted.Plan{Reply: deltas(1)}},
		{Match: scripted.Match{Ask: scripted.AskCancel}, Plan: scripted.Plan{Steps: []scripted.Step{{At: "delta:1", Do: scripted.DoReset}}}},
		{Match: scripted.Match{Ask: scripted.AskResume}, Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtAccept, Do: scripted.DoReset}}}},
	} {
		require.Error(t, scripted.Script{Rules: []scripted.Rule{bad}}.Validate())
	}
}

func TestResponsesRefusesWhatItsVendorDoes(t *testing.T) {
	const (
		user   = `{"role":"user","content":"go"}`
		said   = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}`
		call   = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
		output = `{"type":"function_call_output","call_id":"a","output":"1"}`
		hm     = `{"type":"reasoning","summary":[],"encrypted_content":"x"}`
	)
	s := scripted.Start(t, scripted.Script{})
	for input, want := range map[string]int{
		user:                           200,
		user + "," + said + "," + user: 200,
		user + "," + hm + "," + said + "," + user:              200,
		user + "," + hm + "," + hm + "," + call + "," + output: 200,
		user + "," + call:   400,
		user + "," + output: 400,
		user + "," + call + "," + output + "," + output: 400,
		user + "," + call + "," + call + "," + output:   400,
		user + "," + hm:                                                400,
		user + "," + hm + "," + user:                                   400,
		user + "," + hm + "," + output:                                 400,
		user + `,{"type":"reasoning","summary":[]},` + said:            400,
		user + `,{"type":"reasoning","encrypted_content":"x"},` + said: 400,
		user + `,{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"x"},` + said: 400,
		user + `,{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`:             400,
		`{"role":"tool","content":"x"}`: 400,
		`{"type":"brand_new"}`:          400,
		``:                              400,
	} {
		status, told := say(t, s, "POST", responses, `{"model":"demo","input":[`+input+`]}`)
		require.Equal(t, want, status, "%s: %s", input, told)
	}
	for _, body := range []string{`{"input":"x"}`, `{"model":"demo"}`, `{"model":"demo","input":7}`, `{"model":"demo","input":"x","background":true,"store":false}`, `[`} {
		status, _ := say(t, s, "POST", responses, body)
		require.Equal(t, 400, status, body)
	}
}

func TestUsageIsReportedByTheTerminalEventAndNotBefore(t *testing.T) {
	for at, want := range map[scripted.Point]bool{scripted.AtBeforeTerminal: false, scripted.AtAfterTerminal: true} {
		s := start(t, scripted.Plan{Steps: []scripted.Step{{At: at, Do: scripted.DoClose}}})
		_, stream := say(t, s, "POST", responses, responsesBody)
		require.Equal(t, want, strings.Contains(stream, "input_tokens"))
		require.NoError(t, s.WaitFinished(limit(t), 1))
		require.Equal(t, want, s.Calls()[0].UsageReported)
	}
}

func TestTheSealOfReasoningIsShownToThoseWhoAsk(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{{Thinking: "hm", Signature: "sealed"}, {Redacted: "hidden"}, {Text: "so"}}})
	_, without := say(t, s, "POST", responses, responsesBody)
	require.NotContains(t, without, "sealed")
	require.Contains(t, without, "obfuscation")
	_, with := say(t, s, "POST", responses,
		`{"model":"demo","stream":true,"input":"x","include":["reasoning.encrypted_content"],"stream_options":{"include_obfuscation":false}}`)
	require.Contains(t, with, `"encrypted_content":"sealed"`)
	require.Contains(t, with, `"encrypted_content":"hidden"`)
	require.NotContains(t, with, "obfuscation")
}
