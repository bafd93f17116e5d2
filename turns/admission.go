package turns

import (
	"container/list"
	"context"
	"strconv"
	"sync"
	"time"
)

// queueTime bounds how long a delivery waits for a place. It leaves what is left of submitTime for its claim.
const queueTime = 10 * time.Second

// admission hands out the places of running replies. Who finds none free waits in order, in a queue of bounded length and
// for a bounded time, and holds nothing but its own request meanwhile: no connection, no row.
//
// A place is kept until its reply is stored or spooled, so that replies which are over and wait for the database are
// bounded too.
//
// One subject may have so many in all, of places and of those who wait for one, so that nobody who sends much keeps others out
// of the queue. What belongs to no subject is bounded with all the rest alone.
type admission struct {
	places int // to hand out
	room   int // of the queue
	each   int // of one subject; 0: no bound

	mu      sync.Mutex
	taken   int
	of      map[Caller]int // what each subject has
	closed  bool
	waiting list.List // of *waiter
	held    sync.WaitGroup
}

// waiter is one who waits. turn is closed once it has a place, or once there will be none.
type waiter struct {
	turn  chan struct{}
	who   Caller
	got   bool
	place *list.Element // in the queue
}

// take gets a place, for which it waits until ctx ends; waited says that it took time, in which anything may have changed.
// It fails with CodeOverloaded or CodeDraining, and then no place is held.
func (a *admission) take(ctx context.Context, who Caller) (waited bool, err error) {
	w, err := a.enter(who)
	if w == nil || err != nil {
		return false, err
	}
	timer := time.NewTimer(queueTime)
	defer timer.Stop()
	select {
	case <-w.turn:
	case <-timer.C:
	case <-ctx.Done():
	}
	return true, a.resolve(w)
}

// try takes a place if one is free.
func (a *admission) try(who Caller) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.takeFree(who)
}

// wanting is the subject if it has as many places as it may, so that none of another's is of use to it; else zero.
func (a *admission) wanting(who Caller) Caller {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.full(who) {
		return who
	}
	return Caller{}
}

func (a *admission) full(who Caller) bool {
	return a.each > 0 && who != (Caller{}) && a.of[who] >= a.each
}

func (a *admission) takeFree(who Caller) bool {
	if a.closed || a.taken >= a.places || a.full(who) { // while anybody waits all are taken
		return false
	}
	a.give(who)
	return true
}

// give hands out a place.
func (a *admission) give(who Caller) {
	a.taken++
	a.held.Add(1)
	a.count(who, 1)
}

// count notes what a subject has more, or less; one that has nothing is forgotten.
func (a *admission) count(who Caller, more int) {
	if a.of == nil {
		a.of = map[Caller]int{}
	}
	if a.of[who] += more; a.of[who] == 0 {
		delete(a.of, who)
	}
}

// enter takes a free place, or else one in the queue.
func (a *admission) enter(who Caller) (*waiter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil, drainingError()
	case a.takeFree(who):
		return nil, nil
	case a.full(who):
		return nil, overloadedBy(a.each)
	case a.waiting.Len() >= a.room:
		return nil, overloaded()
	}
	w := &waiter{turn: make(chan struct{}), who: who}
	w.place = a.waiting.PushBack(w)
	a.count(who, 1)
	return w, nil
}

// resolve ends a wait. A place that came just when the wait was given up is taken all the same.
func (a *admission) resolve(w *waiter) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.got {
		return nil
	}
	a.count(w.who, -1)
	if a.closed {
		return drainingError()
	}
	a.waiting.Remove(w.place)
	return overloaded()
}

// carry takes a place for a reply that takes over from one that still has its own. Until that gives its back there is one
// more than the limit; nobody is refused or waited for, also while places are closed.
func (a *admission) carry(who Caller) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.give(who)
}

// inherit takes the place of a reply that is about to be stopped. Until that gives its own back there is one more than the
// limit, of all and of its subject.
func (a *admission) inherit(who Caller) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.give(who)
	return true
}

// leave gives a subject's place back, to the first who waits for one unless it was inherited.
func (a *admission) leave(who Caller) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(who, -1)
	if e := a.waiting.Front(); e != nil && a.taken <= a.places {
		w := a.waiting.Remove(e).(*waiter)
		w.got = true
		close(w.turn)
		return
	}
	a.taken--
	a.held.Done()
}

// close refuses whoever comes, and sends away whoever waits.
func (a *admission) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for e := a.waiting.Front(); e != nil; e = a.waiting.Front() {
		close(a.waiting.Remove(e).(*waiter).turn)
	}
}

func (a *admission) isClosed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

// queued is how many wait.
func (a *admission) queued() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting.Len()
}

func overloaded() error {
	return &Error{Code: CodeOverloaded, Problem: "too many replies are running; send the same turn again later", RetryAfter: time.Second}
}

func overloadedBy(each int) error {
	return &Error{Code: CodeOverloaded, RetryAfter: time.Second, Meta: map[string]string{"limit": strconv.Itoa(each), "scope": scopeSubject},
		Problem: "as many replies of this subject are running or wait here as may; send the same turn again once one is over"}
}

func drainingError() error {
	return &Error{Code: CodeDraining, Problem: "this worker is shutting down; send the same turn to another", RetryAfter: 100 * time.Millisecond}
}

// admit takes a place among the running replies, or refuses before anything is written. It waits no longer than the sender.
func (a *arrival) admit() (waited bool, err error) {
	if a.admitted {
		return false, nil
	}
	waited, err = a.admission.take(a.sender, a.caller)
	a.admitted = err == nil
	return waited, err
}

// admitAfter is admit for a turn that stops a reply to be answered itself: where all places are taken it gets that of the
// reply, if it runs here. Only the first who asks for it does, so that no more than one is past the limit for each.
func (a *arrival) admitAfter(stopped ReplyID) (waited bool, err error) {
	if !a.admitted {
		a.admitted = a.admission.try(a.caller) || a.heir(stopped) && a.admission.inherit(a.caller)
	}
	return a.admit()
}

// heir makes the caller the one who gets the place of a reply that runs here.
func (s *Service) heir(id ReplyID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil || r.inherited {
		return false
	}
	r.inherited = true
	return true
}

// release gives the place back if no run took it over. A claim that may still stand keeps it until that is known.
func (a *arrival) release() {
	switch {
	case a.admitted && a.unsure:
		go a.recover()
	case a.admitted:
		a.leavePlace(a.caller)
	}
}

// leavePlace gives back a place that a subject took by admit. It may be one for a turn in line.
func (s *Service) leavePlace(who Caller) {
	s.admission.leave(who)
	s.lines.placeFree(who)
}
