package llmtest

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// runFaults plays what goes wrong on the wire and in the stream. Each costs exactly one request.
func runFaults(t *testing.T, a llm.Adapter) {
	step := func(at scripted.Point, do scripted.Action) scripted.Step { return scripted.Step{At: at, Do: do} }
	cut := turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseBody, HTTPStatus: 200}
	overloaded := turns.CallError{Class: turns.ClassTransient, Phase: turns.PhaseBody, HTTPStatus: 200, Code: "overloaded_error"}
	for _, tt := range []struct {
		name  string
		step  scripted.Step
		parts bool // some of the text came
		want  turns.CallError
	}{
		{"reset once the request was read", step(scripted.AtRequestRead, scripted.DoReset), false, turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseWritten}},
		{"closed once the request was read", step(scripted.AtRequestRead, scripted.DoClose), false, turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseWritten}},
		{"reset before the headers", step(scripted.AtBeforeHeaders, scripted.DoReset), false, turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseWritten}},
		{"closed after the headers", step(scripted.AtAfterHeaders, scripted.DoClose), false, turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseHeaders, HTTPStatus: 200}},
		{"reset in the text", step(scripted.AfterDelta(3), scripted.DoReset), true, cut},
		{"closed in the text", step(scripted.AfterDelta(3), scripted.DoClose), true, cut},
		{"closed before the terminal event", step(scripted.AtBeforeTerminal, scripted.DoClose), true, cut},
		{"garbage", step(scripted.AfterDelta(3), scripted.DoGarbage), true, cut},
		{"an error event before the text", scripted.Step{At: scripted.AfterDelta(0), Do: scripted.DoErrorEvent, Error: "overloaded_error"}, false, overloaded},
		{"an error event in the text", scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoErrorEvent, Error: "overloaded_error"}, true, overloaded},
		{"a line that never ends", step(scripted.AfterDelta(3), scripted.DoEndless), true, cut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := scripted.Start(t, planned(scripted.Plan{Reply: &scripted.Reply{Deltas: 8}, Steps: []scripted.Step{tt.step}}))
			r := open(t, a, s.URL(), turns.Limits{}).collect(t)
			requireFailed(t, tt.want, r)
			require.Equal(t, tt.parts, r.Text != "", "text before the fault: %q", r.Text)
			require.NotContains(t, r.Text, "error", "an error is no text")
			require.Equal(t, 1, s.Counts().Requests)
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		r := open(t, a, "http://"+l.Addr().String(), turns.Limits{}).collect(t)
		requireFailed(t, turns.CallError{Class: turns.ClassNotSent, Phase: turns.PhaseNone}, r)
	})
	t.Run("no TLS where TLS is spoken", func(t *testing.T) {
		p := Play(t, func(x *Exchange) { x.Status(200, "") })
		r := open(t, a, "https"+p.URL()[len("http"):], turns.Limits{}).collect(t)
		requireFailed(t, turns.CallError{Class: turns.ClassNotSent, Phase: turns.PhaseNone}, r)
		require.Zero(t, p.Requests())
	})
	t.Run("a good status without a stream", func(t *testing.T) {
		for _, headers := range [][]string{{"Content-Type: application/json"}, {"Content-Type: text/event-stream", "Content-Encoding: gzip"}, nil} {
			p := Play(t, func(x *Exchange) { x.Status(200, `{"id":"x"}`, headers...) })
			r := open(t, a, p.URL(), turns.Limits{}).collect(t)
			requireFailed(t, turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseHeaders, HTTPStatus: 200}, r)
		}
	})
	t.Run("an answer that is no HTTP", func(t *testing.T) {
		p := Play(t, func(x *Exchange) { x.Say("secret words, and no HTTP\r\n\r\n"); x.Reset() })
		requireFailed(t, turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseWritten}, open(t, a, p.URL(), turns.Limits{}).collect(t))
	})
}

