package turns

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/turnd/turnd/internal/instrument"
)

// The bounds of asking a provider what became of a call.
const (
	// askPause bounds the first wait between two questions; the bound doubles with each, up to askPauseMost.
	askPause     = 500 * time.Millisecond
	askPauseMost = 10 * time.Second
	// askNotThere is how long an answer that is not there is waited for: a provider lists it some time after it is whole.
	askNotThere = 45 * time.Second
	// askTries bounds the questions that failed themselves, one after the other.
	askTries = 12
)

// askable reports whether the provider can be asked what became of the call.
func (r *run) askable() bool {
	return askable(r.request.Route.Capabilities, r.knownResponse())
}

// lostCall names the call to its provider.
func (r *run) lostCall(at Continuation) LostCall {
	return LostCall{ID: r.call.ID, Request: r.request, Key: r.call.Key, Origin: r.origin(), Session: r.session, Age: time.Since(r.sentAt),
		ResponseID: r.knownResponse(), Continuation: at}
}

// origin is what the run's calls are made for.
func (r *run) origin() Origin {
	return Origin{Conversation: r.key, Turn: r.reply.Turn, Generation: r.reply.Generation}
}

// ask asks the provider what became of a call whose outcome is unknown, until it tells or it is clear that it will not:
// then the call stays as unknown as it was. The call's row in the ledger stays open meanwhile, since it is still the one
// call. A stream that broke off here is gone on with where it broke off; else the answer comes from its beginning and must
// repeat what the log holds.
func (r *run) ask(ctx context.Context, lost callResult) (c callResult, over bool) {
	at := lost.err.Continuation
	begun, failed := time.Now(), 0
	for asks := 1; ; asks++ {
		had := r.log.Len()
		c, err := r.askOnce(ctx, lost, at)
		if errors.Is(err, errHole) {
			break
		}
		if err != nil { // the store, which has a part of the log
			r.logger.WarnContext(ctx, "answer of a lost call not asked for", "turn_id", r.reply.Turn.String(), "err", err)
			c = lost
			c.err = &CallError{Class: ClassTransient, Phase: PhaseNone, Cause: err}
		}
		var told *OutcomeError
		switch {
		case c.err == nil || context.Cause(ctx) != nil || errors.Is(c.err.Cause, errDiverged):
			r.asked = true
			return c, false
		case errors.As(c.err.Cause, &told):
			c.err, r.asked = told.Call, true
			c.err.Continuation = nil
			return c, false
		}
		if r.log.Len() > had {
			failed = 0
		}
		lost.used, lost.replyBytes = lost.used || c.used, max(lost.replyBytes, c.replyBytes)
		lost.reported = c.reported
		at = c.err.Continuation
		lost.pen = c.pen
		failed++
		r.logger.InfoContext(ctx, "answer of a lost call not had yet", "turn_id", r.reply.Turn.String(), "class", string(c.err.Class), "asks", asks)
		gone := errors.Is(c.err.Cause, ErrNotThere) && time.Since(begun) > askNotThere
		if gone || failed >= askTries || final(c.err) || !pause(ctx, askWait(c.err, asks, r.random)) {
			break
		}
	}
	r.asked = true
	lost.err.Continuation = nil
	lost.used = lost.used || r.log.Len() > 0
	return lost, false
}

// final reports an answer to a question after which asking again does not help.
func final(err *CallError) bool {
	if errors.Is(err.Cause, ErrNotThere) {
		return false
	}
	return err.Class == ClassTerminal || err.Class == ClassAlreadyDone
}

// askWait is the time before the next question.
func askWait(err *CallError, asks int, random func() float64) time.Duration {
	if err.HasRetryAfter && err.RetryAfter > 0 {
		return min(err.RetryAfter, askNotThere)
	}
	bound := min(askPause<<min(asks-1, 10), askPauseMost)
	return bound/2 + time.Duration(random()*float64(bound/2))
}

// askOnce asks once.
func (r *run) askOnce(ctx context.Context, lost callResult, at Continuation) (callResult, error) {
	w := lost.pen
	if at == nil || w == nil {
		at = nil
		if err := r.compare(ctx); err != nil {
			return callResult{}, err
		}
		w = r.newPen()
	}
	c := lost
	c.finished = false
	if at == nil { // what is gone on with has said before what it took, and need not say it again
		c.reported = nil
	}
	ctx, span := r.callSpan(ctx, instrument.OperationFetch, r.request.Route)
	defer span.End()
	r.sent(span)
	c.firstChunk = time.Time{}
	i := inference{operation: instrument.OperationFetch, route: r.request.Route, begun: time.Now()}
	r.pour(ctx, r.generator.Recover(ctx, r.lostCall(at)), w, &c)
	r.metrics.inferred(ctx, i, c)
	told := c
	told.reported = nil // the call that it asks about has used them, and they are counted once
	told.came(span)
	return c, nil
}

// compare makes the log one in which an answer that comes again from its beginning must repeat what is there.
func (r *run) compare(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	pieces, _, err := r.whole(ctx)
	if err != nil {
		return err
	}
	log := r.log
	if repeated, ok := log.(*repeatLog); ok {
		log = repeated.LiveLog
	}
	own := slices.DeleteFunc(slices.Clone(pieces), func(p Piece) bool { return p.Block < r.prior() })
	r.log = newRepeatLog(log, own)
	return nil
}

// repeatable reports whether the same request under the same key is no second generation: the endpoint enforces the key,
// which is young enough and was sent under the credential that is used.
func (r *run) repeatable() bool {
	return resendable(r.request.Route.Capabilities, time.Since(r.callBegun))
}
