package turns

import "context"

// What repeated deliveries would have used is counted by the usage of the reply that answered them, once that is over: at
// once where it is over, with the end of its run where that is this worker's, and else when the stream of the delivery has
// come to its end. A delivery that has left before is not counted then, nor one whose reply is held or was left to another
// worker.

// repeated counts a delivery that was known before, or sees that it will be.
func (s *Service) repeated(ctx context.Context, sub *Submission, layer Layer) {
	switch r := sub.Reply; {
	case sub.Result == ResultRetried: // it is a call of its own
	case sub.Result == ResultReplayed && r.Status != StatusHeld:
		s.metrics.saved(ctx, layer, 1, r.Usage)
	case sub.Result == ResultAttached && s.attach(r.ID, layer):
	default:
		sub.Saves = layer
	}
}

// attach notes a delivery with the run that answers it; false if that is not this worker's, or is over.
func (s *Service) attach(id ReplyID, layer Layer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil || r.detached {
		return false
	}
	if r.attached == nil {
		r.attached = map[Layer]int64{}
	}
	r.attached[layer]++
	return true
}

// detach takes the deliveries that are attached. From then on none is.
func (r *run) detach() map[Layer]int64 {
	r.Service.mu.Lock()
	defer r.Service.mu.Unlock()
	taken := r.attached
	r.attached, r.detached = nil, true
	return taken
}

// answerAttached counts the deliveries that a reply of this worker has answered.
func (r *run) answerAttached(ctx context.Context, ended Reply) {
	attached := r.detach()
	if ended.Status == StatusHeld {
		return
	}
	for layer, n := range attached {
		r.metrics.saved(ctx, layer, n, ended.Usage)
	}
}

// FollowedToEnd is to be called when the stream of a submission that Saves has come to the end of its reply.
func (s *Service) FollowedToEnd(ctx context.Context, saves Layer, ended Reply) {
	if saves != "" && ended.Status.Terminal() && ended.Status != StatusHeld {
		s.metrics.saved(ctx, saves, 1, ended.Usage)
	}
}
