package interactions_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

func open(t *testing.T, p *llmtest.Provider) *interactions.Client {
	t.Helper()
	http := wire.NewClient(wire.Options{})
	t.Cleanup(http.Close)
	return interactions.New(http, llm.Endpoint{BaseURL: p.URL()})
}

// lost is a call whose interaction is known.
func lost() turns.LostCall {
	return turns.LostCall{Request: turns.Request{Route: turns.Route{ProviderModel: model, Capabilities: resume}}, ResponseID: "v1_a"}
}

// first is the beginning of a stream that breaks off behind its second delta.
var first = []string{created,
	`{"event_type":"step.start","event_id":"e2","index":0,"step":{"type":"model_output"}}`,
	`{"event_type":"step.delta","event_id":"e3","index":0,"delta":{"type":"text","text":"a"}}`,
	`{"event_type":"step.delta","event_id":"e4","index":0,"delta":{"type":"text","text":"b"}}`,
}

var rest = []string{
	`{"event_type":"step.delta","event_id":"e5","index":0,"delta":{"type":"text","text":"c"}}`,
	completed(`"status":"completed","usage":{"total_input_tokens":9,"total_output_tokens":3}`),
}

// broken makes a call that breaks off, and returns how.
func broken(t *testing.T, c *interactions.Client) turns.LostCall {
	t.Helper()
	req, err := c.Build(lost().Request.Route, hello())
	require.NoError(t, err)
	r := llmtest.Collect(t, c.Generate(t.Context(), turns.Call{Request: req}))
	require.Equal(t, "ab", r.Text)
	l := lost()
	l.Continuation = r.Err.Continuation
	require.NotNil(t, l.Continuation)
	return l
}

// texts are what a sequence of deltas adds to blocks that others may have begun.
func texts(t *testing.T, c *interactions.Client, l turns.LostCall) (text string, failed *turns.CallError) {
	t.Helper()
	for d, err := range c.Recover(t.Context(), l) {
		if err != nil {
			require.ErrorAs(t, err, &failed)
		}
		if more, is := d.(turns.BlockDelta); is {
			text += more.Text
		}
	}
	return text, failed
}

func TestAServerThatBeginsAnewRepeatsNothing(t *testing.T) {
	for name, again := range map[string][]string{"from where it broke off": rest, "from the beginning": append(first[:len(first):len(first)], rest...)} {
		t.Run(name, func(t *testing.T) {
			p := llmtest.Play(t, func(x *llmtest.Exchange) {
				if x.N == 1 {
					x.Stream(events(first...))
					return
				}
				require.Equal(t, "/v1beta/interactions/v1_a", x.Path)
				require.Empty(t, x.Body)
				x.Stream(events(again...))
			})
			c := open(t, p)
			text, failed := texts(t, c, broken(t, c))
			require.Nil(t, failed)
			require.Equal(t, "c", text)
		})
	}
}

const keptSteps = `"steps":[{"type":"thought","signature":"s","summary":[{"type":"text","text":"hm"}]},{"type":"google_search_call"},` +
	`{"type":"model_output","content":[{"type":"text","text":"abc"}]},{"type":"function_call","id":"1","name":"f","arguments":{"n":1}}]`

