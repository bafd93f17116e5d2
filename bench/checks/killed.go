package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/google/uuid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// seenBytes is what twenty deltas of the scripted reply take in a log.
const seenBytes = 1 + 20*16

// killed kills a server in the middle of a reply and sends the turn again with its cursor: on SQLite to the server
// started anew on the same file, on Postgres to another that was there all the time.
func killed(l *lab) error {
	engines, err := l.engines("killed")
	if err != nil {
		return err
	}
	wasted := map[string]int{}
	for _, e := range engines {
		if wasted[e.name], err = l.killedOn(e); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	figure("engines", len(engines))
	figure("generations_each", 2)
	figure("ledger_rows_each", 2)
	for _, e := range engines {
		figure("wasted_tokens_"+e.name, wasted[e.name])
	}
	return nil
}

func (l *lab) killedOn(e engine) (wasted int, err error) {
	first := gated("tell", "never", 64, 21)
	first["times"] = 1
	p, err := l.provider(object{"rules": []object{first, plain(64)}})
	if err != nil {
		return 0, err
	}
	defer p.stop()
	models, err := l.models(p.url)
	if err != nil {
		return 0, err
	}
	flags := []string{"--lease", "2s", "--sweep", "500ms"}
	victim, err := l.serve(e, models, flags...)
	if err != nil {
		return 0, err
	}
	other := victim
	if e.name == "postgres" {
		if other, err = l.serve(e, models, flags...); err != nil {
			return 0, err
		}
	}
	in := textInput(uuid.NewString(), uuid.NewString(), "tell me", "anthropic")
	cursor, err := l.untilKilled(victim, in)
	if err != nil {
		return 0, err
	}
	if e.name == "sqlite" {
		if other, err = l.serve(e, models, flags...); err != nil {
			return 0, err
		}
	}
	defer other.stop()
	if err := l.again(other, in, cursor); err != nil {
		return 0, err
	}
	return l.afterKill(e, p)
}

// untilKilled follows a turn, kills its server at the twentieth delta, and returns where the follower stood.
func (l *lab) untilKilled(victim *service, in *turnsv1.TurnInput) (*turnsv1.Cursor, error) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	var cursor *turnsv1.Cursor
	follower := listener{watch: func(h *listener) {
		if h.offset >= seenBytes && cursor == nil {
			cursor = &turnsv1.Cursor{ReplyId: h.reply, Offset: h.offset}
			victim.kill(syscall.SIGKILL)
		}
	}}
	err := follower.send(ctx, victim, in, nil)
	if cursor == nil {
		return nil, fmt.Errorf("the stream ended before the twentieth delta: %w", err)
	}
	if err == nil {
		return nil, errors.New("the stream of a killed server ended as if nothing had happened")
	}
	return cursor, nil
}

// again sends the turn with its cursor as the contract says: while the dead server's claim stands the stream ends with
// abandoned, and the advice is to send the same turn again.
func (l *lab) again(s *service, in *turnsv1.TurnInput, cursor *turnsv1.Cursor) error {
	for range 10 {
		var h listener

		if err := l.resume(&h, s, in, cursor); err != nil {
			return err
		}
		if h.abandoned != nil && h.abandoned.GetReason() == turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED {
			continue
		}
		starts := slices.Index(h.kinds, "*turnsv1.Event_Restarted")
		switch {
		case !h.completed:
			return errors.New("the turn sent again did not complete")
		case starts != 1 || h.kinds[0] != "*turnsv1.Event_Accepted":
			return fmt.Errorf("the stream does not begin with restarted: %v", h.kinds)
		case h.previous != cursor.GetReplyId() || h.reply == cursor.GetReplyId():
			return errors.New("restarted names the wrong reply")
		}
		return nil
	}
	return errors.New("the dead server's claim was never swept")
}

// resume sends a turn with a cursor. A stream that follows the cursor's own reply goes on at the cursor's offset.
func (l *lab) resume(h *listener, s *service, in *turnsv1.TurnInput, cursor *turnsv1.Cursor) error {
	h.watch = func(h *listener) {
		if h.reply == cursor.GetReplyId() && h.offset == 0 {
			h.offset = cursor.GetOffset()
		}
	}
	return h.send(l.ctx, s, in, cursor)
}

func (l *lab) afterKill(e engine, p *provider) (wasted int, err error) {
	c, err := p.counts()
	if err != nil {
		return 0, err
	}
	if c.Generations != 2 {
		return 0, fmt.Errorf("the provider counted %d generations", c.Generations)
	}
	for query, want := range map[string]int{ledgerRows: 2, openCalls: 0, wastedRows: 1, liveReplies: 1, inFlight: 0} {
		got, err := e.number(l.ctx, query)
		if err != nil {
			return 0, err
		}
		if got != want {
			return 0, fmt.Errorf("%d instead of %d: %s", got, want, query)
		}
	}
	wasted, err = e.number(l.ctx, wastedFirst)
	if err == nil && wasted <= 0 {
		err = errors.New("the killed call wasted nothing by the ledger")
	}
	return wasted, err
}