// runStatuses plays what every vendor's statuses mean alike.
func runStatuses(t *testing.T, a llm.Adapter) {
	v := Voices[a.Wire]
	for _, tt := range []struct {
		name    string
		status  int
		body    string
		headers []string
		want    turns.CallError
	}{
		{"429 with seconds", 429, v.ErrorBody("rate_limit_error"), []string{"Retry-After: 30"}, hinted(turns.ClassThrottled, 30*time.Second)},
		{"429 with a fraction", 429, "", []string{"Retry-After: 0.25"}, hinted(turns.ClassThrottled, 250*time.Millisecond)},
		{"429 with milliseconds", 429, "", []string{"Retry-After: 9", "Retry-After-Ms: 1500"}, hinted(turns.ClassThrottled, 1500*time.Millisecond)},
		{"429 with a date", 429, "", []string{"Date: Sun, 06 Nov 2044 08:49:37 GMT", "Retry-After: Sun, 06 Nov 2044 09:49:37 GMT"}, hinted(turns.ClassThrottled, time.Hour)},
		{"503 of the vendor with a hint", 503, v.ErrorBody("overloaded_error"), []string{"Retry-After: 2"}, hinted(turns.ClassThrottled, 2*time.Second)},
		{"503 of the vendor", 503, v.ErrorBody("overloaded_error"), nil, turns.CallError{Class: turns.ClassTransient}},
		{"503 of somebody else", 503, "<html>", []string{"Retry-After: 2"}, hinted(turns.ClassAmbiguous, 2*time.Second)},
		{"500 of the vendor", 500, v.ErrorBody("api_error"), nil, turns.CallError{Class: turns.ClassTransient}},
		{"500 of somebody else", 500, `{"error":"upstream"}`, nil, turns.CallError{Class: turns.ClassAmbiguous}},
		{"500 without a body", 500, "", nil, turns.CallError{Class: turns.ClassAmbiguous}},
		{"504", 504, v.ErrorBody("timeout_error"), nil, turns.CallError{Class: turns.ClassAmbiguous}},
		{"408", 408, v.ErrorBody("timeout_error"), nil, turns.CallError{Class: turns.ClassAmbiguous}},
		{"409", 409, v.ErrorBody("conflict_error"), nil, turns.CallError{Class: turns.ClassAmbiguous}},
		{"401", 401, v.ErrorBody("authentication_error"), nil, turns.CallError{Class: turns.ClassTerminal}},
		{"404 of somebody else", 404, "not here", nil, turns.CallError{Class: turns.ClassTerminal}},
		{"a code that is text", 400, v.ErrorBody("the user's own words"), nil, turns.CallError{Class: turns.ClassTerminal}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := Play(t, func(x *Exchange) { x.Status(tt.status, tt.body, tt.headers...) })
			r := open(t, a, p.URL(), turns.Limits{}).collect(t)
			tt.want.Phase, tt.want.HTTPStatus = turns.PhaseHeaders, tt.status
			require.Empty(t, cmp.Diff(&tt.want, r.Err, cmpopts.IgnoreFields(turns.CallError{}, "Cause", "Code")))
			require.Equal(t, 1, p.Requests())
		})
	}
	t.Run("redirects are not followed", func(t *testing.T) {
		other := Play(t, func(x *Exchange) { x.Stream(v.Whole("stolen")) })
		for _, status := range []int{301, 302, 303, 307, 308} {
			p := Play(t, func(x *Exchange) { x.Status(status, "", "Location: "+other.URL()) })
			r := open(t, a, p.URL(), turns.Limits{}).collect(t)
			requireFailed(t, turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseHeaders, HTTPStatus: status}, r)
			require.Equal(t, 1, p.Requests())
		}
		require.Zero(t, other.Connections())
	})
	t.Run("an endless error body is cut", func(t *testing.T) {
		p := Play(t, func(x *Exchange) {
			x.Say("HTTP/1.1 500 Status\r\nContent-Length: 100000000\r\n\r\n")
			for range 100 {
				x.Say(string(make([]byte, 1<<20)))
			}
		})
		r := open(t, a, p.URL(), turns.Limits{}).collect(t)
		requireFailed(t, turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseHeaders, HTTPStatus: http.StatusInternalServerError}, r)
	})
}

func hinted(class turns.CallClass, wait time.Duration) turns.CallError {
	return turns.CallError{Class: class, RetryAfter: wait, HasRetryAfter: true}
}

// requireFailed compares an error apart from its cause and the request's id.
func requireFailed(t testing.TB, want turns.CallError, r Result) {
	t.Helper()
	require.NotNil(t, r.Err, "the call was whole")
	require.Empty(t, cmp.Diff(&want, r.Err, cmpopts.IgnoreFields(turns.CallError{}, "Cause", "RequestID")), "%v", r.Err.Cause)
	require.Error(t, r.Err.Cause)
}
