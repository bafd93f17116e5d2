package responses_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

var (
	background   = turns.Capabilities{Resume: true, Cancel: true}
	conversation = turns.Capabilities{Lookup: true, Fence: true}
)

// client is one of an endpoint, and a call that could be made there.
func client(t *testing.T, url string, caps turns.Capabilities) (*responses.Client, turns.Call) {
	t.Helper()
	http := wire.NewClient(wire.Options{})
	t.Cleanup(http.Close)
	c := responses.New(http, llm.Endpoint{BaseURL: url, Key: "k"})
	req, err := c.Build(turns.Route{ProviderModel: "demo", Capabilities: caps},
		turns.Prompt{Messages: []turns.Message{{Role: turns.RoleUser, Content: []turns.Block{words("go")}}}})
	require.NoError(t, err)
	return c, turns.Call{Request: req}
}

// lost is a call as it is asked about.
func lost(call turns.Call) turns.LostCall {
	return turns.LostCall{Request: call.Request, ResponseID: "resp_1", Session: "conv_1"}
}

const item = `{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"whole answer"}]}`

// retrieves plays a provider that streams no response, and has this one.
func retrieves(t *testing.T, body string) *llmtest.Provider {
	return llmtest.Play(t, func(x *llmtest.Exchange) {
		if x.Method != "GET" || x.Path != "/v1/responses/resp_1" {
			x.Status(500, "")
		} else if x.Query.Get("stream") == "true" {
			x.Status(400, `{"error":{"type":"invalid_request_error","message":"secret words"}}`)
		} else {
			x.Status(200, body)
		}
	})
}

func TestAResponseThatIsNotStreamedAnyMoreIsRetrieved(t *testing.T) {
	whole := `{"id":"resp_1","status":%q,"incomplete_details":{"reason":"max_output_tokens"},"output":[` + item + `],"usage":{"input_tokens":2,"output_tokens":3}}`
	for status, want := range map[string]turns.StopReason{"completed": turns.StopEndTurn, "incomplete": turns.StopLength} {
		c, call := client(t, retrieves(t, fmt.Sprintf(whole, status)).URL(), background)
		r := llmtest.Collect(t, c.Recover(t.Context(), lost(call)))
		require.Nil(t, r.Err)
		require.Equal(t, "whole answer", r.Text)
		require.Equal(t, "resp_1", r.ResponseID)
		require.Equal(t, want, r.Finished.StopReason)
		require.Equal(t, int64(3), r.Usage.Output)
	}
}

func TestARetrievalTellsHowACallFailed(t *testing.T) {
	for code, want := range failures {
		c, call := client(t, retrieves(t, `{"id":"resp_1","status":"failed","error":{"code":"`+code+`"},"usage":{"input_tokens":2,"output_tokens":3}}`).URL(), background)
		r := llmtest.Collect(t, c.Recover(t.Context(), lost(call)))
		var told *turns.OutcomeError
		require.ErrorAs(t, r.Err, &told)
		require.Equal(t, want, told.Call.Class, code)
		require.Equal(t, code, told.Call.Code)
		require.Equal(t, int64(3), r.Usage.Output, "what it cost is told too")
	}
	c, call := client(t, retrieves(t, `{"id":"resp_1","status":"cancelled"}`).URL(), background)
	var told *turns.OutcomeError
	require.ErrorAs(t, llmtest.Collect(t, c.Recover(t.Context(), lost(call))).Err, &told)
	require.Equal(t, turns.ClassTerminal, told.Call.Class)
}

func TestAResponseThatIsStillMadeIsAskedForAgain(t *testing.T) {
	for _, status := range []string{"queued", "in_progress"} {
		c, call := client(t, retrieves(t, `{"id":"resp_1","status":"`+status+`"}`).URL(), background)
		require.Equal(t, turns.ClassInFlightElsewhere, llmtest.Collect(t, c.Recover(t.Context(), lost(call))).Err.Class)
	}
	c, call := client(t, retrieves(t, `<html>`).URL(), background)
	require.Equal(t, turns.ClassAmbiguous, llmtest.Collect(t, c.Recover(t.Context(), lost(call))).Err.Class)
}

