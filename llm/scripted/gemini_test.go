package scripted_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

const (
	geminiStream = "/v1beta/models/demo:streamGenerateContent?alt=sse"
	geminiWhole  = "/v1beta/models/demo:generateContent"
	geminiBody   = `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"please say hello to me"}]}]}`
)

// chunk is what a client reads of one.
type chunk struct {
	Candidates []struct {
		Content struct {
			Role  string
			Parts []struct {
				Text         *string
				Thought      bool
				Signature    string `json:"thoughtSignature"`
				FunctionCall *struct {
					ID, Name string
					Args     json.RawMessage
				}
			}
		}
		FinishReason      string
		ContinuationToken string
	}
	PromptFeedback *struct{ BlockReason string }
	UsageMetadata  *struct {
		PromptTokenCount, CandidatesTokenCount, ThoughtsTokenCount, TotalTokenCount int
	}
	ModelVersion, ResponseID string
}

func chunks(t *testing.T, body string) (all []chunk) {
	t.Helper()
	for _, e := range events(t, body) {
		require.Empty(t, e.name, "chunks have no names")
		var c chunk
		require.NoError(t, json.Unmarshal([]byte(e.data), &c))
		all = append(all, c)
	}
	return all
}

var geminiPlan = scripted.Plan{Blocks: []scripted.Block{
	{Redacted: "c2VhbGVk"}, {Thinking: "let me see", Signature: "c2lnbmVk"}, {Text: "a b"},
	{ToolUse: &scripted.ToolUse{ID: "t1", Name: "f", Input: `{"n": 1, "m": [ ]}`}}, {ToolUse: &scripted.ToolUse{ID: "t2", Name: "g"}},
}}

func TestGeminiSaysItsPartsInChunksWithARunningTotal(t *testing.T) {
	s := start(t, geminiPlan)
	_, body := say(t, s, "POST", geminiStream, geminiBody)
	var parts []string
	total := 0
	for i, c := range chunks(t, body) {
		require.Equal(t, only(t, s).ResponseID, c.ResponseID)
		require.Equal(t, "demo", c.ModelVersion)
		u := c.UsageMetadata
		require.Equal(t, wordsSent, u.PromptTokenCount)
		require.Equal(t, u.PromptTokenCount+u.CandidatesTokenCount+u.ThoughtsTokenCount, u.TotalTokenCount)
		require.GreaterOrEqual(t, u.TotalTokenCount, total)
		if total = u.TotalTokenCount; i == 0 {
			require.Equal(t, wordsSent, total, "the first chunk has no words yet")
		}
		require.Equal(t, "model", c.Candidates[0].Content.Role)
		for _, p := range c.Candidates[0].Content.Parts {
			switch {
			case p.FunctionCall != nil:
				parts = append(parts, p.FunctionCall.Name+string(p.FunctionCall.Args)+p.Signature)
			case p.Thought:
				parts = append(parts, "("+*p.Text+")"+p.Signature)
			default:
				parts = append(parts, *p.Text)
			}
		}
		parts = append(parts, c.Candidates[0].FinishReason)
	}
	require.Equal(t, "()c2VhbGVk|(let )|(me )|(see)|a |b|f{\"n\":1,\"m\":[]}c2lnbmVk|g{}|STOP", strings.Join(nonEmpty(parts), "|"))
	require.Equal(t, wordsSent+only(t, s).OutputTokens, total)
	require.True(t, only(t, s).UsageReported)
}

