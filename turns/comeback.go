package turns

import (
	"context"
	"errors"
	"slices"
)

// comeBack gives a reply that was ended from outside what its last owner has of it: a whole reply becomes the live one if
// the slot is free, which the index decides; else what is known is kept with the abandoned row, once. ok is true only in
// the first case.
func (r *run) comeBack(ctx context.Context, e Ending, row Reply) (ended Reply, ok bool, err error) {
	if e.Status == StatusComplete && row.revivable(e.Fence) {
		won, err := r.store.Salvage(ctx, e)
		if err != nil {
			return Reply{}, false, err
		}
		if won {
			r.counted = r.openCall() // by whose sweep had ended it
			r.logger.InfoContext(ctx, "reply salvaged", "reply_id", r.reply.ID.String(), "turn_id", r.reply.Turn.String())
			return r.endedReply(e, row.EndTime), true, nil
		}
	}
	if e.Call != nil {
		call := e.Call.wasted(string(row.Reason))
		e.Call = &call
	}
	_, err = r.store.Settle(ctx, e)
	return Reply{}, false, err
}

// revivable reports whether the reply was ended from outside in a way that its last owner may undo.
func (r Reply) revivable(last Fence) bool {
	return r.Status == StatusAbandoned && slices.Contains(Revivable, r.Reason) && !r.Settled && !r.CancelRequested &&
		r.under(last)
}

// revive brings a reply back that was ended from outside while it was still streaming, so that no redelivery pays for it
// again. False says that it is lost; after an error its outcome is not assumed, and the next tick looks again. The caller
// holds mu.
func (r *run) revive(ctx context.Context, owner WorkerID) (back bool, err error) {
	pieces, length, err := r.whole(ctx)
	if errors.Is(err, errHole) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.reviver = owner
	won, err := r.store.Revive(ctx, Revival{Fence: r.fence, Owner: owner, Pieces: pieces, Length: length,
		Deadline: r.deadlineLeft() + replyGrace, Call: r.openCall()})
	if err != nil {
		return false, err
	}
	if won {
		r.revived(ctx, length)
		return true, nil
	}
	row, err := r.store.ReadReply(ctx, r.key, r.reply.ID) // an earlier one, whose answer was lost, may have landed meanwhile
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return err == nil && r.adopts(ctx, row), err
}

// openCall is the call that is under way; zero between two of them, whose rows stay closed. The caller holds mu.
func (r *run) openCall() CallID {
	if n := len(r.past); n > 0 && r.past[n-1].call.ID == r.call.ID {
		return CallID{}
	}
	return r.call.ID
}

// adopts goes on under the fence of a revival without an answer if the row says that it landed. The caller holds mu.
func (r *run) adopts(ctx context.Context, row Reply) bool {
	if r.reviver.IsZero() || row.Owner != r.reviver || row.Epoch != r.fence.Epoch+1 {
		return false
	}
	r.revived(ctx, row.Length)
	return true
}

// revived runs the reply under its next epoch from now on. Its reservation, which was settled with its end, is open again: a
// sweep finds it should this worker not live to settle it. The caller holds mu.
func (r *run) revived(ctx context.Context, stored uint32) {
	r.counted = r.openCall()
	r.goOn(r.fence.Epoch+1, r.reviver, stored)
	r.reviver = WorkerID{}
	r.settleSoon(r.key, r.reply.Turn, r.reply.Generation)
	r.logger.InfoContext(ctx, "reply revived", "reply_id", r.reply.ID.String(), "turn_id", r.reply.Turn.String())
}
