package main

import (
	"context"
	"strings"
	"sync"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// attendance hears what the user wants while a reply is shown. The first interrupt, or /stop, has the reply stopped; the
// second leaves it alone and ends the showing. A reply that the server has not told of can't be stopped, so there the
// first one leaves.
type attendance struct {
	*talk
	ctx   context.Context
	leave context.CancelFunc
	done  chan struct{}
	work  sync.WaitGroup

	stoppable bool // a reply is shown, or is to be

	mu           sync.Mutex
	conversation string
	target       client.Target // what to stop; empty before the server has told of it
	wanted       bool          // a stop is to be asked for as soon as the turn is known
	asked        bool          // a stop was asked for
	confirmed    bool          // and the server has said that it is done
	left         bool          // by the user's wish
}

// attend begins to listen. What is shown must end with the context that is returned, and end must be called then. Without
// a subject there is nothing to stop, and an interrupt just ends the context.
func (t *talk) attend(ctx context.Context, about *subject) (context.Context, *attendance) {
	ctx, leave := context.WithCancel(ctx)
	a := &attendance{talk: t, ctx: ctx, leave: leave, done: make(chan struct{}), stoppable: about != nil}
	if about != nil && about.delivered() {
		a.conversation, a.target = about.conversation, about.target()
	}
	a.work.Go(a.listen)
	return ctx, a
}

// end stops listening and waits for what is under way.
func (a *attendance) end() {
	close(a.done)
	a.leave()
	a.work.Wait()
}

// learn takes note of how the reply can be stopped.
func (a *attendance) learn(s *client.Stream, ev *turnsv1.Event) {
	if ev.GetAccepted() == nil && ev.GetStarted() == nil {
		return
	}
	a.mu.Lock()
	if a.target == (client.Target{}) {
		a.conversation, a.target = s.ConversationID(), client.Target{TurnID: s.TurnID()}
	}
	wanted := a.wanted
	a.mu.Unlock()
	if wanted {
		a.stop()
	}
}

// listen hears interrupts and lines. Any line but /stop is kept until the reply is over.
func (a *attendance) listen() {
	for {
		select {
		case <-a.done:
			return
		case <-a.interrupts:
			if !a.stop() {
				a.goAway()
			}
		case read := <-a.lines.next():
			stop := a.stoppable && strings.TrimSpace(read.text) == "/stop"
			a.lines.took(read, !stop)
			if stop && !a.stop() {
				a.want()
			}
		}
	}
}

// want keeps the wish for a stop that can't be asked for yet.
func (a *attendance) want() {
	a.mu.Lock()
	a.wanted = !a.asked
	wanted := a.wanted
	a.mu.Unlock()
	if wanted {
		a.say("it is stopped once the turn is accepted; Ctrl-C leaves")
	}
}

func (a *attendance) goAway() {
	a.mu.Lock()
	a.left = true
	a.mu.Unlock()
	a.leave()
}

// stop asks the server for a stop, and does not wait for it: the stream tells how the reply ended. It is false if there
// is nothing more to ask for.
func (a *attendance) stop() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked || a.target == (client.Target{}) {
		return false
	}
	a.asked = true
	conversation, target := a.conversation, a.target
	a.work.Go(func() {
		_, err := a.client.Cancel(a.ctx, conversation, target)
		switch {
		case err == nil:
			a.mu.Lock()
			a.confirmed = true
			a.mu.Unlock()
		case a.ctx.Err() == nil:
			a.say("it could not be stopped: " + a.ways.explain(err, true) + "; Ctrl-C leaves")
		}
	})
	return true
}

// verdict says how a showing that ended without a terminal event is to be called.
func (a *attendance) verdict() (how outcome, words string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delivered := a.target != (client.Target{})
	words = a.ways.leaving(delivered, a.asked, a.confirmed)
	if a.left && !delivered {
		return undelivered, words
	}
	return left, words
}

// wasAsked tells whether a stop was asked for.
func (a *attendance) wasAsked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}