func TestWhatWasStreamedIsNotSaidAgainByARetrieval(t *testing.T) {
	first := item
	second := strings.Replace(item, "whole answer", "more", 1)
	call3 := `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`
	streamed := numbered(
		event("response.created", `,"response":{"id":"resp_1"}`),
		event("response.output_item.added", `,"output_index":0,"item":{"type":"message"}`),
		event("response.output_text.delta", `,"output_index":0,"delta":"whole "`),
		event("response.output_text.delta", `,"output_index":0,"delta":"answer"`),
		event("response.output_item.done", `,"output_index":0,"item":`+first),
		event("response.output_item.added", `,"output_index":1,"item":{"type":"message"}`),
		event("response.output_text.delta", `,"output_index":1,"delta":"more"`),
		event("response.output_item.done", `,"output_index":1,"item":`+second),
	)
	events := strings.SplitAfter(streamed, "\n\n")
	for n := 1; n < len(events); n++ {
		p := llmtest.Play(t, func(x *llmtest.Exchange) {
			switch {
			case x.Method == "POST":
				x.Stream(strings.Join(events[:n], ""))
			case x.Query.Get("stream") == "true":
				require.Equal(t, fmt.Sprint(n-1), x.Query.Get("starting_after"))
				x.Status(400, "")
			default:
				x.Status(200, `{"id":"resp_1","status":"completed","output":[`+first+","+second+","+call3+`]}`)
			}
		})
		c, call := client(t, p.URL(), background)
		before := llmtest.Collect(t, c.Generate(t.Context(), call))
		require.NotNil(t, before.Err.Continuation)
		asked := lost(call)
		asked.Continuation = before.Err.Continuation
		r := llmtest.Collect(t, func(yield func(turns.Delta, error) bool) {
			for _, d := range before.Deltas {
				if !yield(d, nil) {
					return
				}
			}
			for d, err := range c.Recover(t.Context(), asked) {
				if _, again := d.(turns.Responded); !again && !yield(d, err) {
					return
				}
			}
		})
		require.Nil(t, r.Err)
		require.Equal(t, "whole answermore", r.Text, n)
		require.Len(t, r.Blocks, 3)
		require.Equal(t, turns.StopToolUse, r.Finished.StopReason)
	}
}

func TestOnlyAStreamThatCanBeGoneOnWithSaysWhere(t *testing.T) {
	created := event("response.created", `,"response":{"id":"resp_1"}`)
	for name, tt := range map[string]struct {
		caps   turns.Capabilities
		stream string
		want   bool
	}{
		"in the background":           {background, numbered(created), true},
		"in the foreground":           {turns.Capabilities{}, numbered(created), false},
		"before the response":         {background, numbered(event("response.new", "")), false},
		"on a server without numbers": {background, created, false},
		"after the response failed":   {background, numbered(created, event("response.failed", `,"response":{"error":{"code":"server_error"}}`)), false},
		"after an error of the API":   {background, numbered(created, event("error", `,"code":"server_error"`)), true},
	} {
		c, call := client(t, llmtest.Play(t, func(x *llmtest.Exchange) { x.Stream(tt.stream) }).URL(), tt.caps)
		r := llmtest.Collect(t, c.Generate(t.Context(), call))
		require.Equal(t, tt.want, r.Err.Continuation != nil, name)
		if tt.want {
			require.Equal(t, turns.ClassAmbiguous, r.Err.Class, "the response may still be made")
		}
	}
}

func TestAnErrorEventIsFollowedByAskingWhatBecameOfTheResponse(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 4},
		Steps: []scripted.Step{{At: scripted.AfterDelta(2), Do: scripted.DoErrorEvent, Error: "overloaded_error"}}}}}})
	c, call := client(t, s.URL(), background)
	r := llmtest.Collect(t, c.Generate(t.Context(), call))
	asked := lost(call)
	asked.ResponseID = r.ResponseID
	for _, at := range []turns.Continuation{nil, r.Err.Continuation} {
		asked.Continuation = at
		var last error
		for _, err := range c.Recover(t.Context(), asked) {
			last = err
		}
		var told *turns.OutcomeError
		require.ErrorAs(t, last, &told)
		require.Equal(t, "overloaded_error", told.Call.Code)
	}
}

