package responses

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strconv"

	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

var (
	errCannotAsk  = errors.New("the endpoint is not set up to be asked about its calls")
	errNoID       = errors.New("neither a response nor a conversation is known to ask about")
	errStillRuns  = errors.New("the response is still being made")
	errTooManyOut = errors.New("the conversation holds more than any answer has")
)

// continuation is a stream that broke off.
type continuation struct {
	turns.ContinuationBase
	stream *stream
}

// marked tells the failure of a stream where to go on: at a response that is known and may still be made, on a server that
// numbers its events. An error event that is not the response's own leaves its outcome unknown.
func (s *stream) marked(err error) error {
	var failed *turns.CallError
	if !errors.As(err, &failed) || s.response == "" || s.over {
		return err
	}
	if isEvent(failed) {
		failed.Class = turns.ClassAmbiguous
	}
	if s.last >= 0 && failed.Class != turns.ClassTerminal {
		failed.Continuation = &continuation{stream: s}
	}
	return err
}

// sessionID is the form of ids of conversations.
var sessionID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// Prepare implements turns.Recoverer's method for this endpoint: it makes a conversation for the call.
func (c *Client) Prepare(ctx context.Context, call turns.Call) (string, error) {
	route := call.Request.Route
	if !inSession(route.Capabilities) {
		return "", nil
	}
	post := c.post(http.MethodPost, "conversations", []byte("{}"), route.Limits)
	post.MaySend = call.MaySend
	var made struct {
		ID string `json:"id"`
	}
	if err := c.ask(ctx, post, &made); err != nil {
		return "", err
	}
	if !sessionID.MatchString(made.ID) {
		return "", wire.Answered(turns.ClassAmbiguous, wire.ErrBadAnswer)
	}
	return made.ID, nil
}

// ask makes a request and reads its answer.
func (c *Client) ask(ctx context.Context, post wire.Post, answer any) error {
	return c.http.AskJSON(ctx, post, wire.Vendor{RequestID: openai.RequestIDs(), Classify: classify}, answer)
}

// Recover implements turns.Recoverer's method for this endpoint.
func (c *Client) Recover(ctx context.Context, lost turns.LostCall) iter.Seq2[turns.Delta, error] {
	return func(yield func(turns.Delta, error) bool) {
		caps := lost.Request.Route.Capabilities
		known, _ := lost.Continuation.(*continuation)
		switch {
		case caps.Resume && (known != nil || lost.ResponseID != ""):
			c.resume(ctx, lost, known, yield)
		case inSession(caps) && (lost.ResponseID != "" || lost.Session != ""):
			c.lookUp(ctx, lost, yield)
		case caps.Resume || inSession(caps):
			yield(nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errNoID})
		default:
			yield(nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errCannotAsk})
		}
	}
}

// resume reads the stream of a response once more, from where it broke off if that is known.
func (c *Client) resume(ctx context.Context, lost turns.LostCall, known *continuation, yield func(turns.Delta, error) bool) {
	s, id, query := &stream{model: lost.Request.Route.ProviderModel, last: -1}, lost.ResponseID, "?stream=true"
	if known != nil {
		s, id = known.stream, known.stream.response
		s.seen.responded = false
		query += "&starting_after=" + strconv.Itoa(s.last)
	}
	post := c.post(http.MethodGet, "responses/"+url.PathEscape(id)+query, nil, lost.Request.Route.Limits)
	for d, err := range c.http.Stream(ctx, post, vendor(s)) {
		var failed *turns.CallError
		switch {
		case !errors.As(err, &failed):
			s.seen.add(d)
			if !yield(d, nil) {
				return
			}
		case s.saysNothing(failed):
			c.retrieve(ctx, lost, id, s, yield)
		default:
			yield(nil, s.explained(failed))
		}
	}
}

// saysNothing says that a stream which was asked for does not say what became of the response, and that a retrieval may: the
// server would not stream it, or ended the stream where the response was stopped, for which there is no event, or said an
// error that is not the response's.
func (s *stream) saysNothing(err *turns.CallError) bool {
	return err.HTTPStatus == http.StatusBadRequest || errors.Is(err, wire.ErrNotAStream) || errors.Is(err, wire.ErrNoTerminal) ||
		!s.over && isEvent(err)
}

func isEvent(err *turns.CallError) bool {
	var event *wire.EventError
	return errors.As(err, &event)
}

// explained is the failure of a stream that was asked for: how the response itself failed, if the stream said that.
func (s *stream) explained(failed *turns.CallError) error {
	if s.over {
		return outcome(*failed)
	}
	return s.marked(wire.NotThere(failed))
}

// outcome tells that the call which was asked about had failed so.
func outcome(call turns.CallError) *turns.CallError {
	return &turns.CallError{
		Class: turns.ClassTerminal, Phase: call.Phase, HTTPStatus: call.HTTPStatus, RequestID: call.RequestID, Code: call.Code,
		Cause: &turns.OutcomeError{Call: &call},
	}
}

// retrieve gives what a response is now, without what its stream gave out before.
func (c *Client) retrieve(ctx context.Context, lost turns.LostCall, id string, before *stream, yield func(turns.Delta, error) bool) {
	deltas, err := c.retrieved(ctx, lost, id)
	give(before.seen.rest(deltas), before.marked(err), yield)
}

// retrieved is what a response is now: what it holds, and how it failed or that it is still made.
func (c *Client) retrieved(ctx context.Context, lost turns.LostCall, id string) ([]turns.Delta, error) {
	var r response
	post := c.post(http.MethodGet, "responses/"+url.PathEscape(id), nil, lost.Request.Route.Limits)
	if err := c.ask(ctx, post, &r); err != nil {
		return nil, err
	}
	if r.Status == "queued" || r.Status == "in_progress" {
		return nil, wire.Answered(turns.ClassInFlightElsewhere, errStillRuns)
	}
	s := &stream{model: lost.Request.Route.ProviderModel, last: -1}
	deltas, err := s.conclude(&r, []turns.Delta{turns.Responded{HTTPStatus: http.StatusOK}})
	var ended *wire.EventError
	if errors.As(err, &ended) {
		failed := wire.Answered(ended.Verdict.Class, ended)
		failed.Code = ended.Verdict.Word
		err = outcome(*failed)
	}
	return deltas, err
}

// give yields deltas and then the failure, if there is one.
func give(deltas []turns.Delta, err error, yield func(turns.Delta, error) bool) {
	for _, d := range deltas {
		if !yield(d, nil) {
			return
		}
	}
	if err != nil {
		yield(nil, err)
	}
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
	var r response
	return c.ask(ctx, c.post(http.MethodPost, "responses/"+url.PathEscape(lost.ResponseID)+"/cancel", nil, route.Limits), &r)
}

// OriginOf implements turns.Recoverer's method for this endpoint. A response that is not ours is turns.ErrNotThere.
func (c *Client) OriginOf(ctx context.Context, responseID string) (turns.Origin, error) {
	var r response
	if err := c.ask(ctx, c.post(http.MethodGet, "responses/"+url.PathEscape(responseID), nil, c.limits), &r); err != nil {
		return turns.Origin{}, err
	}
	var metadata map[string]string
	_ = json.Unmarshal(r.Metadata, &metadata) // what can't be read is not ours
	origin, ok := wire.OriginOf(metadata)
	if !ok {
		return turns.Origin{}, wire.Answered(turns.ClassTerminal, turns.ErrNotThere)
	}
	return origin, nil
}
