package live

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/turnd/turnd/turns"
)

// eventBytes bounds one read of a follower, and so the size of a merged piece.
const eventBytes = 64 << 10

// Follow streams a reply from an offset: Started, then its log piece by piece, then Ended. Where policy put another reply in
// its place, Restarted comes instead of Ended, and then that one's stream. It works before, during and long after the
// reply's making, on any worker. An offset inside a rune, or past the end of a complete reply, is
// CodeInvalidCursor; past the end of an abandoned or held one it is answered with Ended, which says the length that was
// kept. CodeOverloaded says that too many streams are open here. Any other error means that the stream was lost and can be
// followed again.
//
// A reply that was lost by its database while it was followed, as in a failover, ends as abandoned with a length of 0,
// unless its owner puts it back within Config.Patience. One that is deleted ends as abandoned(deleted) with a length of 0.
func (h *Hub) Follow(ctx context.Context, key turns.ConversationKey, id turns.ReplyID, from uint32) iter.Seq2[turns.Event, error] {
	return h.stream(ctx, key, id, from, (*follower).follow)
}

// Replay is Follow for a reply that has ended and was read with its content, which is not read again. One that was ended from
// outside, and that this worker still runs, is followed: its log is ahead of what was read, and the reply may come back.
func (h *Hub) Replay(ctx context.Context, key turns.ConversationKey, reply turns.Reply, from uint32) iter.Seq2[turns.Event, error] {
	return h.stream(ctx, key, reply.ID, from, func(f *follower) error {
		if f.ownedLog() != nil {
			return f.follow()
		}
		again, err := f.replay(reply)
		if err != nil || f.left || !again {
			return err
		}
		return f.follow()
	})
}

// FollowTurn streams a turn that waits in line: Queued, again whenever its place is another, and from its start on its reply,
// as Follow does. Cancelled in line, or refused, its reply is over from the beginning. Deleted there, alone or with its
// conversation, it is CodeTurnDeleted or CodeDeleted: it never has a reply.
func (h *Hub) FollowTurn(ctx context.Context, key turns.ConversationKey, turn turns.TurnID) iter.Seq2[turns.Event, error] {
	return h.stream(ctx, key, turns.ReplyID{}, 0, func(f *follower) error {
		if err := f.await(turn); err != nil || f.left {
			return err
		}
		return f.follow()
	})
}

// stream counts a follower in and lets it go to work.
func (h *Hub) stream(ctx context.Context, key turns.ConversationKey, id turns.ReplyID, from uint32,
	work func(*follower) error) iter.Seq2[turns.Event, error] {
	return func(yield func(turns.Event, error) bool) {
		if err := h.enter(); err != nil {
			yield(nil, err)
			return
		}
		defer h.followers.Add(-1)
		f := follower{hub: h, ctx: ctx, key: key, id: id, offset: from, yield: yield}
		if err := work(&f); err != nil && !f.left {
			yield(nil, err)
		}
	}
}

// follower is one Follow under way.
type follower struct {
	hub     *Hub
	ctx     context.Context
	key     turns.ConversationKey
	id      turns.ReplyID
	offset  uint32
	started bool
	last    *turns.Reply // as last heard of; nil: nothing was
	gone    time.Time    // since when the reply has no row; zero: it has one
	left    bool         // the consumer has stopped
	yield   func(turns.Event, error) bool
}

func (f *follower) emit(e turns.Event) bool {
	if !f.yield(e, nil) {
		f.left = true
	}
	return !f.left
}

// follow follows the reply wherever it moves. One that moves on and on is looked for once a tick.
func (f *follower) follow() error {
	for moves := 0; ; moves++ {
		begun := time.Now()
		again, err := f.once()
		if err != nil || f.left || !again {
			return err
		}
		if wait := f.hub.cfg.Tick - time.Since(begun); moves > 0 && wait > 0 && !pause(f.ctx, wait) {
			return context.Cause(f.ctx)
		}
	}
}

// once follows the reply where it is now; again says that it moved.
func (f *follower) once() (again bool, err error) {
	log, m, again, err := f.find()
	if m != nil {
		defer f.hub.leave(m)
	}
	if log == nil {
		return again, err
	}
	return f.read(log)
}

// find finds the log of the reply, here or mirrored: then the mirror must be left. Without either the reply is over, or not
// there, and its follower was told. What is found out here takes room on the stack, which a stream that waits has no use for.
func (f *follower) find() (log *Log, m *mirror, again bool, err error) {
	if log := f.ownedLog(); log != nil {
		return log, nil, false, nil
	}
	if m := f.hub.attach(f.key, f.id); m != nil {
		return m.log, m, false, nil
	}
	reply, err := f.hub.cfg.Store.ReadReply(f.ctx, f.key, f.id)
	switch {
	case errors.Is(err, turns.ErrNotFound) && f.started:
		again, err = f.missed()
		return nil, nil, again, err
	case errors.Is(err, turns.ErrDeleted), errors.Is(err, turns.ErrTurnDeleted):
		f.emit(turns.Ended{Reply: f.deleted()})
		return nil, nil, false, nil
	case err != nil:
		return nil, nil, false, err
	case reply.Status.Terminal():
		again, err = f.replay(reply)
		return nil, nil, again, err
	}
	f.gone = time.Time{}
	if m, err = f.hub.join(f.key, reply); err != nil {
		return nil, nil, false, err
	}
	if log := f.ownedLog(); log != nil {
		return log, m, false, nil // claimed by this worker after the first look
	}
	return m.log, m, false, nil
}

// ownedLog is the log of the reply if this worker runs it.
func (f *follower) ownedLog() *Log {
	if log := f.hub.ownedLog(f.id); log != nil && log.key == f.key {
		return log
	}
	return nil
}

