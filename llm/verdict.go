package llm

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// verdict is what a call says about the health of who served it.
type verdict int

// Most calls are good or bad; one that this side ended or that was refused for what it asked says nothing.
const (
	verdictNone verdict = iota
	verdictGood
	verdictBad
)

// verdictOf judges a call that is over, by what became of it. A provider that says when to come back is well: its hint is
// kept by each call that got it. One that only says that it is too much is overloaded.
func verdictOf(err error) verdict {
	if err == nil {
		return verdictGood
	}
	var call *turns.CallError
	if !errors.As(err, &call) {
		return verdictNone
	}
	switch call.Class {
	case turns.ClassTransient, turns.ClassAmbiguous:
		return verdictBad
	case turns.ClassThrottled:
		if !call.HasRetryAfter {
			return verdictBad
		}
	case turns.ClassNotSent:
		if !errors.Is(call.Cause, wire.ErrHeldBack) {
			return verdictBad
		}
	default:
	}
	return verdictNone
}

// watch makes a call under its breaker, and tells the breaker how it ended. A consumer that stops, and a caller that ends
// the call, are no verdict.
func (b *breaker) watch(ctx context.Context, seq iter.Seq2[turns.Delta, error]) iter.Seq2[turns.Delta, error] {
	return func(yield func(turns.Delta, error) bool) {
		p, wait, ok := b.begin(time.Now())
		if !ok {
			yield(nil, &turns.CallError{
				Class: turns.ClassNotSent, Phase: turns.PhaseNone, Code: "breaker_open",
				RetryAfter: wait, HasRetryAfter: true, Cause: ErrBreakerOpen,
			})
			return
		}
		v := verdictNone
		defer func() { b.end(time.Now(), p, v) }()
		for d, err := range seq {
			switch d.(type) {
			case turns.BlockDelta:
				if p.trial {
					p = b.answered(p)
				}
			case turns.Finished:
				v = verdictGood
			}
			if err != nil && ctx.Err() == nil {
				v = verdictOf(err)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