// A server may refuse to stream what it knows, or end the stream without a word; it is asked for the interaction then.
func TestAnInteractionThatCanNotBeStreamedIsRetrieved(t *testing.T) {
	for name, refuse := range map[string]func(*llmtest.Exchange){
		"refused":   func(x *llmtest.Exchange) { x.Status(400, `{"error":{"code":"invalid_argument"}}`) },
		"no stream": func(x *llmtest.Exchange) { x.Status(200, `{"id":"v1_a"}`, "Content-Type: application/json") },
		"no end":    func(x *llmtest.Exchange) { x.Stream(events(created)) },
	} {
		t.Run(name, func(t *testing.T) {
			kept := ""
			p := llmtest.Play(t, func(x *llmtest.Exchange) {
				if x.Header.Get("Accept") == "text/event-stream" {
					refuse(x)
					return
				}
				x.Status(200, kept, "Content-Type: application/json")
			})
			c := open(t, p)
			kept = `{"id":"v1_a","status":"requires_action","usage":{"total_input_tokens":9,"total_output_tokens":3},` + keptSteps + `}`
			r := llmtest.Collect(t, c.Recover(t.Context(), lost()))
			require.Nil(t, r.Err, "%v", r.Err)
			require.Equal(t, "abc", r.Text)
			require.Len(t, r.Blocks, 3)
			require.Equal(t, turns.StopToolUse, r.Finished.StopReason)
			require.Equal(t, int64(3), r.Usage.Output)
			require.Equal(t, turns.Responded{HTTPStatus: 200}, r.Deltas[0])
			require.Equal(t, "v1_a", r.ResponseID)

			kept = `{"id":"v1_a","status":"in_progress"}`
			_, failed := texts(t, c, lost())
			require.Contains(t, []turns.CallClass{turns.ClassInFlightElsewhere, turns.ClassAmbiguous}, failed.Class)

			for status, want := range map[string]turns.CallClass{"failed": turns.ClassTransient, "cancelled": turns.ClassTerminal} {
				kept = `{"id":"v1_a","status":"` + status + `"}`
				_, failed = texts(t, c, lost())
				var told *turns.OutcomeError
				require.ErrorAs(t, failed, &told)
				require.Equal(t, turns.ClassTerminal, failed.Class)
				require.Equal(t, want, told.Call.Class)
			}

			kept = `[`
			_, failed = texts(t, c, lost())
			require.Equal(t, turns.ClassAmbiguous, failed.Class)
		})
	}
}

// What was given out before can't be compared with what is retrieved here, so whoever asks begins anew.
func TestARestThatCanNotBeStreamedHasToBeAskedForFromTheBeginning(t *testing.T) {
	p := llmtest.Play(t, func(x *llmtest.Exchange) {
		switch {
		case x.N == 1:
			x.Stream(events(first...))
		case x.Header.Get("Accept") == "text/event-stream":
			x.Status(400, `{"error":{"code":"invalid_argument"}}`)
		default:
			x.Status(200, `{"id":"v1_a","status":"completed",`+keptSteps+`}`, "Content-Type: application/json")
		}
	})
	c := open(t, p)
	text, failed := texts(t, c, broken(t, c))
	require.Empty(t, text)
	require.Nil(t, failed.Continuation)
	require.NotEqual(t, turns.ClassTerminal, failed.Class, "asking again helps")
	text, failed = texts(t, c, lost())
	require.Nil(t, failed)
	require.Contains(t, text, "abc")
}

func TestAnInteractionThatIsOverNeedsNoStopping(t *testing.T) {
	status := "completed"
	p := llmtest.Play(t, func(x *llmtest.Exchange) {
		if strings.HasSuffix(x.Path, "/cancel") {
			x.Status(400, `{"error":{"code":"failed_precondition"}}`)
			return
		}
		x.Status(200, `{"id":"v1_a","status":"`+status+`"}`)
	})
	c := open(t, p)
	require.NoError(t, c.Stop(t.Context(), lost()))
	status = "in_progress"
	require.Error(t, c.Stop(t.Context(), lost()))
	l := lost()
	l.Request.Route.Capabilities.Cancel = false
	require.Error(t, c.Stop(t.Context(), l), "an endpoint that is not set up for it is not asked")
	l = lost()
	l.ResponseID = ""
	require.Error(t, c.Stop(t.Context(), l))
}

func TestWithoutResumeAStreamThatBrokeOffIsLost(t *testing.T) {
	p := llmtest.Play(t, func(x *llmtest.Exchange) { x.Stream(events(first...)) })
	c := open(t, p)
	req, err := c.Build(turns.Route{ProviderModel: model}, hello())
	require.NoError(t, err)
	r := llmtest.Collect(t, c.Generate(t.Context(), turns.Call{Request: req}))
	require.Nil(t, r.Err.Continuation)
}