// missed is what becomes of a follower whose reply has no row. An owner that lives puts it back once its own lease holds
// again: who is told too early sends the turn again, and pays for a second reply.
func (f *follower) missed() (again bool, err error) {
	switch {
	case f.hub.isLeaving():
		return false, leavingError()
	case f.gone.IsZero():
		f.gone = time.Now()
	case time.Since(f.gone) > f.hub.cfg.Patience:
		f.emit(turns.Ended{Reply: f.lost()})
		return false, nil
	}
	return true, nil
}

// lost is the reply, as last heard of, after its row has vanished: what was shown of it is void.
func (f *follower) lost() turns.Reply {
	reply := *f.last
	reply.Status, reply.Reason, reply.Length = turns.StatusAbandoned, turns.ReasonLeaseExpired, 0
	return reply
}

// deleted is the reply, as last heard of, after it was deleted. Nothing is kept of it.
func (f *follower) deleted() turns.Reply {
	var reply turns.Reply
	if f.last != nil {
		reply = *f.last
	}
	reply.ID, reply.Status, reply.Reason, reply.Length = f.id, turns.StatusAbandoned, turns.ReasonDeleted, 0
	return reply
}

// read follows one log to its end.
func (f *follower) read(log *Log) (again bool, err error) {
	heartbeat := time.NewTimer(f.hub.cfg.Heartbeat)
	defer heartbeat.Stop()
	log.watch(1)
	defer log.watch(-1)
	stalls := log.stallCount()
	for {
		changed, grown, again, err := f.show(log, stalls)
		if grown {
			heartbeat.Reset(f.hub.cfg.Heartbeat)
			continue
		}
		if changed == nil {
			return again, err
		}
		select {
		case <-f.ctx.Done():
			return false, context.Cause(f.ctx)
		case <-changed:
		case <-heartbeat.C:
			if !f.emit(turns.Heartbeat{}) {
				return false, nil
			}
			heartbeat.Reset(f.hub.cfg.Heartbeat)
		}
	}
}

// show shows what the log holds past the follower's offset; grown says that this was something. Else changed is where its next
// change shows, nil if there is nothing to wait for: the follower is done, or is to look again for where the reply is.
func (f *follower) show(log *Log, stalls int) (changed <-chan struct{}, grown, again bool, err error) {
	v, err := log.read(f.offset, eventBytes, f.started)
	if err != nil || f.pastEnd(&v) || v.void {
		return nil, false, false, badCursor()
	}
	if v.behind && v.state == stateOpen {
		if v.pieces, err = f.page(); err != nil {
			return nil, false, false, err
		}
	}
	if f.last = v.reply; !f.start(v.reply) {
		return nil, false, false, nil
	}
	if len(v.pieces) > 0 {
		if !f.grow(v.pieces) {
			return nil, false, false, nil
		}
		f.hub.lag.shown(f.ctx, &v)
		return nil, true, false, nil
	}
	switch {
	case v.behind, v.state == stateMoved:
		return nil, false, true, nil
	case v.state == stateEnded:
		return nil, false, f.end(*v.reply), nil
	case v.stalls > stalls:
		return nil, false, false, turns.Unavailable(v.stall)
	}
	return v.changed, false, false, nil
}

// end says how the reply ended, or goes on with the one that policy put in its place.
func (f *follower) end(reply turns.Reply) (again bool) {
	next, ok := reply.Successor()
	if !ok {
		f.emit(turns.Ended{Reply: reply})
		return false
	}
	restarted := turns.Restarted{Reply: next, Previous: reply}
	if log := f.hub.ownedLog(next); log != nil && f.offset == reply.Length && f.offset > 0 && log.continues() >= f.offset {
		restarted.Continues, restarted.Offset = true, f.offset
	}
	f.id, f.offset, f.started, f.gone = next, restarted.Offset, false, time.Time{}
	return f.emit(restarted)
}

// page reads what is stored at an offset that memory has let go of. Nothing means that the row has changed: the reply is to
// be resolved again.
func (f *follower) page() ([]turns.Piece, error) {
	views, err := f.hub.cfg.Store.ReadLogs(f.ctx, []turns.LogPosition{{Key: f.key, Reply: f.id, From: f.offset, Max: eventBytes}})
	if err != nil || views[0].From > f.offset {
		return nil, err
	}
	pieces, err := partFrom(views[0].Pieces, views[0].From, f.offset)
	if err != nil {
		return nil, badCursor()
	}
	return pieces, nil
}

// pastEnd reports an offset that can't be right: past the end of a reply that is whole.
func (f *follower) pastEnd(v *view) bool {
	return v.state == stateEnded && v.reply.Status == turns.StatusComplete && f.offset > v.reply.Length
}

func (f *follower) start(reply *turns.Reply) bool {
	if f.started {
		return true
	}
	f.started = true
	return f.emit(turns.Started{Reply: *reply})
}

// grow emits pieces that begin at the follower's offset, in events of a bounded size.
func (f *follower) grow(pieces []turns.Piece) bool {
	for _, p := range pieces {
		for rest := p; rest.Len() > 0; {
			head, tail, err := portion(rest, eventBytes)
			if err != nil {
				head, tail = rest, turns.Piece{} // no rune is that long
			}
			next := f.offset + head.Len()
			if !f.emit(turns.Grew{Offset: f.offset, Next: next, Piece: head}) {
				return false
			}
			f.offset, rest = next, tail
		}
	}
	return true
}

func badCursor() error {
	return &turns.Error{Code: turns.CodeInvalidCursor, Field: "offset",
		Problem: "lies inside a character or past the end of the reply; follow from 0"}
}
