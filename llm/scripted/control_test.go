package scripted_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

func TestAScriptIsReplacedOverHTTPAndABadFieldIsNamed(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	status, body := control(t, s, "PUT", "script", `{"rules":[{"name":"cut37","times":1,"plan":{"reply":{"deltas":64},
		"steps":[{"at":"delta:37","do":"reset"}]}}]}`)
	require.Equal(t, 200, status, body)
	_, err := dial(t, s).post(messages, anthropicBody).all()
	require.Error(t, err)

	status, body = control(t, s, "PUT", "script", `{"rules":[{"plan":{"stepz":[]}}]}`)
	require.Equal(t, 400, status)
	require.Equal(t, "rules[0].plan.stepz", at(t, body, "error", "field"))
	require.NotEmpty(t, at(t, body, "error", "message"))

	call := only(t, s)
	require.Equal(t, "cut37", call.Rule)
	require.Equal(t, 37, call.DeltasSent)
	require.Equal(t, 64, call.DeltasGenerated)
}

func TestTheControlAPIShowsWhatTheMethodsShow(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(3)})
	for _, key := range []string{"a", "b", "a"} {
		ask(t, s, messages, anthropicBody, "Idempotency-Key: "+key)
	}
	require.NoError(t, s.WaitFinished(limit(t), 3))

	_, body := control(t, s, "GET", "calls?after=1&key=a", "")
	var page scripted.CallPage
	require.NoError(t, json.Unmarshal([]byte(body), &page))
	require.Equal(t, s.CallsAfter(1, "a"), page)
	require.Len(t, page.Calls, 1)
	require.Equal(t, 3, page.Calls[0].N)
	for _, name := range []string{
		"n", "wire", "model", "idempotency_key", "body_sha256", "rule", "status", "accepted_at", "deltas_generated",
		"deltas_sent", "input_tokens", "output_tokens", "usage_reported", "end", "client_gone_at", "ended_at", "response_id",
		"replay_of",
	} {
		require.Contains(t, at(t, body, "calls", 0), name)
	}

	_, body = control(t, s, "GET", "counts", "")
	var counts scripted.Counts
	require.NoError(t, json.Unmarshal([]byte(body), &counts))
	require.Equal(t, s.Counts(), counts)
	require.Equal(t, 2, counts.ByKey["a"].Generations)
	require.Equal(t, 3, counts.Connections, "control connections are left out")

	status, _ := control(t, s, "POST", "reset", "")
	require.Equal(t, 200, status)
	_, body = control(t, s, "GET", "calls", "")
	require.Equal(t, "{\"calls\":[]}\n", body)
	_, body = control(t, s, "GET", "counts", "")
	require.JSONEq(t, `{"connections":0,"requests":0,"generations":0,"input_tokens":0,"output_tokens":0,"asked":0,"running":0,"by_key":{}}`, body)
}

func TestAWaitOverHTTPAnswersWhenItIsTrueOrItsTimeIsOver(t *testing.T) {
	s := start(t, gated(4, "mid"))
	l := dial(t, s).post(messages, anthropicBody)
	for _, wait := range []string{"requests=1", "gate=mid&arrived=1", "call=1&deltas=4", "finished=0"} {
		status, body := control(t, s, "GET", "wait?"+wait+"&timeout=20s", "")
		require.Equal(t, 200, status, "%s: %s", wait, body)
	}
	for _, wait := range []string{"requests=2", "gate=mid&arrived=2", "call=1&deltas=5", "call=2&deltas=0", "finished=1"} {
		status, _ := control(t, s, "GET", "wait?"+wait+"&timeout=1ms", "")
		require.Equal(t, 408, status, wait)
	}
	status, _ := control(t, s, "POST", "gates/mid/open", "")
	require.Equal(t, 200, status)
	require.Equal(t, 200, parse(t, l).status)
	status, _ = control(t, s, "GET", "wait?finished=1", "")
	require.Equal(t, 200, status)
}

func TestAControlRequestThatMeansNothingIsRefused(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	for path, field := range map[string]string{
		"wait":                         "query",
		"wait?requests=x":              "requests",
		"wait?requests=1&timeout=soon": "timeout",
		"wait?requests=1&timeout=11m":  "timeout",
		"wait?requests=1&gate=g":       "gate",
		"calls?after=-1":               "after",
		"calls?before=1":               "before",
	} {
		status, body := control(t, s, "GET", path, "")
		require.Equal(t, 400, status, path)
		require.Equal(t, field, at(t, body, "error", "field"), path)
	}
	status, _ := control(t, s, "GET", "nothing", "")
	require.Equal(t, 404, status)
	status, _ = control(t, s, "POST", "gates/"+strings.Repeat("g", 201)+"/open", "")
	require.Equal(t, 400, status)
}

func TestGatesAreBounded(t *testing.T) {
	s := scripted.Start(t, scripted.Script{})
	var err error
	for i := 0; err == nil && i <= 10_000; i++ {
		err = s.OpenGate("g" + strconv.Itoa(i))
	}
	require.Error(t, err)
	s.Reset()
	require.NoError(t, s.OpenGate("g"))
}

func TestWithoutControlItsPathsAreUnknown(t *testing.T) {
	s := serve(t, scripted.DemoScript(), scripted.Options{Control: scripted.ControlOff})
	for path, method := range map[string]string{
		"script": "PUT", "reset": "POST", "calls": "GET", "counts": "GET", "wait?requests=0": "GET", "gates/g/open": "POST",
	} {
		status, _ := control(t, s, method, path, "")
		require.Equal(t, 404, status, path)
	}
}

func TestAConnectionThatAlsoCarriesControlRequestsIsCounted(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(1)})
	l := dial(t, s)
	for i, want := range []int{0, 1, 1} {
		request := "GET /_scripted/counts HTTP/1.1\r\nHost: s\r\n\r\n"
		if i == 1 {
			request = "POST /v1/messages HTTP/1.1\r\nHost: s\r\nContent-Length: " + strconv.Itoa(len(anthropicBody)) + "\r\n\r\n" +
				anthropicBody
		}
		_, err := l.Write([]byte(request))
		require.NoError(t, err)
		require.Equal(t, 200, parse(t, l).status)
		require.Equal(t, want, s.Counts().Connections)
	}
}

func TestAnAcceptFaultSparesAControlRequestThatComesInPieces(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
		{Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtAccept, Do: scripted.DoReset}}}},
	}})
	l := dial(t, s)
	require.NoError(t, l.SetNoDelay(true))
	for _, part := range []string{"G", "ET ", "/_scr", "ipted/counts HTTP/1.1\r\n", "Host: s\r\n\r\n"} {
		_, err := l.Write([]byte(part))
		require.NoError(t, err)
	}
	require.Equal(t, 200, parse(t, l).status)
	_, err := dial(t, s).post("/", "").all()
	require.Error(t, err)
}
