package scripted_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

const (
	interactionsPath = "/v1beta/interactions"
	interactionBody  = `{"model":"demo","stream":true,"input":"one two"}`
	keptInteraction  = `{"model":"demo","stream":true,"background":true,"store":true,"labels":{"turn":"t-1"},"input":"one two"}`
)

func TestAnInteractionIsReadAgainFromAnyEvent(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{
		{Redacted: "c2VhbGVk"}, {Thinking: "let me see", Signature: "c2ln"}, {Text: "a b c"}, {ToolUse: &scripted.ToolUse{ID: "t", Name: "f", Input: `{"n": 1}`}},
	}})
	_, whole := say(t, s, "POST", interactionsPath, keptInteraction)
	path := interactionsPath + "/" + only(t, s).ResponseID
	_, again := say(t, s, "GET", path+"?stream=true", "")
	require.Equal(t, whole, again)
	all := strings.SplitAfter(whole, "\n\n")
	all = all[:len(all)-1]
	require.Contains(t, all[0], "event: interaction.created")
	require.Contains(t, all[len(all)-2], `"status":"requires_action"`)
	require.Equal(t, "event: done\ndata: [DONE]\n\n", all[len(all)-1])
	for after := range len(all) - 1 {
		require.Contains(t, all[after], `"event_id":"evt_`+strconv.Itoa(after)+`"`)
		_, rest := say(t, s, "GET", path+"?stream=true&last_event_id=evt_"+strconv.Itoa(after), "")
		require.Equal(t, strings.Join(all[after+1:], ""), rest)
	}
	for _, id := range []string{"evt_x", "7", "evt_-1"} {
		status, _ := say(t, s, "GET", path+"?stream=true&last_event_id="+id, "")
		require.Equal(t, 400, status, id)
	}
	_, told := say(t, s, "GET", path, "")
	require.Equal(t, "t-1", at(t, told, "labels", "turn"))
	require.JSONEq(t, `[{"type":"thought","summary":[],"signature":"c2VhbGVk"},{"type":"thought","summary":[{"type":"text","text":"let me see"}],"signature":"c2ln"},
		{"type":"model_output","content":[{"type":"text","text":"a b c"}]},{"type":"function_call","id":"t","name":"f","arguments":{"n":1}}]`, jsonAt(t, told, "steps"))
	require.Equal(t, 1, s.Counts().Generations)
}

func jsonAt(t *testing.T, body, field string) string {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	return string(all[field])
}

func TestAnInteractionTellsItsUsageWithEachStep(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{{Thinking: "let me see", Signature: "c2ln"}, {Text: "a b"}}})
	_, body := say(t, s, "POST", interactionsPath, interactionBody)
	var told []string
	for _, e := range events(t, body) {
		if e.name == "step.stop" || e.name == "interaction.completed" {
			usage := at(t, e.data, "usage")
			if e.name == "interaction.completed" {
				usage = at(t, e.data, "interaction", "usage")
			}
			u := usage.(map[string]any)
			told = append(told, strings.Join([]string{num(u["total_input_tokens"]), num(u["total_output_tokens"]), num(u["total_thought_tokens"]), num(u["total_tokens"])}, " "))
		}
	}
	require.Equal(t, []string{"2 0 3 5", "2 2 3 7", "2 2 3 7"}, told)
}

func num(v any) string { return strconv.Itoa(int(v.(float64))) }

func TestAnInteractionInTheBackgroundIsStoppedAndForgotten(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(4), Steps: []scripted.Step{{At: "delta:2", Do: scripted.DoWait, Gate: "mid"}}})
	l := dial(t, s).post(interactionsPath, keptInteraction)
	t.Cleanup(func() { _ = l.Close() })
	require.NoError(t, s.WaitGate(limit(t), "mid", 1))
	path := interactionsPath + "/" + s.Calls()[0].ResponseID
	_, told := say(t, s, "GET", path, "")
	require.Equal(t, "in_progress", statusOf(t, told))
	for range 2 {
		status, told := say(t, s, "POST", path+"/cancel", "")
		require.Equal(t, 200, status)
		require.Equal(t, "cancelled", statusOf(t, told))
	}
	require.Zero(t, s.Counts().Running)
	require.Equal(t, 2, s.Counts().OutputTokens)
	status, _ := say(t, s, "DELETE", path, "")
	require.Equal(t, 200, status)
	for _, method := range []string{"GET", "DELETE"} {
		status, told = say(t, s, method, path, "")
		require.Equal(t, 404, status)
		require.Equal(t, "not_found", at(t, told, "error", "code"))
	}
}