func nonEmpty(all []string) (out []string) {
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func TestGeminiUnstreamedHasAllPartsAndJoinsWords(t *testing.T) {
	s := start(t, geminiPlan)
	_, body := say(t, s, "POST", geminiWhole, geminiBody)
	var whole chunk
	require.NoError(t, json.Unmarshal([]byte(body), &whole))
	parts := whole.Candidates[0].Content.Parts
	require.Len(t, parts, 5)
	require.Equal(t, "let me see", *parts[1].Text)
	require.Equal(t, "a b", *parts[2].Text)
	require.Equal(t, "STOP", whole.Candidates[0].FinishReason)
	require.Equal(t, only(t, s).OutputTokens, whole.UsageMetadata.CandidatesTokenCount+whole.UsageMetadata.ThoughtsTokenCount)
	require.Equal(t, 3, whole.UsageMetadata.ThoughtsTokenCount)
}

func TestASignatureThatNoCallTakesComesLast(t *testing.T) {
	s := start(t, scripted.Plan{Blocks: []scripted.Block{{Thinking: "hm", Signature: "c2ln"}, {Text: "a"}}})
	_, body := say(t, s, "POST", geminiStream, geminiBody)
	all := chunks(t, body)
	last := all[len(all)-1].Candidates[0].Content.Parts
	require.Equal(t, "c2ln", last[0].Signature)
	require.Empty(t, *last[0].Text)
	s = start(t, scripted.Plan{Blocks: []scripted.Block{{ToolUse: &scripted.ToolUse{ID: "t", Name: "f"}}, {ToolUse: &scripted.ToolUse{ID: "u", Name: "f"}}}})
	_, body = say(t, s, "POST", geminiStream, geminiBody)
	require.Equal(t, 1, strings.Count(body, "thoughtSignature"), "the first call of a step is signed, and no other")
}

func TestGeminiStopsInItsOwnWords(t *testing.T) {
	for word, want := range map[string]string{
		"end_turn": "STOP", "stop_sequence": "STOP", "tool_use": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY",
		"content_filter": "SAFETY", "MALFORMED_FUNCTION_CALL": "MALFORMED_FUNCTION_CALL", "CONTINUATION": "CONTINUATION",
	} {
		s := start(t, scripted.Plan{Blocks: []scripted.Block{{Text: "a"}}, StopReason: word})
		_, body := say(t, s, "POST", geminiStream, geminiBody)
		all := chunks(t, body)
		require.Equal(t, want, all[len(all)-1].Candidates[0].FinishReason)
		require.Equal(t, word == "CONTINUATION", all[len(all)-1].Candidates[0].ContinuationToken != "")
	}
	s := start(t, scripted.Plan{Reply: &scripted.Reply{}, StopReason: "blocked"})
	_, body := say(t, s, "POST", geminiStream, geminiBody)
	all := chunks(t, body)
	require.Len(t, all, 1)
	require.Empty(t, all[0].Candidates)
	require.Equal(t, "PROHIBITED_CONTENT", all[0].PromptFeedback.BlockReason)
	require.Equal(t, wordsSent, all[0].UsageMetadata.PromptTokenCount)
}

func TestGeminiReportsWhatThePlanWants(t *testing.T) {
	for usage, want := range map[scripted.Usage][2]int{scripted.UsageFull: {wordsSent, 2}, scripted.UsageStartOnly: {wordsSent, 0}, scripted.UsageZero: {0, 0}} {
		s := start(t, scripted.Plan{Blocks: []scripted.Block{{Text: "a b"}}, Usage: usage})
		_, body := say(t, s, "POST", geminiStream, geminiBody)
		all := chunks(t, body)
		last := all[len(all)-1].UsageMetadata
		require.Equal(t, want, [2]int{last.PromptTokenCount, last.CandidatesTokenCount}, usage)
		require.Equal(t, usage == scripted.UsageFull, only(t, s).UsageReported)
	}
	s := start(t, scripted.Plan{Usage: scripted.UsageNone})
	_, body := say(t, s, "POST", geminiStream, geminiBody)
	require.NotContains(t, body, "usageMetadata")
}

func TestGeminiRefusesInGooglesForm(t *testing.T) {
	for status, word := range map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
		413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 502: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	} {
		s := start(t, scripted.Plan{Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: status, Headers: map[string]string{"Retry-After": "1.5"}}}})
		a := ask(t, s, geminiStream, geminiBody)
		require.Equal(t, status, a.status)
		require.Empty(t, a.header.Get("Retry-After"), "this vendor asks to wait in the body")
		require.JSONEq(t, fmt.Sprintf(`{"error":{"code":%d,"message":"scripted: %s","status":%q,"details":[`+
			`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}}`, status, word, word), a.body)
	}
	s := start(t, scripted.Plan{Steps: []scripted.Step{{At: scripted.AfterDelta(0), Do: scripted.DoErrorEvent, Error: "RESOURCE_EXHAUSTED"}}})
	_, body := say(t, s, "POST", geminiStream, geminiBody)
	all := events(t, body)
	require.Equal(t, float64(429), at(t, all[len(all)-1].data, "error", "code"))
	status, _ := say(t, s, "POST", geminiWhole, geminiBody)
	require.Equal(t, 429, status)
}

