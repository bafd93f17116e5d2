package turns

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// checkpointBytes bounds the pieces that one statement carries, unless those of a single reply are more.
	checkpointBytes = 8 << 20
	// checkpointReplies bounds the replies of one statement: each takes a few kilobytes while it is under way, and its ending
	// waits for it.
	checkpointReplies = 1024
)

// checkpoint stores, each tick, the tails of all replies that run here, in as few statements as their size and number allow,
// and learns from the answers which of them were lost or must stop.
func (s *Service) checkpoint(ctx context.Context) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.runs))
	s.forgetEarly()
	s.mu.Unlock()
	s.checkpointRuns(ctx, all)
}

// checkpointRuns stores the tails of some runs.
func (s *Service) checkpointRuns(ctx context.Context, all []*run) {
	ctx, cancel := context.WithTimeout(ctx, s.set.Lease)
	defer cancel()
	if len(all) > 0 {
		defer s.metrics.checkpointTook(ctx, time.Now())
	}
	for len(all) > 0 && ctx.Err() == nil {
		var batch []heldTail
		batch, all = holdTails(all, checkpointBytes)
		s.storeTails(ctx, batch)
	}
}

// heldTail is a run whose lock is held, and its checkpoint.
type heldTail struct {
	run     *run
	item    Checkpoint
	refused bool // by the store
}

// holdTails locks runs and takes their tails, up to max bytes and checkpointReplies of them but at least one, and gives the runs
// that are left. A run that is just ending is passed over: it holds its own lock.
func holdTails(runs []*run, max int) (held []heldTail, rest []*run) {
	size := 0
	for i, r := range runs {
		if len(held) == checkpointReplies {
			return held, runs[i:]
		}
		if !r.mu.TryLock() {
			continue
		}
		if r.over {
			r.mu.Unlock()
			continue
		}
		item := r.tail()
		size += bytesOf(item.Pieces)
		if len(held) > 0 && size > max {
			r.mu.Unlock()
			return held, runs[i:]
		}
		held = append(held, heldTail{run: r, item: item})
	}
	return held, nil
}

// bytesOf is how much text is in pieces, with what takes no room in the log.
func bytesOf(pieces []Piece) (n int) {
	for _, p := range pieces {
		n += len(p.Text) + len(p.Seal) + len(p.ToolUseID) + len(p.ToolName) + len(p.Type)
	}
	return n
}

// storeTails stores tails in one statement and lets go of their runs.
func (s *Service) storeTails(ctx context.Context, held []heldTail) {
	if len(held) == 0 {
		return
	}
	items := make([]Checkpoint, len(held))
	for i, h := range held {
		items[i] = h.item
	}
	ctx, span := s.checkpointSpan(ctx, held)
	results, err := s.store.Checkpoint(ctx, items)
	span.End()
	if err != nil {
		s.logger.WarnContext(ctx, "checkpoint not stored", "replies", len(items), "err", err)
	}
	var asking []heldTail
	for i, h := range held {
		if err == nil && h.run.checkpointed(h.item, results[i]) {
			h.refused = !results[i].Held
			asking = append(asking, h)
			continue
		}
		h.run.mu.Unlock()
	}
	askAll(ctx, asking)
}

// maxAsks bounds how many runs ask the store at once what their checkpoints did not say.
const maxAsks = 8

// askAll lets runs ask the store, and lets go of them. After a failover that may be all that run here, and those whose
// checkpoint was held must not wait for them.
func askAll(ctx context.Context, asking []heldTail) {
	var all sync.WaitGroup
	places := make(chan struct{}, maxAsks)
	for _, h := range asking {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			defer h.run.mu.Unlock()
			if h.refused {
				h.run.refused(ctx)
			} else {
				h.run.checkFollowers(ctx)
			}
		})
	}
	all.Wait()
}

// tail is the checkpoint that the run needs now. The caller holds mu.
func (r *run) tail() Checkpoint {
	c := Checkpoint{Fence: r.fence, From: r.stored}
	c.Pieces, c.To = r.log.Tail(r.stored)
	if id := r.knownResponse(); id != r.noted {
		c.ResponseID = id
	}
	return c
}

// checkpointed takes a checkpoint's answer, and reports whether the store must be asked for more. The caller holds mu.
func (r *run) checkpointed(c Checkpoint, res CheckpointResult) (ask bool) {
	if !res.Held {
		return true
	}
	r.stored = c.To
	r.log.Stored(c.To)
	if res.CancelRequested {
		r.cancel(errRequested)
		return false
	}
	if c.ResponseID != "" {
		r.noted = c.ResponseID
	}
	return r.unwatched()
}

// unwatched reports whether a reply whose client asked to stop it then has had no follower here for a while. The caller
// holds mu.
func (r *run) unwatched() bool {
	grace := r.reply.DisconnectGrace
	if grace == 0 {
		return false
	}
	followers, since := r.log.Watched()
	return followers == 0 && time.Since(since) >= grace && !time.Now().Before(r.followed)
}

// checkFollowers stops a reply that is unwatched, unless it is followed on another worker by what its mirrors announced. The
// caller holds mu.
func (r *run) checkFollowers(ctx context.Context) {
	row, err := r.store.ReadReply(ctx, r.key, r.reply.ID)
	switch {
	case err != nil: // the next tick asks again
	case row.FollowedLeft > 0:
		r.followed = time.Now().Add(row.FollowedLeft)
	default:
		r.cancel(errLeft)
	}
}

// refused finds out why a checkpoint changed nothing: an earlier one landed though its answer was lost, or the stored log
// lost its end in a failover, or the reply is no longer this worker's, or its row is lost. The caller holds mu.
func (r *run) refused(ctx context.Context) {
	row, err := r.store.ReadReply(ctx, r.key, r.reply.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		r.vanished(ctx)
		return
	case isGone(err):
		r.over = true
		r.cancel(errDeleted)
		return
	case err != nil:
		return // the next tick asks again
	case row.Status == StatusInFlight && row.under(r.fence):
		r.storedIs(row.Length)
		return
	case row.Status == StatusInFlight && r.adopts(ctx, row):
		return
	case row.Status == StatusHeld && row.under(r.fence):
		return // it goes on, and is finished if it comes to a whole reply
	case row.revivable(r.fence) && r.fence.Epoch < MaxEpoch:
		// Only a dead worker's reply is swept as expired: under the same id nothing comes back.
		owner := r.lease.worker()
		if !r.lease.holds(owner) || row.Reason == ReasonLeaseExpired && row.Owner == owner {
			return // the next tick sees, once the lease is renewed
		}
		if back, err := r.revive(ctx, owner); back || err != nil {
			return
		}
	}
	r.over = true
	r.cancel(errLost)
}

// storedIs notes how long the stored log is. What it has lost is stored again from memory; if memory no longer holds it,
// it is gone for good. The caller holds mu.
func (r *run) storedIs(length uint32) {
	r.stored = length
	if length < r.log.First() {
		r.over = true
		r.cancel(errHole)
	}
}
