package turns

import (
	"context"
	"sync"
	"time"
)

// nudges are replies of this worker that are to look at the store before the next tick. Hints for the same reply become
// one look, and it holds no more ids than replies run here, and maxEarly. The zero value is ready.
type nudges struct {
	mu   sync.Mutex
	once sync.Once
	ids  map[ReplyID]struct{}
	wake chan struct{}
	// early are replies whose log is open here and whose run has not begun, with the time of the hint. The service's mu guards
	// it.
	early map[ReplyID]time.Time
}

// maxEarly bounds the hints that wait for their run to begin. Those past it are lost.
const maxEarly = 1024

// come is where a hint shows.
func (n *nudges) come() chan struct{} {
	n.once.Do(func() { n.ids, n.wake = map[ReplyID]struct{}{}, make(chan struct{}, 1) })
	return n.wake
}

func (n *nudges) add(id ReplyID) {
	wake := n.come()
	n.mu.Lock()
	n.ids[id] = struct{}{}
	n.mu.Unlock()
	select {
	case wake <- struct{}{}:
	default: // a look is due already
	}
}

// take gives the ids and forgets them.
func (n *nudges) take() map[ReplyID]struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := n.ids
	n.ids = map[ReplyID]struct{}{}
	return ids
}

// Nudge makes the run of a reply look at the store now, if it runs here. It is a hint and nothing is believed of it: what
// the store answers says whether a stop was asked for. However many come, looks follow each other by a part of a tick.
func (s *Service) Nudge(id ReplyID) {
	if s.runsOrWaits(id) {
		s.nudges.add(id)
	}
}

// runsOrWaits reports a reply that runs here. The hint of one whose run has not begun is kept for it.
func (s *Service) runsOrWaits(id ReplyID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[id] != nil {
		return true
	}
	if s.nudges.early == nil {
		s.nudges.early = map[ReplyID]time.Time{}
	}
	if len(s.nudges.early) < maxEarly {
		s.nudges.early[id] = time.Now()
	}
	return false
}

// register adds a run to those of this worker, with the hint that came before it.
func (s *Service) register(r *run) {
	id := r.reply.ID
	s.mu.Lock()
	s.runs[id] = r
	_, early := s.nudges.early[id]
	delete(s.nudges.early, id)
	s.mu.Unlock()
	if early {
		s.nudges.add(id)
	}
}

// forgetEarly lets go of hints for runs that never began. The caller holds the service's mu.
func (s *Service) forgetEarly() {
	for id, came := range s.nudges.early {
		if time.Since(came) > s.set.Lease {
			delete(s.nudges.early, id)
		}
	}
}

// runOfReply is the run of a reply, nil if it does not run here.
func (s *Service) runOfReply(id ReplyID) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}

// nudgeRest is the part of a tick that passes between two looks that were asked for.
const nudgeRest = 10

// keepStored stores checkpoints of all runs each tick, and of single ones when they are nudged, until ctx ends.
func (s *Service) keepStored(ctx context.Context) {
	ticker := time.NewTicker(s.set.Checkpoint)
	defer ticker.Stop()
	for {
		s.rounds.note(checkpointRounds)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.checkpoint(ctx)
		case <-s.nudges.come():
			s.checkpointNudged(ctx)
			if !pause(ctx, s.set.Checkpoint/nudgeRest) {
				return
			}
		}
	}
}

func (s *Service) checkpointNudged(ctx context.Context) {
	var runs []*run
	for id := range s.nudges.take() {
		if r := s.runOfReply(id); r != nil {
			runs = append(runs, r)
		}
	}
	s.checkpointRuns(ctx, runs)
}