func TestAConversationIsNamedInTheRequestAndNotInItsHash(t *testing.T) {
	var sent string
	p := llmtest.Play(t, func(x *llmtest.Exchange) {
		if x.Path == "/v1/conversations" {
			x.Status(200, `{"id":"conv_7","object":"conversation"}`)
			return
		}
		sent = x.Body
		x.Stream(voice().Whole("a"))
	})
	c, call := client(t, p.URL(), conversation)
	session, err := c.Prepare(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, "conv_7", session)
	call.Session = session
	require.NotNil(t, llmtest.Collect(t, c.Generate(t.Context(), call)).Finished)
	require.Equal(t, strings.TrimSuffix(string(call.Request.Body), "}")+`,"conversation":"conv_7"}`, sent)
	for _, caps := range []turns.Capabilities{{}, background, {Resume: true, Lookup: true}} {
		c, call := client(t, p.URL(), caps)
		session, err := c.Prepare(t.Context(), call)
		require.NoError(t, err)
		require.Empty(t, session)
	}
	require.Equal(t, 2, p.Requests())
}

func TestAConversationThatIsNotMadeFailsTheCallBeforeItLeaves(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   turns.CallClass
	}{
		{200, `{"id":"a/b"}`, turns.ClassAmbiguous}, {200, `{}`, turns.ClassAmbiguous}, {200, `[`, turns.ClassAmbiguous},
		{429, "", turns.ClassThrottled}, {401, "", turns.ClassTerminal},
	} {
		c, call := client(t, llmtest.Play(t, func(x *llmtest.Exchange) { x.Status(tt.status, tt.body) }).URL(), conversation)
		_, err := c.Prepare(t.Context(), call)
		var failed *turns.CallError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, tt.want, failed.Class)
		llmtest.RequireNoSecrets(t, failed)
	}
	c, call := client(t, "http://127.0.0.1:1", conversation)
	call.MaySend = func() bool { return false }
	_, err := c.Prepare(t.Context(), call)
	require.Error(t, err)
}

func TestASecondCallInAConversationIsHeldOffWhileTheFirstRuns(t *testing.T) {
	s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{{Match: scripted.Match{Nth: 1}, Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: 4},
		Steps: []scripted.Step{{At: scripted.AfterDelta(2), Do: scripted.DoReset}, {At: scripted.AfterDelta(3), Do: scripted.DoWait, Gate: "mid"}}}}}})
	c, call := client(t, s.URL(), conversation)
	var err error
	call.Session, err = c.Prepare(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, turns.ClassAmbiguous, llmtest.Collect(t, c.Generate(t.Context(), call)).Err.Class)
	require.NoError(t, s.WaitGate(t.Context(), "mid", 1))
	second := llmtest.Collect(t, c.Generate(t.Context(), call))
	require.Equal(t, turns.ClassInFlightElsewhere, second.Err.Class)
	require.Equal(t, "conversation_locked", second.Err.Code)
	require.Equal(t, 1, s.Counts().Generations)
}

