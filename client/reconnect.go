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
	if !begun && !sameID(e.Advice) || errors.Is(e, ErrReplyTooLarge) {
		s.settle(ctx, e)
		return e
	}
	return s.client.holdBack(ctx, e, fruitless, s.TurnID())
}

// holdBack waits before the next try, or says why there is to be none. fruitless counts the tries in a row that brought
// nothing, and turn is for the log.
func (c *Client) holdBack(ctx context.Context, e *Error, fruitless int, turn string) error {
	o := c.opt
	if e.Delay > o.MaxWait {
		return e
	}
	if fruitless > o.MaxReconnects {
		return fmt.Errorf("%w after %d tries in a row: %w", ErrGaveUp, fruitless, e)
	}
	pause := o.pause(e, fruitless)
	o.Logger.InfoContext(ctx, "connecting again", "turn_id", turn, "code", e.Code.String(),
		"reason", e.Reason.String(), "try", fruitless, "wait", pause)
	if pause == 0 {
		return ctx.Err()
	}
	if o.Trying != nil {
		o.Trying(e, pause)
	}
	return o.Wait(ctx, pause)
}

// pause is the wait before a try. The server's delay is kept to in full, and chance goes on top, so that many clients of
// one server do not come back as one. Advice to come at once is taken at its word the first time.
func (o Options) pause(e *Error, fruitless int) time.Duration {
	if fruitless == 1 && e.fromTurnd() && e.Advice == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW {
		return e.Delay
	}
	return e.Delay + drawBackoff(o, fruitless)
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
