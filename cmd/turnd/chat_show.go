package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// outcome is how the showing of a reply ended.
type outcome int

const (
	left      outcome = iota // the user left
	completed                // the reply is whole
	failed                   // it was given up or is held; the reply's end tells more
)

// show streams a reply to out. What has gone out can't be taken back, so a reply that begins anew does so on a line of
// its own.
func (t *talk) show(ctx context.Context, s *client.Stream) (outcome, error) {
	p := &printer{out: t.out, say: t.say}
	how := left
	for event, err := range s.Events(ctx) {
		switch {
		case ctx.Err() != nil:
			p.endLine()
			return left, nil
		case err != nil:
			p.endLine()
			return failed, err
		}
		p.event(event)
		if p.err != nil {
			return failed, fmt.Errorf("print the reply: %w", p.err)
		}
		switch event.GetKind().(type) {
		case *turnsv1.Event_Completed:
			how = completed
		case *turnsv1.Event_Abandoned, *turnsv1.Event_Held:
			how = failed
		}
	}
	p.endLine()
	return how, p.err
}

// printer writes what a person is to read.
type printer struct {
	out  io.Writer
	say  func(string)
	open bool // the last line has no end yet
	err  error
}

func (p *printer) event(ev *turnsv1.Event) {
	switch kind := ev.GetKind().(type) {
	case *turnsv1.Event_Accepted:
		if r := kind.Accepted.GetResult(); r == turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED {
			p.say("this turn was answered before; here is its reply")
		}
	case *turnsv1.Event_Queued:
		p.say(fmt.Sprintf("in line, %d before it", kind.Queued.GetPosition()))
	case *turnsv1.Event_Restarted:
		if !kind.Restarted.GetContinues() {
			p.endLine()
			p.say("the reply above was cut off (" + reasonInWords(kind.Restarted.GetPreviousReason()) + "); it begins anew")
		}
	case *turnsv1.Event_Delta:
		switch kind.Delta.GetKind() {
		case turnsv1.BlockKind_BLOCK_KIND_TEXT, turnsv1.BlockKind_BLOCK_KIND_REFUSAL:
			p.write(kind.Delta.GetText())
		default: // reasoning and tool calls are not for reading here
		}
	case *turnsv1.Event_Completed:
		p.endLine()
		p.stop(kind.Completed.GetStopReason())
	}
}

// stop says why the model stopped, where that is not plain from the reply.
func (p *printer) stop(r turnsv1.StopReason) {
	switch r {
	case turnsv1.StopReason_STOP_REASON_LENGTH:
		p.say("the reply reached its limit of length")
	case turnsv1.StopReason_STOP_REASON_CONTENT_FILTER:
		p.say("a filter of the provider stopped the reply")
	case turnsv1.StopReason_STOP_REASON_CONTEXT_EXCEEDED:
		p.say("the model's context window is used up")
	case turnsv1.StopReason_STOP_REASON_TOOL_USE:
		p.say("the model waits for the result of a tool, which chat can't give")
	default:
	}
}

func (p *printer) write(text string) {
	if text == "" || p.err != nil {
		return
	}
	_, p.err = io.WriteString(p.out, text)
	p.open = !strings.HasSuffix(text, "\n")
}

func (p *printer) endLine() {
	if p.open {
		p.write("\n")
	}
}

// ending says how a reply ended that is not complete, and what to do; how is the way to send the turn again.
func ending(ev *turnsv1.Event, how string) string {
	if held := ev.GetHeld(); held != nil {
		return "the reply is held: nobody knows whether the model answered, and an operator has to find out; to ask again later, " + how
	}
	a := ev.GetAbandoned()
	return "the reply was given up: " + reasonInWords(a.GetReason()) + "; " + adviceInWords(a.GetAdvice(), how)
}

func reasonInWords(r turnsv1.AbandonReason) string {
	switch r {
	case turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED:
		return "the server that was making it is gone"
	case turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_ERROR:
		return "the model's provider failed"
	case turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_REFUSED:
		return "the model's provider turned the request down"
	case turnsv1.AbandonReason_ABANDON_REASON_AMBIGUOUS:
		return "the request went out and nobody knows what came of it"
	case turnsv1.AbandonReason_ABANDON_REASON_EMPTY:
		return "the model wrote nothing"
	case turnsv1.AbandonReason_ABANDON_REASON_CANCELLED:
		return "it was cancelled"
	case turnsv1.AbandonReason_ABANDON_REASON_DISCONNECTED:
		return "nobody was listening"
	case turnsv1.AbandonReason_ABANDON_REASON_DEADLINE:
		return "it ran out of time"
	case turnsv1.AbandonReason_ABANDON_REASON_SHUTDOWN:
		return "the server was shut down"
	case turnsv1.AbandonReason_ABANDON_REASON_SUPERSEDED:
		return "another reply took its place"
	case turnsv1.AbandonReason_ABANDON_REASON_DELETED:
		return "the conversation was deleted"
	case turnsv1.AbandonReason_ABANDON_REASON_HELD_RELEASED:
		return "it was held, and an operator let it go"
	default:
		return "for a reason unknown here"
	}
}

// adviceInWords says what to do; how is the way to send the same turn again.
func adviceInWords(a turnsv1.RetryAdvice, how string) string {
	switch a {
	case turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW, turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT:
		return "another attempt may cost once more; to make it, " + how
	case turnsv1.RetryAdvice_RETRY_ADVICE_NEW_ID:
		return "say it anew"
	case turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE:
		return "sending it again does nothing, a call of RegenerateReply makes another attempt"
	default:
		return "sending it again does not help"
	}
}

// explain says why a stream was refused or lost, and what to do; how is the way to send the same turn again.
func explain(err error, how string) string {
	var e *client.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	switch {
	case e.Reason == turnsv1.ErrorReason_ERROR_REASON_CONVERSATION_BUSY:
		return "another reply of this conversation is still running; wait until it is over, then " + how + ", or open a new conversation"
	case e.Reason == turnsv1.ErrorReason_ERROR_REASON_CONVERSATION_DELETED:
		return "the conversation was deleted; open a new one"
	case e.Delay > 0 && !errors.Is(err, client.ErrGaveUp):
		return fmt.Sprintf("%v; the server asks to wait %s, then %s", e, e.Delay, how)
	case e.Advice == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW, e.Advice == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT:
		return fmt.Sprintf("no answer (%v); a reply that has begun goes on; to go on with it, %s", err, how)
	}
	return fmt.Sprintf("%v; %s", e, adviceInWords(e.Advice, how))
}
