package client

import (
	"context"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// connection is one call of a Stream, from its opening until it ends in whatever way.
type connection struct {
	*Stream
	yield func(*turnsv1.Event, error) bool

	begun    bool // the server has taken the turn, or found the reply; what fails now is the link
	progress bool // something has come that was not there before
	left     bool // the caller has broken out of its loop
	resend   bool // it ended terminally, and the turn is to be sent again
}

// run follows one call. Nil means that a terminal event came or the caller has left.
func (c *connection) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // lets go of the call, which stops nothing at the server but this stream
	silence := time.AfterFunc(c.client.opt.MaxSilence, cancel)
	defer silence.Stop()
	next, err := c.open(ctx)
	if err != nil {
		return c.orSilent(silence, err)
	}
	for {
		ev, err := next()
		if err != nil {
			return c.orSilent(silence, err)
		}
		silence.Stop() // the caller may take its time with an event
		ended, err := c.take(ctx, ev)
		if ended || c.left || err != nil {
			return err
		}
		silence.Reset(c.client.opt.MaxSilence)
	}
}

// orSilent tells a stream that was let go of because it was silent from one that failed by itself.
func (c *connection) orSilent(silence *time.Timer, err error) error {
	if silence.Stop() {
		return err
	}
	return errSilent
}

// take deals with one event.
func (c *connection) take(ctx context.Context, ev *turnsv1.Event) (ended bool, err error) {
	fresh, err := c.reply.Apply(ev)
	if err != nil {
		return false, err
	}
	switch kind := ev.GetKind().(type) {
	case *turnsv1.Event_Heartbeat:
		c.progress = true // it comes after a long silence only, so tries remain rare
		return false, nil
	case *turnsv1.Event_Accepted:
		fresh = c.accepted(ctx, ev, kind.Accepted)
	case *turnsv1.Event_Queued:
		fresh = c.moved(ev, kind.Queued)
	case *turnsv1.Event_Started:
		c.begun = true
		c.generation = max(c.generation, kind.Started.GetGeneration())
	default:
		c.begun = true
	}
	if fresh == nil {
		return false, nil
	}
	if isTerminal(fresh) {
		return true, c.terminal(ctx, fresh)
	}
	if fresh.GetNextOffset() > fresh.GetOffset() {
		c.progress = true
	}
	c.hand(ctx, fresh)
	return false, nil
}

// accepted takes note of what the server says about the turn. Repeats of it are not handed out.
func (c *connection) accepted(ctx context.Context, ev *turnsv1.Event, a *turnsv1.Accepted) *turnsv1.Event {
	c.begun = true
	if id := a.GetTurn().GetConversationId(); id != "" && id != c.conversation {
		c.conversation = id
		c.client.slot.note(ctx, c.TurnID(), true, func(r *Record) { r.ConversationID = id })
	}
	c.generation = max(c.generation, a.GetTurn().GetGeneration())
	if c.result != turnsv1.DeliveryResult_DELIVERY_RESULT_UNSPECIFIED {
		return nil
	}
	c.result = a.GetResult()
	return ev
}

// moved takes note of the turn's place in line. That it is where it was is no news.
func (c *connection) moved(ev *turnsv1.Event, q *turnsv1.Queued) *turnsv1.Event {
	c.begun = true
	if c.queued != nil && c.queued.GetPosition() == q.GetPosition() {
		return nil
	}
	c.queued, c.progress = q, true
	return ev
}

// hand gives an event to the caller, and only then moves the recorded cursor: what was not dealt with comes again.
func (c *connection) hand(ctx context.Context, ev *turnsv1.Event) {
	c.left = !c.yield(ev, nil)
	cursor := c.reply.Cursor()
	if c.input == nil || cursor == nil {
		return
	}
	another := ev.GetStarted() != nil || ev.GetRestarted() != nil
	c.client.slot.note(ctx, c.TurnID(), another, func(r *Record) {
		r.ReplyID, r.Offset = cursor.GetReplyId(), cursor.GetOffset()
	})
}

// terminal ends the stream: the record of a turn that is over goes, then the caller hears of it. A held turn is not over.
func (c *connection) terminal(ctx context.Context, ev *turnsv1.Event) error {
	c.progress = true
	advice, delay := endAdvice(ev)
	o := c.client.opt
	if o.Retry == Auto && c.input != nil && sameID(advice) && delay <= o.MaxWait && c.again < o.MaxAgain {
		c.again++
		c.resend, c.holdOff = true, max(delay, drawBackoff(o, c.again))
		o.Logger.InfoContext(ctx, "turn sent again", "turn_id", c.TurnID(), "again", c.again, "wait", c.holdOff)
		return c.prepareAgain(ctx)
	}
	c.over = true
	if ev.GetHeld() == nil {
		c.client.slot.end(ctx, c.TurnID())
	}
	c.left = !c.yield(ev, nil)
	return nil
}
