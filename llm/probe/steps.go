package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// errNoAnswer ends a probe at its first call.
var errNoAnswer = errors.New("the endpoint does not answer a usual call")

// tryKey sends the same bytes twice under one key, and where that gave one response, once more under another: an endpoint
// that keeps answers by what was asked would give the same one then too.
func tryKey(ctx context.Context, s *session) (Finding, error) {
	lost, err := s.prepare(ctx)
	if err != nil {
		return Finding{}, err
	}
	first := s.send(ctx, callOf(lost), false)
	if !first.whole {
		return Finding{}, fmt.Errorf("%w: %s", errNoAnswer, first.failure())
	}
	second := s.send(ctx, callOf(lost), false)
	switch {
	case second.err != nil && refusesRepeat(second.err):
		return seen(string(turns.IdempotencyAdvisory), "the second send was refused (%s): nothing is made twice, and nothing given again", second.failure()), nil
	case !second.whole:
		return seen(Unclear, "the second send failed: %s", second.failure()), nil
	case first.responseID == "" || second.responseID == "":
		return seen(Unclear, "responses have no ids to tell them apart by"), nil
	case first.responseID != second.responseID:
		return seen(string(turns.IdempotencyNone), "two sends made two responses, %s and %s", first.responseID, second.responseID), nil
	case first.text != second.text:
		return seen(string(turns.IdempotencyNone), "two sends got one response id, %s, and two texts", first.responseID), nil
	}
	other := callOf(lost)
	other.Key = "turnd-probe-" + uuid.NewString()
	third := s.send(ctx, other, false)
	if !third.whole {
		return seen(Unclear, "both sends got response %s, and one under another key failed: %s", first.responseID, third.failure()), nil
	}
	if third.responseID == first.responseID {
		return seen(string(turns.IdempotencyNone), "another key got the same response %s: answers are kept by what was asked", first.responseID), nil
	}
	return seen(string(turns.IdempotencyEnforced), "two sends got one response, %s, and another key another", first.responseID), nil
}

// refusesRepeat reports a refusal for the reason that the same work is known.
func refusesRepeat(err *turns.CallError) bool {
	return err.Class == turns.ClassInFlightElsewhere || err.Class == turns.ClassAlreadyDone || err.HTTPStatus == 409
}

// tryUsage cuts a stream and looks at what had been reported by then. Only figures that grow with the answer count: some
// vendors say with the first event what went in.
func tryUsage(ctx context.Context, s *session) (Finding, error) {
	lost, err := s.prepare(ctx)
	if err != nil {
		return Finding{}, err
	}
	g := s.send(ctx, callOf(lost), true)
	switch {
	case !g.cut:
		return notCut(g), nil
	case g.late && g.usage.Output > 0:
		return seen(Yes, "when the stream was cut %d tokens in and %d out had been reported", g.usage.Input, g.usage.Output), nil
	case g.usage.Input > 0:
		return seen(No, "when the stream was cut only the %d tokens in were known", g.usage.Input), nil
	}
	return seen(No, "when the stream was cut nothing had been reported"), nil
}

// notCut is the finding of a step whose stream was over too soon.
func notCut(g got) Finding {
	if g.whole {
		return seen(Unclear, "the answer was over before its stream could be cut")
	}
	return seen(Unclear, "the call failed: %s", g.failure())
}

// cutOff sends a call and cuts its stream; the finding is for when that was not to be done.
func (s *session) cutOff(ctx context.Context) (lost turns.LostCall, g got, failed *Finding, err error) {
	if lost, err = s.prepare(ctx); err != nil {
		return lost, g, nil, err
	}
	g = s.send(ctx, callOf(lost), true)
	lost.ResponseID = g.responseID
	if !g.cut {
		f := notCut(g)
		failed = &f
	}
	return lost, g, failed, nil
}