func TestAnInteractionIsKnownAsItsRequestWanted(t *testing.T) {
	for body, want := range map[string]int{
		interactionBody: 200, keptInteraction: 200, `{"model":"demo","stream":true,"store":false,"input":"one two"}`: 404,
	} {
		s := start(t, scripted.Plan{})
		_, _ = say(t, s, "POST", interactionsPath, body)
		status, _ := say(t, s, "GET", interactionsPath+"/"+only(t, s).ResponseID, "")
		require.Equal(t, want, status, body)
	}
	s := start(t, scripted.Plan{Blocks: []scripted.Block{{Text: "a"}}, StopReason: "max_tokens"})
	_, body := say(t, s, "POST", interactionsPath, `{"model":"demo","input":"one two"}`)
	require.Equal(t, "incomplete", statusOf(t, body))
	status, told := say(t, s, "POST", interactionsPath+"/"+only(t, s).ResponseID+"/cancel", "")
	require.Equal(t, 400, status, told)
}

func TestAnInteractionThatFailedSaysHow(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(2), Steps: []scripted.Step{{At: "delta:1", Do: scripted.DoErrorEvent, Error: "internal"}}})
	_, body := say(t, s, "POST", interactionsPath, keptInteraction)
	all := events(t, body)
	require.Equal(t, "error", all[len(all)-1].name)
	require.Equal(t, "internal", at(t, all[len(all)-1].data, "error", "code"))
	_, told := say(t, s, "GET", interactionsPath+"/"+only(t, s).ResponseID, "")
	require.Equal(t, "failed", statusOf(t, told))
	require.Equal(t, "internal", at(t, told, "errors", 0, "code"))
	s = start(t, scripted.Plan{Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 429, Headers: map[string]string{"Retry-After": "3"}}}})
	a := ask(t, s, interactionsPath, interactionBody)
	require.Equal(t, "3", a.header.Get("Retry-After"))
	require.Equal(t, "resource_exhausted", at(t, a.body, "error", "code"))
}

func TestAHistoryOfStepsThatTheVendorRefusesIsRefused(t *testing.T) {
	const ask, call, result, answer = `{"type":"user_input","content":[{"type":"text","text":"a"}]}`, `{"type":"function_call","id":"1","name":"f","arguments":{}}`,
		`{"type":"function_result","call_id":"1","name":"f","result":"x"}`, `{"type":"model_output","content":[{"type":"text","text":"b"}]}`
	s := start(t, scripted.Plan{})
	for steps, want := range map[string]int{
		"":                              400,
		ask:                             200,
		ask + "," + answer:              400,
		ask + "," + answer + "," + ask:  200,
		ask + "," + call + "," + result: 200,
		ask + "," + call:                400,
		ask + "," + call + "," + ask:    400,
		ask + "," + result:              400,
		ask + "," + call + "," + call + "," + result:                                               400,
		ask + "," + call + "," + result + "," + result:                                             400,
		ask + "," + `{"type":"thought"}` + "," + answer + "," + ask:                                400,
		ask + "," + `{"type":"thought","signature":"x"}` + "," + answer + "," + ask:                200,
		ask + "," + `{"type":"function_call","id":"1","name":"f","arguments":"{}"}` + "," + result: 400,
		`{"type":"user_input"}`: 400,
		`{"type":"user_input","content":[{"type":"text","text":""}]}`: 400,
		`{"type":"brand_new"}`: 400,
	} {
		status, body := say(t, s, "POST", interactionsPath, `{"model":"demo","input":[`+steps+`]}`)
		require.Equal(t, want, status, "%s: %s", steps, body)
	}
	for body, want := range map[string]int{
		`{"input":"a"}`: 400, `{"model":"demo"}`: 400, `{"model":"demo","input":7}`: 400, `{`: 400,
		`{"model":"demo","input":"a","background":true,"store":false}`:                     400,
		`{"model":"demo","input":"a","labels":{"Upper":"x"}}`:                              400,
		`{"model":"demo","input":"a","labels":{"long":"` + strings.Repeat("x", 64) + `"}}`: 400,
		`{"model":"demo","input":"a","labels":{"fits":"` + strings.Repeat("x", 63) + `"}}`: 200,
	} {
		status, told := say(t, s, "POST", interactionsPath, body)
		require.Equal(t, want, status, "%s: %s", body, told)
	}
}

func TestAnInteractionIsForgottenAfterItsTime(t *testing.T) {
	var now atomic.Int64
	s := serve(t, scripted.Script{Endpoint: scripted.Endpoint{KeptS: 60}}, scripted.Options{Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	_, _ = say(t, s, "POST", interactionsPath, keptInteraction)
	path := interactionsPath + "/" + only(t, s).ResponseID
	now.Store(59)
	status, _ := say(t, s, "GET", path, "")
	require.Equal(t, 200, status)
	now.Store(60)
	status, _ = say(t, s, "GET", path, "")
	require.Equal(t, 404, status)
}
