package turns

import (
	"context"
	"sync"
	"time"
)

const (
	// lookEvery is how often this worker goes through all that a quota's turns have reserved, which may be as much as a tenant
	// has running. Who meets the quota in between is answered by what was found.
	lookEvery = time.Second
	// maxQuotaLooks bounds the quotas of which that is remembered. One past it is looked at each time.
	maxQuotaLooks = 1024
)

// quotaLooks are what this worker found of the quotas that were met of late. The zero value is ready.
type quotaLooks struct {
	mu  sync.Mutex
	all map[Caller]*quotaLook
}

// quotaLook is what was found of one quota. Whoever fills turn has the rest to itself, and those who wait for it then find what
// that one found.
type quotaLook struct {
	turn chan struct{}
	// went is when what has ended was last settled.
	went time.Time
	// read is when settled was read, and commits how much had been settled from here before.
	read    time.Time
	commits int64
	settled QuotaUse
	// used is when anybody last asked, under the lock of all.
	used time.Time
}

// of is the look at a subject's quota, or at a tenant's where the subject is empty.
func (q *quotaLooks) of(c Caller) *quotaLook {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.all == nil {
		q.all = map[Caller]*quotaLook{}
	}
	if q.all[c] == nil && len(q.all) >= maxQuotaLooks {
		for other, look := range q.all {
			if time.Since(look.used) > lookEvery {
				delete(q.all, other)
			}
		}
	}
	look := q.all[c]
	if look == nil {
		look = &quotaLook{turn: make(chan struct{}, 1)}
		if len(q.all) < maxQuotaLooks {
			q.all[c] = look
		}
	}
	look.used = time.Now()
	return look
}

// lookAt waits for a turn at the look at the quota that a caller met.
func (s *Service) lookAt(ctx context.Context, c Caller, ofTenant bool) (look *quotaLook, done func(), err error) {
	c.Subject = CountedAs(c.Subject)
	if ofTenant {
		c.Subject = ""
	}
	look = s.looks.of(c)
	select {
	case look.turn <- struct{}{}:
		return look, func() { <-look.turn }, nil
	case <-ctx.Done():
		return nil, nil, Unavailable(ctx.Err())
	}
}

// settleEnded settles what has ended of a subject, or of its whole tenant: what ended here each time, and what did elsewhere once
// in a while.
func (s *Service) settleEnded(ctx context.Context, c Caller, ofTenant bool) error {
	within, cancel := context.WithTimeout(ctx, settleTime)
	s.settleDue(within)
	cancel()
	look, done, err := s.lookAt(ctx, c, ofTenant)
	if err != nil {
		return err
	}
	defer done()
	now := time.Now()
	if now.Sub(look.went) < lookEvery {
		return nil
	}
	if ofTenant {
		c.Subject = ""
	}
	if err := s.settleOpen(ctx, c); err != nil {
		return err
	}
	look.went = now
	return nil
}

// settleOpen settles what has ended of a subject, of a tenant, or of all.
func (s *Service) settleOpen(ctx context.Context, c Caller) error {
	for range settlePages {
		n, err := s.store.SettleOpen(ctx, c.Tenant, c.Subject, settlePage)
		if n > 0 {
			s.settling.commits.Add(1)
		}
		if err != nil || n < settlePage {
			return err
		}
	}
	return nil
}

// settledOf is what is settled of a quota that was met. In the course of a day that only grows, but for a turn that failed and is
// sent again: what was too much is so still, and what was not is looked at again once something was settled here.
func (s *Service) settledOf(ctx context.Context, c Caller, m LimitMet) (QuotaUse, error) {
	look, done, err := s.lookAt(ctx, c, m.OfTenant)
	if err != nil {
		return QuotaUse{}, err
	}
	defer done()
	now, commits := time.Now(), s.settling.commits.Load()
	ofToday := m.Wait-look.settled.Left < time.Hour
	if ofToday && now.Sub(look.read) < lookEvery && (commits == look.commits || !m.comesBack(look.settled)) {
		return look.settled, nil
	}
	subject := CountedAs(c.Subject)
	if m.OfTenant {
		subject = ""
	}
	settled, err := s.store.QuotaSettled(ctx, c.Tenant, subject)
	if err == nil {
		look.read, look.commits, look.settled = now, commits, settled
	}
	return settled, err
}