func TestGeminiRefusesAHistoryThatTheVendorRefuses(t *testing.T) {
	user := func(parts string) string { return `{"role":"user","parts":[` + parts + `]}` }
	model := func(parts string) string { return `{"role":"model","parts":[` + parts + `]}` }
	const call, unsigned, result = `{"functionCall":{"name":"f","args":{}},"thoughtSignature":"eA=="}`, `{"functionCall":{"name":"f"}}`,
		`{"functionResponse":{"name":"f","response":{"output":"x"}}}`
	s := start(t, scripted.Plan{})
	for contents, want := range map[string]int{
		"":                                       400,
		user(`{"text":"a"}`):                     200,
		`{"parts":[{"text":"a"}]}`:               200,
		`{"role":"tool","parts":[{"text":"a"}]}`: 400,
		user(``):                                 400,
		user(`{"text":""}`):                      400,
		user(`{"inlineData":{}}`):                400,
		user(`{"text":"a"}`) + "," + model(`{"text":"b"}`):                                                                    400,
		user(`{"text":"a"}`) + "," + model(`{"text":"b"},{"text":"","thoughtSignature":"eA=="}`) + "," + user(`{"text":"c"}`): 200,
		user(`{"text":"a"}`) + "," + model(call) + "," + user(result):                                                         200,
		user(`{"text":"a"}`) + "," + model(unsigned) + "," + user(result):                                                     400,
		user(`{"text":"a"}`) + "," + model(call+","+unsigned) + "," + user(result+","+result):                                 200,
		user(`{"text":"a"}`) + "," + model(call+","+unsigned) + "," + user(result):                                            400,
		user(`{"text":"a"}`) + "," + model(unsigned) + "," + user(result+`,{"text":"b"}`):                                     200,
		user(`{"text":"a"}`) + "," + model(call) + "," + user(`{"text":"b"}`):                                                 400,
		user(`{"text":"a"}`) + "," + user(result):                                                                             400,
		user(call): 400,
		user(`{"text":"a"}`) + "," + model(call) + "," + model(result):                                                                400,
		user(`{"text":"a"}`) + "," + model(`{"functionCall":{"name":"f","args":[1]},"thoughtSignature":"eA=="}`) + "," + user(result): 400,
		user(`{"text":"a"}`) + "," + model(call) + "," + user(`{"functionResponse":{"name":"f"}}`):                                    400,
	} {
		status, body := say(t, s, "POST", geminiWhole, `{"contents":[`+contents+`]}`)
		require.Equal(t, want, status, "%s: %s", contents, body)
	}
	for _, path := range []string{"/v1beta/models/demo:streamGenerateContent", "/v1beta/models/:generateContent"} {
		status, _ := say(t, s, "POST", path, geminiBody)
		require.Equal(t, 400, status, path)
	}
	for _, path := range []string{"/v1beta/models/demo:countTokens", "/v1beta/models/demo", "/v1beta/models/"} {
		status, _ := say(t, s, "POST", path, geminiBody)
		require.Equal(t, 404, status, path)
	}
	status, _ := say(t, s, http.MethodGet, geminiStream, "")
	require.Equal(t, 405, status)
}

func TestRulesKnowAGeminiRequestByItsModelAndWords(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Name: "it", Match: scripted.Match{Wire: "gemini.generate", Model: "demo", Text: "^please"}}}})
	_, _ = say(t, s, "POST", geminiStream, geminiBody)
	call := only(t, s)
	require.Equal(t, "it", call.Rule)
	require.Equal(t, "demo", call.Model)
	require.Equal(t, "gemini.generate", call.Wire)
	require.Equal(t, wordsSent, call.InputTokens)
}
