package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Stream is a turn on its way, or a reply that is followed. It is used by one goroutine at a time.
type Stream struct {
	client *Client
	open   func(context.Context) (receive, error)
	reply  *Reply

	input  *turnsv1.TurnInput // nil if a reply is only followed
	record *Record            // as at the start; nil with input
	sent   bool               // so that the next delivery is a repeat

	conversation string
	generation   int32 // the turn's, as far as it was told
	result       turnsv1.DeliveryResult
	queued       *turnsv1.Queued // the place in line that was handed out last
	over         bool            // a terminal event was handed out and not answered by Again
	again        int             // what Auto has sent again
	holdOff      time.Duration   // to be waited for before the next delivery
}

// TurnID is the id of the turn that was sent; empty if a reply is only followed.
func (s *Stream) TurnID() string { return s.input.GetTurnId() }

// ConversationID is where the turn is. It is empty for a turn that opens a conversation, until it is accepted.
func (s *Stream) ConversationID() string { return s.conversation }

// Generation is that of the turn as the Stream has seen it, which Regenerate needs; 0 before anything was seen.
func (s *Stream) Generation() int32 { return s.generation }

// Result is how the server took the first delivery of this Stream that it accepted, or the first since Again.
func (s *Stream) Result() turnsv1.DeliveryResult { return s.result }

// Reply is what has been gathered. It belongs to the Stream and changes with each event.
func (s *Stream) Reply() *Reply { return s.reply }

// Events sends the turn, or follows the reply, and hands out what is new: accepted once, queued with each new place in line,
// started once an attempt, the log without gaps and repeats, restarted, and last one terminal event. Heartbeats are kept
// back. Lost connections are mended on the way and do not show.
//
// The last pair may be an error instead: an *Error, or the context's own error after it has ended. Ranging again goes on
// where the caller was, after an error as well as after a break. After a terminal event there is nothing more until Again.
func (s *Stream) Events(ctx context.Context) iter.Seq2[*turnsv1.Event, error] {
	return func(yield func(*turnsv1.Event, error) bool) {
		if s.over {
			return
		}
		defer s.client.slot.flush(ctx, s.TurnID())
		if err := s.run(ctx, yield); err != nil {
			yield(nil, err)
		}
	}
}

// run connects until the stream has come to its end, the caller leaves, or tries are used up.
func (s *Stream) run(ctx context.Context, yield func(*turnsv1.Event, error) bool) error {
	if err := s.waitOff(ctx); err != nil {
		return err
	}
	for fruitless := 0; ; {
		c := connection{Stream: s, yield: yield}
		err := c.run(ctx)
		switch {
		case c.left || err == nil && !c.resend:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil: // Auto sends again what was abandoned
			fruitless = 0
			err = s.waitOff(ctx)
		default:
			if c.progress {
				fruitless = 0
			}
			fruitless++
			err = s.mend(ctx, asError(err), c.begun, fruitless)
		}
		if err != nil {
			return err
		}
	}
}

// waitOff waits as long as the end of the last attempt asked for.
func (s *Stream) waitOff(ctx context.Context) error {
	if s.holdOff <= 0 {
		return nil
	}
	if err := s.client.opt.Wait(ctx, s.holdOff); err != nil {
		return err
	}
	s.holdOff = 0
	return nil
}

// Again asks for the turn to be sent once more after its reply was abandoned or held: the next range over Events does it,
// first waiting as long as the server asked for. It can start another attempt, which can cost money. It is ErrNotAgain if
// the advice was another, or if nothing has ended.
func (s *Stream) Again(ctx context.Context) error {
	advice, delay := endAdvice(s.reply.End())
	if !s.over || s.input == nil || !sameID(advice) {
		return ErrNotAgain
	}
	if err := s.prepareAgain(ctx); err != nil {
		return err
	}
	s.holdOff = delay
	return nil
}

// prepareAgain writes the record anew and makes the Stream ready for another end.
func (s *Stream) prepareAgain(ctx context.Context) error {
	r := s.record.clone()
	r.StartTime, r.ConversationID = s.client.opt.Now(), s.conversation
	if cursor := s.reply.Cursor(); cursor != nil {
		r.ReplyID, r.Offset = cursor.GetReplyId(), cursor.GetOffset()
	}
	if err := s.client.slot.begin(ctx, r); err != nil {
		return fmt.Errorf("record turn %s before it is sent again: %w", r.TurnID, err)
	}
	s.record, s.over, s.result = r, false, turnsv1.DeliveryResult_DELIVERY_RESULT_UNSPECIFIED
	s.reply.reopen()
	return nil
}

// endAdvice is what a terminal event advises, and how long to wait first.
func endAdvice(ev *turnsv1.Event) (turnsv1.RetryAdvice, time.Duration) {
	switch kind := ev.GetKind().(type) {
	case *turnsv1.Event_Abandoned:
		return kind.Abandoned.GetAdvice(), kind.Abandoned.GetRetryDelay().AsDuration()
	case *turnsv1.Event_Held:
		return kind.Held.GetAdvice(), kind.Held.GetRetryDelay().AsDuration()
	}
	return turnsv1.RetryAdvice_RETRY_ADVICE_UNSPECIFIED, 0
}

func isTerminal(ev *turnsv1.Event) bool {
	switch ev.GetKind().(type) {
	case *turnsv1.Event_Completed, *turnsv1.Event_Abandoned, *turnsv1.Event_Held:
		return true
	}
	return false
}
