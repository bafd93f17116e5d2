package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
)

const (
	// maxInLane is how many of a worker's connections may wait for one row of quotas: one has it locked, and the others have
	// written all else meanwhile.
	maxInLane = 4
	// lanesLeave is the part of the pool's connections that claims with reservations leave to all others: one of so many.
	lanesLeave = 4
)

// lanes let claims that will lock the same row of quotas wait for each other here, where that costs nothing. In the database
// each would wait with a connection, and the burst of one subject would take all of them from everybody's replays. A claim
// waits for its subject first, then for its tenant, then for one of the places of all: so it keeps nobody else from what it
// is not next for itself. That no two wait for each other is the same order's doing; the database's locks come after it.
//
// The zero value lets one at a time into each.
type lanes struct {
	each int // of one row
	all  int // of all rows together

	mu   sync.Mutex
	used map[lane]*lanePlaces
}

// newLanes shares out a pool's connections.
func newLanes(conns int) lanes {
	return lanes{each: min(maxInLane, conns/lanesLeave), all: conns - conns/lanesLeave}
}

// lane is a row of quotas, of whatever day, or the one of all claims.
type lane struct {
	kind    laneKind
	tenant  turns.Tenant
	subject string
}

// laneKind orders lanes as they are entered.
type laneKind int

const (
	ofSubject laneKind = iota
	ofTenant
	ofAll
)

func (l lane) compare(o lane) int {
	return cmp.Or(cmp.Compare(l.kind, o.kind), cmp.Compare(l.tenant, o.tenant), cmp.Compare(l.subject, o.subject))
}

// lanePlaces are those of a lane. It is there while somebody uses it.
type lanePlaces struct {
	taken chan struct{}
	users int
}

// lanesOf are the lanes of a reservation, without that of all.
func lanesOf(tenant turns.Tenant, r *turns.Reservation) (of []lane) {
	l := r.Limits
	if l.SubjectTurns > 0 || l.SubjectTokens > 0 || l.PerMinute > 0 && r.Submission {
		of = append(of, lane{ofSubject, tenant, turns.CountedAs(r.Subject)})
	}
	if l.TenantTurns > 0 || l.TenantTokens > 0 {
		of = append(of, lane{ofTenant, tenant, ""})
	}
	return of
}

// enter waits for a place in each lane and in that of all, for so long at most. Leave gives them back.
func (l *lanes) enter(ctx context.Context, of []lane, wait time.Duration) (leave func(), err error) {
	of = append(of, lane{kind: ofAll})
	slices.SortFunc(of, lane.compare)
	of = slices.Compact(of)
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var entered []lane
	leave = func() {
		for _, one := range entered {
			l.leave(one, true)
		}
	}
	for _, one := range of {
		select {
		case l.use(one).taken <- struct{}{}:
			entered = append(entered, one)
		case <-within.Done():
			l.leave(one, false)
			leave()
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %s for a turn at a quota", errSlow, wait)
		}
	}
	return leave, nil
}

func (l *lanes) use(one lane) *lanePlaces {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.used[one]
	if p == nil {
		size := l.each
		if one.kind == ofAll {
			size = l.all
		}
		p = &lanePlaces{taken: make(chan struct{}, max(size, 1))}
		if l.used == nil {
			l.used = map[lane]*lanePlaces{}
		}
		l.used[one] = p
	}
	p.users++
	return p
}

// leave ends a use that got a place, or did not.
func (l *lanes) leave(one lane, got bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.used[one]
	if got {
		<-p.taken
	}
	if p.users--; p.users == 0 {
		delete(l.used, one)
	}
}

// reserving runs a transaction that charges what is asked for. Its error is raw.
func (s *Store) reserving(ctx context.Context, of []lane, do transaction) error {
	leave, err := s.lanes.enter(ctx, of, s.pool.limits.statement)
	if err != nil {
		return notSent{err}
	}
	defer leave()
	return s.inOne(ctx, do)
}
