package turns

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// settlePage is how many reservations are settled in one commit, settlePages how many commits follow each other at most.
	settlePage  = 200
	settlePages = 5
	// maxSettles bounds those that are to be settled soon. One past it is found by the next sweep.
	maxSettles = 4096
	// settleTime bounds a commit.
	settleTime = 2 * time.Second
	// quotaMemory is how long what a day was charged with is kept after it, for people to see.
	quotaMemory = 7 * 24 * time.Hour
)

// settling are the reservations that are to be settled soon, since something of their turns has ended here. The zero value is
// ready.
type settling struct {
	mu   sync.Mutex
	once sync.Once
	wake chan struct{}
	due  map[ReservationKey]struct{}
	// writing is full while they are settled, so that a drain waits for it.
	writing chan struct{}
	// commits counts what was settled from here.
	commits atomic.Int64
}

func (d *settling) come() chan struct{} {
	d.once.Do(func() {
		d.wake, d.writing, d.due = make(chan struct{}, 1), make(chan struct{}, 1), map[ReservationKey]struct{}{}
	})
	return d.wake
}

// take takes a page of them.
func (d *settling) take() (keys []ReservationKey) {
	d.come()
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.due {
		if len(keys) == settlePage {
			break
		}
		keys = append(keys, key)
		delete(d.due, key)
	}
	return keys
}

// put adds to them, as far as there is room.
func (d *settling) put(keys ...ReservationKey) {
	d.come()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		if len(d.due) < maxSettles {
			d.due[key] = struct{}{}
		}
	}
}

// settleSoon has the reservation of a turn and generation settled, if there is one, after something of it has ended, or has
// begun again that was taken to have ended. It is no part of the ending: what is not settled now is settled by a sweep, or when
// somebody meets the quota.
func (s *Service) settleSoon(key ConversationKey, turn TurnID, generation int32) {
	if s.set.Submissions == (SubmissionLimits{}) {
		return
	}
	s.settling.put(ReservationKey{Key: key, Turn: turn, Generation: generation})
	select {
	case s.settling.come() <- struct{}{}:
	default: // it is awake already
	}
}

// keepSettled settles what is due until ctx ends.
func (s *Service) keepSettled(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.settling.come():
			s.settleDue(context.Background())
		}
	}
}

// settleDue settles what is due now, and returns once nothing is under way. It waits for others who do so until ctx ends. What
// can't be settled stays due: of a reservation that was settled before no sweep would see that it has to move again.
func (s *Service) settleDue(ctx context.Context) {
	s.settling.come()
	select {
	case s.settling.writing <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.settling.writing }()
	for range maxSettles/settlePage + 1 {
		keys := s.settling.take()
		if len(keys) == 0 {
			return
		}
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		err := s.store.SettleReservations(within, keys)
		cancel()
		if err != nil {
			s.settling.put(keys...)
			s.logger.WarnContext(ctx, "quotas not settled yet", "reservations", len(keys), "err", err)
			return
		}
		s.settling.commits.Add(1)
	}
}

// tidyQuotas settles what nobody settled, because its worker died or had no database, and forgets what is over for long.
func (s *Service) tidyQuotas(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, max(s.set.Sweep, time.Second))
	defer cancel()
	s.settleDue(ctx)
	err := s.settleOpen(ctx, Caller{})
	for more, pages := true, 0; err == nil && more && pages < settlePages; pages++ {
		more, err = s.store.ForgetQuotas(ctx, quotaMemory, settlePage)
	}
	if err != nil && ctx.Err() == nil {
		s.logger.WarnContext(ctx, "quotas not tidied", "err", err)
	}
}