// tryResume cuts a stream and asks for the whole answer by the id that it began with.
func tryResume(ctx context.Context, s *session) (Finding, error) {
	lost, before, failed, err := s.cutOff(ctx)
	switch {
	case err != nil:
		return Finding{}, err
	case failed != nil:
		return *failed, nil
	case lost.ResponseID == "":
		return seen(No, "no id came with the beginning of the answer"), nil
	}
	after := s.ask(ctx, lost)
	s.report.add(after.usage)
	switch {
	case !after.whole:
		return seen(No, "response %s was cut after %d bytes and could not be had again: %s", lost.ResponseID, len(before.text), after.failure()), nil
	case !strings.HasPrefix(after.text, before.text):
		return seen(No, "response %s came again with another text", lost.ResponseID), nil
	}
	return seen(Yes, "response %s was cut after %d bytes, and came again whole with %d", lost.ResponseID, len(before.text), len(after.text)), nil
}

// tryCancel cuts a stream, stops the response and asks how that ended.
func tryCancel(ctx context.Context, s *session) (Finding, error) {
	lost, _, failed, err := s.cutOff(ctx)
	switch {
	case err != nil:
		return Finding{}, err
	case failed != nil:
		return *failed, nil
	case lost.ResponseID == "":
		return seen(No, "no id came with the beginning of the answer"), nil
	}
	if err := s.router.Stop(ctx, lost); err != nil {
		stop := got{}
		stop.take(nil, err)
		return seen(No, "stopping response %s failed: %s", lost.ResponseID, stop.failure()), nil
	}
	after := s.ask(ctx, lost)
	switch {
	case after.whole:
		return seen(Unclear, "response %s was whole although it was stopped; it may have been before", lost.ResponseID), nil
	case after.err != nil && isOutcome(after.err):
		return seen(Yes, "response %s was stopped, and the provider says so", lost.ResponseID), nil
	}
	return seen(Unclear, "response %s was stopped, and how it ended can't be had: %s", lost.ResponseID, after.failure()), nil
}

// tryLookup looks for an answer by our own id alone: of a call that was cut, and where that is not found, of a whole one.
func tryLookup(ctx context.Context, s *session) (Finding, error) {
	lost, _, failed, err := s.cutOff(ctx)
	if err != nil {
		return Finding{}, err
	}
	if failed == nil {
		lost.ResponseID = ""
		if after := s.ask(ctx, lost); after.whole {
			s.report.add(after.usage)
			return seen(Yes, "the answer of a call that was cut was found by our id, whole with %d bytes", len(after.text)), nil
		}
	}
	if lost, err = s.prepare(ctx); err != nil {
		return Finding{}, err
	}
	whole := s.send(ctx, callOf(lost), false)
	if !whole.whole {
		return seen(Unclear, "the call failed: %s", whole.failure()), nil
	}
	after := s.ask(ctx, lost)
	switch {
	case after.whole && after.text == whole.text:
		return seen(Yes, "the answer of a call that was read to its end was found by our id; that of one that was cut was not"), nil
	case after.whole:
		return seen(No, "another answer was found under our id"), nil
	}
	return seen(No, "nothing was found under our id: %s", after.failure()), nil
}

// tryFence sends a second call into the session of one that is under way. It has a key of its own, so that it is not the
// key that refuses it.
func tryFence(ctx context.Context, s *session) (Finding, error) {
	lost, err := s.prepare(ctx)
	if err != nil {
		return Finding{}, err
	}
	if lost.Session == "" {
		return seen(No, "there is no session that two calls could share"), nil
	}
	s.report.Calls++
	var first, second got
	sent := false
	for d, err := range s.router.Generate(ctx, callOf(lost)) {
		first.take(d, err)
		if first.text != "" && !sent {
			sent = true
			other := callOf(lost)
			other.Key = "turnd-probe-" + uuid.NewString()
			second = s.send(ctx, other, true)
		}
	}
	s.report.add(first.usage)
	switch {
	case !sent:
		return seen(Unclear, "the first call failed: %s", first.failure()), nil
	case second.err != nil && refusesRepeat(second.err):
		return seen(Yes, "a second call was refused while the first ran: %s", second.failure()), nil
	case second.err != nil:
		return seen(Unclear, "a second call failed, and not for the first one: %s", second.failure()), nil
	}
	return seen(No, "a second call was answered while the first ran"), nil
}
