package live

import (
	"context"
	"iter"
	"time"

	"github.com/turnd/turnd/turns"
)

// eventBytes bounds one read of a follower, and so the size of a merged piece.
const eventBytes = 64 << 10

// Follow streams a reply from an offset: Started, then its log piece by piece, then Ended. It works before, during and
// long after the reply's making, on any worker. An offset inside a rune, or past the end of a complete reply, is
// CodeInvalidCursor; past the end of an abandoned or held one it is answered with Ended, which says the length that was
// kept. Any other error means that the stream was lost and can be followed again.
func (h *Hub) Follow(ctx context.Context, key turns.ConversationKey, id turns.ReplyID, from uint32) iter.Seq2[turns.Event, error] {
	return func(yield func(turns.Event, error) bool) {
		f := follower{hub: h, ctx: ctx, key: key, id: id, offset: from, yield: yield}
		for {
			again, err := f.once()
			if err != nil && !f.left {
				yield(nil, err)
			}
			if err != nil || f.left || !again {
				return
			}
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
	left    bool // the consumer has stopped
	yield   func(turns.Event, error) bool
}

func (f *follower) emit(e turns.Event) bool {
	if !f.yield(e, nil) {
		f.left = true
	}
	return !f.left
}

// once follows the reply where it is now; again says that it moved.
func (f *follower) once() (again bool, err error) {
	if log := f.hub.ownedLog(f.id); log != nil {
		return f.read(log)
	}
	reply, err := f.hub.cfg.Store.ReadReply(f.ctx, f.key, f.id)
	if err != nil {
		return false, err
	}
	if reply.Status.Terminal() {
		return f.stored(reply)
	}
	if log := f.hub.ownedLog(f.id); log != nil {
		return f.read(log) // claimed by this worker after the first look
	}
	m, err := f.hub.join(f.key, reply)
	if err != nil {
		return false, err
	}
	defer f.hub.leave(m)
	return f.read(m.log)
}

// stored replays an ended reply from its content.
func (f *follower) stored(reply turns.Reply) (bool, error) {
	log := newLog(f.hub, f.key, reply, false)
	for _, p := range reply.Content {
		if err := log.log.Append(p); err != nil {
			return false, err
		}
	}
	log.state = stateEnded
	return f.read(log)
}

// read follows one log to its end.
func (f *follower) read(log *Log) (again bool, err error) {
	heartbeat := time.NewTimer(f.hub.cfg.Heartbeat)
	defer heartbeat.Stop()
	log.watch(1)
	defer log.watch(-1)
	stalls := log.stallCount()
	for {
		v, err := log.read(f.offset, eventBytes)
		if err != nil || f.pastEnd(v) {
			return false, badCursor()
		}
		if !f.start(v.reply) {
			return false, nil
		}
		if len(v.pieces) > 0 {
			if !f.grow(v) {
				return false, nil
			}
			heartbeat.Reset(f.hub.cfg.Heartbeat)
			continue
		}
		switch {
		case v.state == stateEnded:
			f.emit(turns.Ended{Reply: v.reply})
			return false, nil
		case v.state == stateMoved:
			return true, nil
		case v.stalls > stalls:
			return false, turns.Unavailable(v.stall)
		}
		select {
		case <-f.ctx.Done():
			return false, context.Cause(f.ctx)
		case <-v.changed:
		case <-heartbeat.C:
			if !f.emit(turns.Heartbeat{}) {
				return false, nil
			}
			heartbeat.Reset(f.hub.cfg.Heartbeat)
		}
	}
}

// pastEnd reports an offset that can't be right: past the end of a reply that is whole.
func (f *follower) pastEnd(v view) bool {
	return v.state == stateEnded && v.reply.Status == turns.StatusComplete && f.offset > v.reply.Length
}

func (f *follower) start(reply turns.Reply) bool {
	if f.started {
		return true
	}
	f.started = true
	return f.emit(turns.Started{Reply: reply})
}

func (f *follower) grow(v view) bool {
	for _, p := range v.pieces {
		next := f.offset + p.Len()
		if !f.emit(turns.Grew{Offset: f.offset, Next: next, Piece: p}) {
			return false
		}
		f.offset = next
	}
	return true
}

func badCursor() error {
	return &turns.Error{Code: turns.CodeInvalidCursor, Field: "offset",
		Problem: "lies inside a character or past the end of the reply; follow from 0"}
}
