package interactions

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

var (
	errCannotAsk = errors.New("the endpoint is not set up to be asked about its calls")
	errNoID      = errors.New("no interaction is known to ask about")
	errStillRuns = errors.New("the interaction is still being made")
	errAskAnew   = errors.New("the rest of the interaction can't be had by itself, only all of it")
)

// continuation is a stream that broke off.
type continuation struct {
	turns.ContinuationBase
	stream *stream
}

// mark tells the failure of a stream where to go on: at an interaction that is known and has not ended, on a server that
// names its events.
func (s *stream) mark(err *turns.CallError) {
	if s.response != "" && s.last != "" && !s.over && err.Class != turns.ClassTerminal {
		err.Continuation = &continuation{stream: s}
	}
}

// Recover implements turns.Recoverer's method for this endpoint.
func (c *Client) Recover(ctx context.Context, lost turns.LostCall) iter.Seq2[turns.Delta, error] {
	return func(yield func(turns.Delta, error) bool) {
		known, _ := lost.Continuation.(*continuation)
		switch {
		case !lost.Request.Route.Capabilities.Resume:
			yield(nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errCannotAsk})
		case known == nil && lost.ResponseID == "":
			yield(nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errNoID})
		default:
			c.resume(ctx, lost, known, yield)
		}
	}
}

// asking is one asking for the answer of a call.
type asking struct {
	*Client
	lost   turns.LostCall
	id     string
	stream *stream
	// anew says that the answer is asked for from its beginning, and nothing of it was given out by now.
	anew bool
	// responded says that a good answer was announced.
	responded bool
	yield     func(turns.Delta, error) bool
}

// resume reads the stream of an interaction once more, from where it broke off if that is known. Where the stream does not
// say how the interaction ended, the interaction is asked.
func (c *Client) resume(ctx context.Context, lost turns.LostCall, known *continuation, yield func(turns.Delta, error) bool) {
	a := asking{Client: c, lost: lost, id: lost.ResponseID, anew: known == nil, yield: yield}
	query := "?stream=true"
	if known == nil {
		a.stream = &stream{model: lost.Request.Route.ProviderModel}
	} else {
		a.stream, a.id = known.stream, known.stream.response
		a.stream.behind = false
		query += "&last_event_id=" + url.QueryEscape(a.stream.last)
	}
	post := c.post(http.MethodGet, "/"+url.PathEscape(a.id)+query, nil, lost.Request.Route.Limits)
	for d, err := range c.http.Stream(ctx, post, vendor(a.stream)) {
		var failed *turns.CallError
		if errors.As(err, &failed) {
			a.failed(ctx, failed)
			return
		}
		switch d.(type) {
		case turns.BlockStarted:
			a.anew = false
		case turns.Responded:
			a.responded = true
		}
		if !yield(d, nil) {
			return
		}
	}
}

// failed says what the end of a stream means that was no good one.
func (a *asking) failed(ctx context.Context, failed *turns.CallError) {
	switch {
	case a.stream.over:
		a.yield(nil, outcome(*failed))
	case saysNoEnd(failed):
		a.retrieve(ctx, failed)
	default:
		a.stream.mark(failed)
		a.yield(nil, wire.NotThere(failed))
	}
}

// saysNoEnd reports whether a server answered and did not say what became of the interaction: it would not stream, the
// stream was over too early, or it held an error.
func saysNoEnd(err *turns.CallError) bool {
	var event *wire.EventError
	return err.HTTPStatus == http.StatusBadRequest || errors.Is(err, wire.ErrNotAStream) || errors.Is(err, wire.ErrNoTerminal) ||
		errors.As(err, &event)
}

// retrieve says what an interaction is now, in place of how its stream failed. A whole one is given out where nothing of it
// was before; else whoever asks has to ask from the beginning.
func (a *asking) retrieve(ctx context.Context, failed *turns.CallError) {
	var i interaction
	if err := a.ask(ctx, a.post(http.MethodGet, "/"+url.PathEscape(a.id), nil, a.lost.Request.Route.Limits), &i); err != nil {
		a.yield(nil, err)
		return
	}
	if notYet[i.Status] {
		if a.stream.mark(failed); failed.Phase != turns.PhaseBody {
			failed = wire.Answered(turns.ClassInFlightElsewhere, errStillRuns)
		}
		a.yield(nil, failed)
		return
	}
	out, err := (&stream{model: a.stream.model, response: a.stream.response}).all(&i)
	var ended *wire.EventError
	switch {
	case errors.As(err, &ended):
		told := wire.Answered(ended.Verdict.Class, ended)
		told.Code = ended.Verdict.Word
		a.yield(nil, outcome(*told))
	case !a.anew:
		a.yield(nil, wire.Answered(turns.ClassAmbiguous, errAskAnew))
	default:
		if !a.responded {
			out = append([]turns.Delta{turns.Responded{HTTPStatus: http.StatusOK}}, out...)
		}
		for _, d := range out {
			if !a.yield(d, nil) {
				return
			}
		}
	}
}

// all is an interaction that has ended, as its stream would have given it, but for where its text is cut.
func (s *stream) all(i *interaction) ([]turns.Delta, error) {
	var parts []part
	_ = json.Unmarshal(i.Steps, &parts) // what can't be read holds nothing that could be said
	var out []turns.Delta
	out = s.named(i.ID, out)
	for n := range parts {
		s.begin(parts[n].Type, n)
		out = s.endStep(s.start(&parts[n], out))
	}
	return s.conclude(i, out)
}

// outcome tells that the call which was asked about had failed so.
func outcome(call turns.CallError) *turns.CallError {
	return &turns.CallError{
		Class: turns.ClassTerminal, Phase: call.Phase, HTTPStatus: call.HTTPStatus, RequestID: call.RequestID, Code: call.Code,
		Cause: &turns.OutcomeError{Call: &call},
	}
}

// ask makes a request and reads its answer.
func (c *Client) ask(ctx context.Context, post wire.Post, answer any) error {
	return c.http.AskJSON(ctx, post, vendor(nil), answer)
}

// Stop implements turns.Recoverer's method for this endpoint.
func (c *Client) Stop(ctx context.Context, lost turns.LostCall) error {
	route := lost.Request.Route
	switch {
	case !route.Capabilities.Cancel:
		return &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errCannotAsk}
	case lost.ResponseID == "":
		return &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errNoID}
	}
	_, err := c.http.Ask(ctx, c.post(http.MethodPost, "/"+url.PathEscape(lost.ResponseID)+"/cancel", nil, route.Limits), vendor(nil))
	var refused *turns.CallError
	if errors.As(err, &refused) && refused.HTTPStatus == http.StatusBadRequest {
		// A server may refuse to stop what is over, which is what was wanted.
		var i interaction
		if c.ask(ctx, c.post(http.MethodGet, "/"+url.PathEscape(lost.ResponseID), nil, route.Limits), &i) == nil && !notYet[i.Status] {
			return nil
		}
	}
	if err != nil {
		return wire.NotThere(err)
	}
	return nil
}

// OriginOf implements turns.Recoverer's method for this endpoint. An interaction that is not ours is turns.ErrNotThere.
func (c *Client) OriginOf(ctx context.Context, responseID string) (turns.Origin, error) {
	var i interaction
	if err := c.ask(ctx, c.post(http.MethodGet, "/"+url.PathEscape(responseID), nil, c.limits), &i); err != nil {
		return turns.Origin{}, err
	}
	origin, ok := wire.OriginOf(i.Labels)
	if !ok {
		return turns.Origin{}, wire.Answered(turns.ClassTerminal, turns.ErrNotThere)
	}
	return origin, nil
}
