package turns

import (
	"container/list"
	"context"
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
type admission struct {
	places int // to hand out
	room   int // of the queue

	mu      sync.Mutex
	taken   int
	closed  bool
	waiting list.List // of *waiter
	held    sync.WaitGroup
}

// waiter is one who waits. turn is closed once it has a place, or once there will be none.
type waiter struct {
	turn  chan struct{}
	got   bool
	place *list.Element // in the queue
}

// take gets a place, for which it waits until ctx ends; waited says that it took time, in which anything may have changed.
// It fails with CodeOverloaded or CodeDraining, and then no place is held.
func (a *admission) take(ctx context.Context) (waited bool, err error) {
	w, err := a.enter()
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
func (a *admission) try() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.takeFree()
}

func (a *admission) takeFree() bool {
	if a.closed || a.taken >= a.places { // while anybody waits all are taken
		return false
	}
	a.taken++
	a.held.Add(1)
	return true
}

// enter takes a free place, or else one in the queue.
func (a *admission) enter() (*waiter, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil, drainingError()
	case a.takeFree():
		return nil, nil
	case a.waiting.Len() >= a.room:
		return nil, overloaded()
	}
	w := &waiter{turn: make(chan struct{})}
	w.place = a.waiting.PushBack(w)
	return w, nil
}

// resolve ends a wait. A place that came just when the wait was given up is taken all the same.
func (a *admission) resolve(w *waiter) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w.got {
		return nil
	}
	if a.closed {
		return drainingError()
	}
	a.waiting.Remove(w.place)
	return overloaded()
}

// carry takes a place for a reply that takes over from one that still has its own. Until that gives its back there is one
// more than the limit; nobody is refused or waited for, also while places are closed.
func (a *admission) carry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken++
	a.held.Add(1)
}

// inherit takes the place of a reply that is about to be stopped. Until that gives its own back there is one more than the
// limit.
func (a *admission) inherit() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.taken++
	a.held.Add(1)
	return true
}

// leave gives a place back, to the first who waits for one unless it was inherited.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
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

func drainingError() error {
	return &Error{Code: CodeDraining, Problem: "this worker is shutting down; send the same turn to another", RetryAfter: 100 * time.Millisecond}
}

// admit takes a place among the running replies, or refuses before anything is written. It waits no longer than the sender.
func (a *arrival) admit() (waited bool, err error) {
	if a.admitted {
		return false, nil
	}
	waited, err = a.admission.take(a.sender)
	a.admitted = err == nil
	return waited, err
}

// admitAfter is admit for a turn that stops a reply to be answered itself: where all places are taken it gets that of the
// reply, if it runs here. Only the first who asks for it does, so that no more than one is past the limit for each.
func (a *arrival) admitAfter(stopped ReplyID) (waited bool, err error) {
	if !a.admitted {
		a.admitted = a.admission.try() || a.heir(stopped) && a.admission.inherit()
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
		a.leavePlace()
	}
}

// leavePlace gives back a place taken by admit. It may be one for a turn in line.
func (s *Service) leavePlace() {
	s.admission.leave()
	s.lines.placeFree()
}
