package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// mend decides about a connection that was lost or refused, and waits before the next one. It returns an error if there is
// to be none. Once the server has begun to answer, outcomes are events, so any status is a lost link, whatever it says.
func (s *Stream) mend(ctx context.Context, e *Error, begun bool, fruitless int) error {
	o := s.client.opt
	if !begun && !sameID(e.Advice) || errors.Is(e, ErrReplyTooLarge) {
		s.settle(ctx, e)
		return e
	}
	if e.Delay > o.MaxWait {
		return e
	}
	if fruitless > o.MaxReconnects {
		return fmt.Errorf("%w after %d tries in a row: %w", ErrGaveUp, fruitless, e)
	}
	pause := s.pause(e, fruitless)
	o.Logger.InfoContext(ctx, "connecting again", "turn_id", s.TurnID(), "code", e.Code.String(),
		"reason", e.Reason.String(), "try", fruitless, "wait", pause)
	if pause == 0 {
		return ctx.Err()
	}
	return o.Wait(ctx, pause)
}

// pause is the wait before a try. The server's delay is kept to in full, and chance goes on top, so that many clients of
// one server do not come back as one. Advice to come at once is taken at its word the first time.
func (s *Stream) pause(e *Error, fruitless int) time.Duration {
	if fruitless == 1 && e.fromTurnd() && e.Advice == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW {
		return e.Delay
	}
	return e.Delay + drawBackoff(s.client.opt, fruitless)
}

// drawBackoff draws a wait evenly from 0 up to a bound that doubles with each try.
func drawBackoff(o Options, try int) time.Duration {
	bound := o.Backoff
	for range try - 1 {
		if bound >= o.MaxBackoff {
			break
		}
		bound *= 2
	}
	return time.Duration(o.Rand() * float64(min(bound, o.MaxBackoff)))
}

// settle brings the record in line with a refusal: gone if it is the last word on the turn, without its cursor if that is
// what was refused, so that Resume gets through.
func (s *Stream) settle(ctx context.Context, e *Error) {
	if e.settles() {
		s.client.slot.end(ctx, s.TurnID())
		return
	}
	if e.Reason == turnsv1.ErrorReason_ERROR_REASON_INVALID_CURSOR {
		s.client.slot.note(ctx, s.TurnID(), true, func(r *Record) { r.ReplyID, r.Offset = "", 0 })
	}
}