func TestAnAnswerInAConversationIsReadToWhatWasSentLast(t *testing.T) {
	user := `{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}`
	output := `{"type":"function_call_output","call_id":"c","output":"1"}`
	call := `{"type":"function_call","call_id":"d","name":"f","arguments":"{}"}`
	hm := `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}`
	cut := strings.Replace(item, "completed", "incomplete", 1)
	page := func(more bool, items ...string) string {
		return fmt.Sprintf(`{"object":"list","data":[%s],"last_id":"item_1","has_more":%t}`, strings.Join(items, ","), more)
	}
	for name, tt := range map[string]struct {
		pages []string
		text  string
		stop  turns.StopReason
	}{
		"behind words":       {[]string{page(false, item, hm, user, item)}, "whole answer", turns.StopEndTurn},
		"behind a result":    {[]string{page(true, call, item, output)}, "whole answer", turns.StopToolUse},
		"over several pages": {[]string{page(true, item), page(true, hm), page(true, user)}, "whole answer", turns.StopEndTurn},
		"and is cut short":   {[]string{page(false, cut, user)}, "whole answer", turns.StopLength},
		"that has nothing":   {[]string{page(false)}, "", ""},
		"that has no answer": {[]string{page(false, user)}, "", ""},
	} {
		p := llmtest.Play(t, func(x *llmtest.Exchange) {
			require.Equal(t, "/v1/conversations/conv_1/items", x.Path)
			require.Equal(t, "desc", x.Query.Get("order"))
			require.Equal(t, x.N > 1, x.Query.Get("after") == "item_1")
			x.Status(200, tt.pages[x.N-1])
		})
		c, made := client(t, p.URL(), conversation)
		asked := lost(made)
		asked.ResponseID = ""
		r := llmtest.Collect(t, c.Recover(t.Context(), asked))
		require.Equal(t, len(tt.pages), p.Requests(), name)
		if tt.text == "" {
			require.ErrorIs(t, r.Err, turns.ErrNotThere, name)
			continue
		}
		require.Nil(t, r.Err, name)
		require.Equal(t, tt.text, r.Text, name)
		require.Equal(t, tt.stop, r.Finished.StopReason, name)
		require.Nil(t, r.Usage)
	}
	endless := llmtest.Play(t, func(x *llmtest.Exchange) { x.Status(200, page(true, item)) })
	c, made := client(t, endless.URL(), conversation)
	asked := lost(made)
	asked.ResponseID = ""
	require.Equal(t, turns.ClassTerminal, llmtest.Collect(t, c.Recover(t.Context(), asked)).Err.Class)
	require.Equal(t, 16, endless.Requests())
}

func TestAnAnswerWhoseIdIsKnownIsFoundByThatWithItsUsage(t *testing.T) {
	for _, tt := range []struct {
		status    int
		response  string
		session   string
		usage     bool
		class     turns.CallClass
		questions int
	}{
		{200, `{"id":"resp_1","status":"completed","output":[` + item + `],"usage":{"input_tokens":2,"output_tokens":3}}`, "conv_1", true, "", 1},
		{404, "", "conv_1", false, "", 2},
		{404, "", "", false, turns.ClassTerminal, 1},
		{502, "", "conv_1", false, turns.ClassAmbiguous, 1},
		{200, `{"id":"resp_1","status":"in_progress"}`, "conv_1", false, turns.ClassInFlightElsewhere, 1},
	} {
		p := llmtest.Play(t, func(x *llmtest.Exchange) {
			if x.Path == "/v1/responses/resp_1" {
				x.Status(tt.status, tt.response)
				return
			}
			x.Status(200, `{"data":[`+item+`]}`)
		})
		c, made := client(t, p.URL(), conversation)
		asked := lost(made)
		asked.Session = tt.session
		r := llmtest.Collect(t, c.Recover(t.Context(), asked))
		require.Equal(t, tt.questions, p.Requests())
		if tt.class != "" {
			require.Equal(t, tt.class, r.Err.Class)
			continue
		}
		require.Equal(t, "whole answer", r.Text)
		require.Equal(t, tt.usage, r.Usage != nil)
	}
}

func TestStoppingNeedsAResponseAndAnEndpointThatCan(t *testing.T) {
	p := llmtest.Play(t, func(x *llmtest.Exchange) { x.Status(500, "") })
	for _, caps := range []turns.Capabilities{{Resume: true}, background} {
		c, call := client(t, p.URL(), caps)
		asked := lost(call)
		if caps.Cancel {
			asked.ResponseID = ""
		}
		var failed *turns.CallError
		require.ErrorAs(t, c.Stop(t.Context(), asked), &failed)
		require.Equal(t, turns.ClassTerminal, failed.Class)
	}
	require.Zero(t, p.Requests())
}

func TestAnOriginIsReadOfOurOwnMetadataAlone(t *testing.T) {
	for _, metadata := range []string{`null`, `{}`, `{"turnd_turn":"x"}`, `{"a":7}`, `[]`} {
		c, _ := client(t, llmtest.Play(t, func(x *llmtest.Exchange) { x.Status(200, `{"id":"resp_1","metadata":`+metadata+`}`) }).URL(), background)
		_, err := c.OriginOf(t.Context(), "resp_1")
		require.ErrorIs(t, err, turns.ErrNotThere, metadata)
	}
}
