package turns

import (
	"context"
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
			r.logger.Info("reply salvaged", "reply_id", r.reply.ID.String(), "turn_id", r.reply.Turn.String())
			return r.endedReply(e, row.EndTime), true, nil
		}
	}
	if e.Call != nil && e.Call.Usage.Total() > 0 {
		e.Call.WasteCause, e.Call.Usage.Wasted = string(row.Reason), e.Call.Usage.Total()
	}
	_, err = r.store.Settle(ctx, e)
	return Reply{}, false, err
}

// revivable reports whether the reply was ended from outside in a way that its last owner may undo.
func (r Reply) revivable(last Fence) bool {
	return r.Status == StatusAbandoned && slices.Contains(Revivable, r.Reason) && !r.Settled && !r.CancelRequested &&
		r.Epoch == last.Epoch && r.Owner == last.Owner
}

// revive brings a reply back that was ended from outside while it was still streaming, so that no redelivery pays for it
// again. The caller holds mu.
func (r *run) revive(ctx context.Context, owner WorkerID) bool {
	pieces, length, err := r.whole(ctx)
	if err != nil {
		return false
	}
	won, err := r.store.Revive(ctx, Revival{Fence: r.fence, Owner: owner, Pieces: pieces, Length: length,
		Deadline: r.deadlineLeft() + replyGrace, Call: r.call.ID})
	if err != nil || !won {
		return false
	}
	r.fence.Epoch, r.fence.Owner = r.fence.Epoch+1, owner
	r.reply.Epoch, r.reply.Owner, r.stored = r.fence.Epoch, owner, length
	r.logger.Info("reply revived", "reply_id", r.reply.ID.String(), "turn_id", r.reply.Turn.String())
	return true
}
