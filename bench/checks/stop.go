package main

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// The bounds of a stop: the provider sees its request end soon after the call, where a process of the owner lives, and
// the slot is free a little later whatever became of the owner.
const (
	goneWithin = time.Second + 250*time.Millisecond // and one checkpoint tick, by which another process tells the owner
	freeWithin = 2 * time.Second
	followers  = 3
)

// stop cancels a reply of five thousand deltas at its twentieth: at the server that makes it, at another, and at another
// while the one that made it is dead.
func stop(l *lab) error {
	p, err := l.provider(object{"rules": []object{{"name": "long", "match": object{"text": "long answer$"}, "plan": paced(5000, 4)}, plain(8)}})
	if err != nil {
		return err
	}
	models, err := l.models(p.url)
	if err != nil {
		return err
	}
	for _, owner := range []string{"here", "elsewhere", "killed"} {
		e, err := l.postgres("stop_" + owner)
		if err != nil {
			return err
		}
		if err := l.stopScene(e, p, models, owner); err != nil {
			return fmt.Errorf("owner %s: %w", owner, err)
		}
	}
	figure("followers_told_once_each", 3*followers)
	return nil
}

func (l *lab) stopScene(e engine, p *provider, models, owner string) error {
	maker, err := l.serve(e, models)
	if err != nil {
		return err
	}
	other, err := l.serve(e, models)
	if err != nil {
		return err
	}
	asked := map[string]*service{"here": maker, "elsewhere": other, "killed": other}[owner]
	in := textInput(uuid.NewString(), uuid.NewString(), "a long answer", "anthropic")
	got, err := maker.turns.SubmitTurn(l.ctx, &turnsv1.SubmitTurnRequest{Input: in})
	if err != nil {
		return err
	}
	on := []*service{maker, other, other}
	if owner == "killed" {
		on[0] = other
	}
	group := l.followAll(on, in)
	group.seen.Wait()
	before, err := p.lastCall()
	if err != nil {
		return err
	}
	if owner == "killed" {
		maker.kill(syscall.SIGKILL)
	}
	begun := time.Now()
	answer, err := asked.turns.CancelReply(l.ctx, &turnsv1.CancelReplyRequest{ConversationId: in.GetConversationId(), Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: got.GetReply().GetReplyId()}})
	if err != nil {
		return err
	}
	free := time.Since(begun)
	if r := answer.GetReply(); r.GetAbandonReason() != turnsv1.AbandonReason_ABANDON_REASON_CANCELLED || free > freeWithin {
		return fmt.Errorf("cancelled as %s after %s", r.GetAbandonReason(), free)
	}
	if err := group.toldOnce(answer.GetReply().GetReplyId()); err != nil {
		return err
	}
	var next listener
	if err := next.send(l.ctx, asked, textInput(in.GetConversationId(), uuid.NewString(), "and now", "anthropic"), nil); err != nil || !next.completed {
		return errors.Join(err, errors.New("the slot is not free for the next turn"))
	}
	gone, err := l.goneAfter(p, before.N, begun)
	if err != nil {
		return err
	}
	if owner != "killed" && gone > goneWithin {
		return fmt.Errorf("the provider saw its request end after %s", gone)
	}
	figure(owner+"_slot_free_ms", free.Milliseconds())
	if owner != "killed" { // a dead process ends its connection by dying
		figure(owner+"_provider_saw_it_ms", gone.Milliseconds())
	}
	other.stop()
	if owner != "killed" {
		maker.stop()
	}
	return nil
}

// crowd are followers of one turn.
type crowd struct {
	seen, ended sync.WaitGroup
	all         [followers]listener
	errs        [followers]error
}

// followAll follows a turn on several servers at once; seen is done once each has heard twenty deltas.
func (l *lab) followAll(on []*service, in *turnsv1.TurnInput) *crowd {
	c := &crowd{}
	c.seen.Add(len(on))
	for i, s := range on {
		var told sync.Once
		tell := func() { told.Do(c.seen.Done) }
		c.all[i].watch = func(h *listener) {
			if h.offset >= seenBytes {
				tell()
			}
		}
		c.ended.Go(func() {
			c.errs[i] = c.all[i].send(l.ctx, s, in, nil)
			tell()
		})
	}
	return c
}

// toldOnce demands that every follower's stream ended with one terminal event, of the cancelled reply.
func (c *crowd) toldOnce(reply string) error {
	c.ended.Wait()
	for i := range c.all {
		h := &c.all[i]
		last := h.kinds[len(h.kinds)-1]
		if c.errs[i] != nil || h.terminals != 1 || last != "*turnsv1.Event_Abandoned" || h.reply != reply ||
			h.abandoned.GetReason() != turnsv1.AbandonReason_ABANDON_REASON_CANCELLED {
			return fmt.Errorf("follower %d: %d terminal events, the last event %s: %w", i, h.terminals, last, c.errs[i])
		}
	}
	return nil
}

func (p *provider) lastCall() (scripted.Call, error) {
	calls, err := p.calls()
	if err != nil || len(calls) == 0 {
		return scripted.Call{}, errors.Join(err, errors.New("the provider was not asked"))
	}
	return calls[len(calls)-1], nil
}

// goneAfter waits until the provider has seen the client of a call go and says how long after a moment that was.
func (l *lab) goneAfter(p *provider, n int, begun time.Time) (gone time.Duration, err error) {
	err = l.until(func() (bool, error) {
		calls, err := p.calls()
		for _, c := range calls {
			if c.N == n && c.ClientGoneAt != nil {
				gone = max(0, c.ClientGoneAt.Sub(begun))
				return true, nil
			}
		}
		return false, err
	})
	return gone, err
}
