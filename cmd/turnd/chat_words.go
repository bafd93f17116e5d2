package main

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// ways are what a user does next, each to be put into a sentence after "to ...".
type ways struct {
	// address is where the service was looked for.
	address string
	// again sends the same turn again, regenerate asks for another reply to it, stop gives up what is held or running;
	// empty if there is no such way from here.
	again, regenerate, stop string
	// shows is what shows the reply later.
	shows string
}

// waysOfLines are open to a user who types lines, waysOfMessage to one who runs a command for each turn.
func waysOfLines(address string) ways {
	return ways{address: address, again: "type /again", regenerate: "type /again", stop: "type /stop",
		shows: "turnd chat shows it when started again"}
}

func waysOfMessage(address string) ways {
	return ways{address: address, again: "run the same command again", regenerate: "start turnd chat and type /again",
		shows: "the same command shows it"}
}

// ending says how a reply ended that is not complete, and what to do.
func (w ways) ending(ev *turnsv1.Event) string {
	if ev.GetHeld() != nil {
		words := "the reply is held: nobody knows whether the model answered, and an operator has to find out; to ask again later, " + w.again
		if w.stop != "" {
			words += "; to give it up, " + w.stop
		}
		return words
	}
	a := ev.GetAbandoned()
	return "the reply was given up: " + reasonInWords(a.GetReason()) + "; " + w.advice(a.GetAdvice())
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

// advice says what to do.
func (w ways) advice(a turnsv1.RetryAdvice) string {
	switch a {
	case turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW, turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT:
		return "another attempt may cost once more; to make it, " + w.again
	case turnsv1.RetryAdvice_RETRY_ADVICE_NEW_ID:
		return "say it anew"
	case turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE:
		return "to have another one made, " + w.regenerate
	default:
		return "sending it again does not help"
	}
}

// leaving says what becomes of a turn that the user no longer waits for.
func (w ways) leaving(delivered, asked, confirmed bool) string {
	switch {
	case confirmed:
		return "left; the reply was stopped"
	case !delivered:
		return "not delivered yet, as far as can be told from here; to send it, " + w.again
	case asked:
		return "left; nobody has confirmed the stop, so the reply may go on, and " + w.shows
	}
	return "left; the reply goes on, and " + w.shows
}

// explain says why a call or a stream was refused or lost, and what to do.
func (w ways) explain(err error, delivered bool) string {
	var e *client.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	switch {
	case e.Reason == turnsv1.ErrorReason_ERROR_REASON_CONVERSATION_BUSY:
		words := "another reply of this conversation is still running; wait until it is over, then " + w.again + ", or open a new conversation"
		if w.stop != "" {
			words += "; to end it, " + w.stop
		}
		return words
	case e.Reason == turnsv1.ErrorReason_ERROR_REASON_CONVERSATION_DELETED:
		return "the conversation was deleted; open a new one"
	case e.Delay > 0 && !errors.Is(err, client.ErrGaveUp):
		return fmt.Sprintf("%v; the server asks to wait %s, then %s", e, e.Delay, w.again)
	case !sameTurnHelps(e.Advice):
		return fmt.Sprintf("%v; %s", e, w.advice(e.Advice))
	case delivered:
		return fmt.Sprintf("no answer: %s; a reply that has begun goes on; to go on with it, %s", w.cause(e), w.again)
	}
	return fmt.Sprintf("no answer: %s; to send it again, %s", w.cause(e), w.again)
}

func sameTurnHelps(a turnsv1.RetryAdvice) bool {
	return a == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW || a == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT
}

// cause says what has failed. Where nothing of turnd has answered, the likely cause is that it is not there.
func (w ways) cause(e *client.Error) string {
	if e.Reason == turnsv1.ErrorReason_ERROR_REASON_UNSPECIFIED && e.Code == codes.Unavailable {
		words := status.Convert(e.Unwrap()).Message()
		if advice := adviceOnTLS(words); advice != "" {
			return words + advice
		}
		return fmt.Sprintf("%s; is turnd serve running at %s?", words, w.address)
	}
	return e.Error()
}
