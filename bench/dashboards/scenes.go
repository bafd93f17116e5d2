package main

import (
	"fmt"
	"sync"
	"syscall"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// scene is one fault.
type scene struct {
	name, about string
	// before makes ready for it, and is not part of it.
	before func(*house) error
	play   func(*house) error
	// heal ends it once everything has shown it.
	heal func(*house) error
	// alerts are those that fire by it.
	alerts []string
}

// scenes are all faults in their order: those that leave something behind come last.
var scenes = []scene{
	{name: "everyday", about: "turns come to a worker that had none", play: (*house).turnsCome},
	{name: "scrapes", about: "more scrape at once than are answered", play: (*house).scrapedByMany},
	{name: "replays", about: "turns that are over are sent again", play: (*house).replays},
	{name: "refused", about: "turns that can't be taken", play: (*house).refused},
	{name: "cut", about: "a provider whose streams break off", play: (*house).cut},
	{name: "slow", about: "a provider that takes its time", play: ofModel("calm", "slow", 60)},
	{name: "busy", about: "a provider that sends each first request away", play: ofModel("tried", "busy", 70), alerts: []string{"TurndRetryTokensHigh"}},
	{name: "down", about: "a provider that always fails", play: spaced("down", 4), alerts: []string{"TurndBreakerOpen"}},
	{name: "unknown", about: "calls of which nobody knows what became of them", play: ofModel("tried", "unknown", 3), alerts: []string{"TurndHeldGrowing"}},
	{name: "followed elsewhere", about: "followers on another worker", play: (*house).followedElsewhere},
	{name: "gated", about: "a provider that stands still", play: (*house).standsStill, heal: func(h *house) error { return h.opens("gated") }},
	{name: "slow database", about: "a database that takes its time", before: (*house).quiet, play: (*house).slowDatabase, heal: (*house).healed},
	{name: "stopped", about: "a worker that stands still past half of its lease", play: (*house).stopped},
	{
		name: "no database", about: "replies that end while a worker has no database", play: (*house).noDatabase, heal: (*house).databaseBack,
		alerts: []string{"TurndSpoolNotEmpty", "TurndRenewalsLate"},
	},
	{
		name: "killed", about: "kill -9 of a worker in the middle of its replies", before: (*house).victim, play: (*house).killed,
		heal: func(h *house) error { return h.opens("killed") }, alerts: []string{"TurndSweepsRising"},
	},
	{name: "no collector", about: "a worker whose traces nobody takes", before: (*house).odd, play: (*house).noCollector, alerts: []string{"TurndTelemetryDropped"}},
	{name: "no place", about: "replies that others have settled, and no spool", before: (*house).oddReplies, play: (*house).noPlace, alerts: []string{"TurndEndingsLost"}},
	{
		name: "no guards", about: "a unique index is dropped, and a reply doubled", before: (*house).runsOn, play: (*house).noGuards,
		alerts: []string{"TurndGuardMissing", "TurndTwoLiveReplies"},
	},
	{name: "gone", about: "a worker that does not come back", play: (*house).gone, alerts: []string{"TurndNotScraped"}},
}

// ofModel sends so many turns of a model to a worker, in two halves that two scrapes see: a rate does not see what a series
// begins with.
func ofModel(worker, model string, n int) func(*house) error {
	return func(h *house) error {
		for _, half := range []int{n / 2, n - n/2} {
			err := each(half, func(int) error { return h.workers[worker].sends(h.ctx, turn(model, "a turn of "+model)) })
			if err != nil {
				return err
			}
			if err := h.counted(worker); err != nil {
				return err
			}
		}
		return nil
	}
}

// turnsCome begins the traffic that goes on to the end.
func (h *house) turnsCome() error {
	h.everyday = h.begin()
	return nil
}

// spaced sends turns one after the other, each seen by a scrape: calls that fail too often open a breaker.
func spaced(model string, n int) func(*house) error {
	return func(h *house) error {
		for range n {
			if err := h.workers["tried"].sends(h.ctx, turn(model, "a turn of "+model)); err != nil {
				return err
			}
			if err := h.counted("tried"); err != nil {
				return err
			}
		}
		return nil
	}
}

// cut has streams break off, and each turn sent again, which makes another attempt of it.
func (h *house) cut() error {
	for range 2 { // few enough for the breaker to stay closed
		in := turn("cut", "breaks off")
		for range 2 {
			if err := h.workers["tried"].sends(h.ctx, in); err != nil {
				return err
			}
			if err := h.counted("tried"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *house) replays() error {
	w := h.workers["tried"]
	in := turn("quick", "sent again and again")
	if err := w.sends(h.ctx, in); err != nil {
		return err
	}
	return each(60, func(int) error { return w.sends(h.ctx, in) })
}

func (h *house) refused() error {
	for range 20 {
		if err := h.workers["tried"].submits(h.ctx, turn("a model that there is not", "refused")); err == nil {
			return fmt.Errorf("a turn of an unknown model was taken")
		}
		// A second step is needed for a rate of what was not there before.
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

func (h *house) followedElsewhere() error {
	calm, tried := h.workers["calm"], h.workers["tried"]
	return each(8, func(int) error {
		in := turn("slow", "followed elsewhere")
		if err := calm.submits(h.ctx, in); err != nil {
			return err
		}
		stream, err := tried.turns.FollowReply(h.ctx, &turnsv1.FollowReplyRequest{
			ConversationId: in.GetConversationId(),
			Target:         &turnsv1.FollowReplyRequest_TurnId{TurnId: in.GetTurnId()},
		})
		for err == nil {
			_, err = stream.Recv()
		}
		return nil
	})
}

// standsStill has more turns come than there are places, and one stand in line behind a reply that runs.
func (h *house) standsStill() error {
	tried, calm := h.workers["tried"], h.workers["calm"]
	for range 4 * places {
		h.behind.Go(func() { _ = tried.sends(h.ctx, turn("gated", large())) })
	}
	first := turn("gated", "the first of its conversation")
	if err := calm.submits(h.ctx, first); err != nil {
		return err
	}
	second := turn("gated", "the second")
	second.ConversationId, second.OnBusy = first.GetConversationId(), turnsv1.OnBusy_ON_BUSY_ENQUEUE
	if err := calm.submits(h.ctx, second); err != nil {
		return err
	}
	return h.arrived("gated", places+1)
}

// quiet waits until what was before is out of the window of rates.
func (h *house) quiet() error {
	h.behind.Wait()
	span, err := time.ParseDuration(window)
	time.Sleep(span)
	return err
}

// slowDatabase has every piece of data to and from the database wait, under turns that go on until it is healed.
func (h *house) slowDatabase() error {
	tried := h.workers["tried"]
	tried.link.Slow(40 * time.Millisecond)
	h.over = make(chan struct{})
	for i := range 2 * places {
		model := "quick"
		if i%4 == 0 {
			model = "slow" // of which there is something to store at each checkpoint
		}
		h.behind.Go(func() {
			for {
				select {
				case <-h.over:
					return
				default:
				}
				if err := tried.submits(h.ctx, turn(model, "with a slow database")); err != nil {
					time.Sleep(pace)
				}
			}
		})
	}
	return nil
}

func (h *house) healed() error {
	h.workers["tried"].link.Heal()
	if h.over != nil {
		close(h.over)
	}
	return h.quiet()
}

// stopped stops a worker past half of its lease, and wakes it before the end. Twice, since a rate does not see the first step
// of a series that begins with it; and so far apart that it is no alert.
func (h *house) stopped() error {
	w := h.workers["tried"]
	for range 2 {
		if err := w.Signal(syscall.SIGSTOP); err != nil {
			return err
		}
		time.Sleep(lease * 11 / 20) // with the third of a lease that may have passed before, it is still below the whole
		if err := w.Signal(syscall.SIGCONT); err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
	}
	return nil
}

// noDatabase takes the database from a worker whose replies then end.
func (h *house) noDatabase() error {
	w := h.workers["tried"]
	if err := each(6, func(int) error { return w.submits(h.ctx, turn("away", "ends without a database")) }); err != nil {
		return err
	}
	if err := h.arrived("away", 6); err != nil {
		return err
	}
	w.link.Refuse()
	return h.opens("away")
}

func (h *house) databaseBack() error {
	h.workers["tried"].link.Heal()
	return until(h.ctx, patience, "the spool to be empty", func() (bool, error) {
		samples, err := h.prom.ask(h.ctx, `turnd_spooled{instance="tried"}`)
		return len(samples) == 1 && samples[0].value == 0, err
	})
}

// victims are the replies of the worker that is killed.
const victims = 12

// victim is a worker with replies that wait.
func (h *house) victim() error {
	w, err := h.worker("killed")
	if err != nil {
		return err
	}
	if err := each(victims, func(int) error { return w.submits(h.ctx, turn("killed", "its worker is killed")) }); err != nil {
		return err
	}
	return h.arrived("killed", victims)
}

func (h *house) killed() error { return h.leaves("killed", syscall.SIGKILL) }

// gone kills a worker, and leaves it among those that are scraped.
func (h *house) gone() error {
	h.everyday.stop()
	_ = h.workers["tried"].End(syscall.SIGKILL, time.Second) // how it ended is known
	return nil
}

// everything is what scenes leave to each other.
type everything struct {
	everyday *everyday
	// behind are turns that a scene has left running.
	behind sync.WaitGroup
	over   chan struct{}
}
