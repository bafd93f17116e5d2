package turns

import (
	"context"
	"errors"
	"sync"
	"time"
)

// awaitTime is how long a line waits for a turn that goes ahead of it, after the reply was stopped for that. It comes at
// once, unless its sender's worker is gone.
const awaitTime = 5 * time.Second

// maxLooks bounds the conversations that are to be looked at, and maxStarts the looks under way. A conversation past it is
// found by the next sweep.
const (
	maxLooks  = 4096
	maxStarts = 8
)

// lines are the conversations whose line is to be looked at. The zero value is ready.
type lines struct {
	mu    sync.Mutex
	once  sync.Once
	wake  chan struct{}
	soon  map[ConversationKey]struct{}
	later map[ConversationKey]struct{} // at the next tick
	// starved found no place for the turn that is next: because the worker had none left, or, where it is named, its subject.
	starved map[ConversationKey]Caller
	// resting met a limit with the turn that is next, and are left alone until then.
	resting map[ConversationKey]time.Time

	// from belongs to the sweep: the key after which it looks for lines.
	from ConversationKey
}

// come is where a look that is due shows.
func (l *lines) come() chan struct{} {
	l.once.Do(func() {
		l.wake = make(chan struct{}, 1)
		l.soon, l.later, l.starved = map[ConversationKey]struct{}{}, map[ConversationKey]struct{}{}, map[ConversationKey]Caller{}
		l.resting = map[ConversationKey]time.Time{}
	})
	return l.wake
}

func (l *lines) rouse() {
	select {
	case l.come() <- struct{}{}:
	default: // a look is due already
	}
}

// put adds a conversation to a set, if there is room.
func (l *lines) put(set *map[ConversationKey]struct{}, key ConversationKey) {
	l.come()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(*set) < maxLooks {
		(*set)[key] = struct{}{}
	}
}

// take empties a set.
func (l *lines) take(set *map[ConversationKey]struct{}) map[ConversationKey]struct{} {
	l.come()
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := *set
	*set = map[ConversationKey]struct{}{}
	return taken
}

// starve notes that there was no place for a conversation's next turn, or, if who is not zero, none for its subject.
func (l *lines) starve(key ConversationKey, who Caller) {
	l.come()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.starved) < maxLooks {
		l.starved[key] = who
	}
}

// rest leaves a conversation alone for a while whose next turn met a limit.
func (l *lines) rest(key ConversationKey, limit time.Duration) {
	l.come()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.resting) < maxLooks {
		l.resting[key] = time.Now().Add(min(limit, mostRest))
	}
}

// rests reports whether a conversation is to be left alone still.
func (l *lines) rests(key ConversationKey) bool {
	l.come()
	l.mu.Lock()
	defer l.mu.Unlock()
	until, ok := l.resting[key]
	if ok && !time.Now().Before(until) {
		delete(l.resting, key)
		return false
	}
	return ok
}

// placeFree has those looked at again that found no place, where one that a subject gave back may serve them.
func (l *lines) placeFree(who Caller) {
	l.come()
	l.mu.Lock()
	hungry := false
	for key, wants := range l.starved {
		if wants == (Caller{}) || wants == who {
			hungry = true
			l.soon[key] = struct{}{}
			delete(l.starved, key)
		}
	}
	l.mu.Unlock()
	if hungry {
		l.rouse()
	}
}

// advanceSoon has a conversation's line looked at: whether the next turn in it can start.
func (s *Service) advanceSoon(key ConversationKey) {
	s.lines.put(&s.lines.soon, key)
	s.lines.rouse()
}

// advanceLater has it looked at with the next tick.
func (s *Service) advanceLater(key ConversationKey) { s.lines.put(&s.lines.later, key) }

// keepLines looks at lines when that is due, until ctx ends.
func (s *Service) keepLines(ctx context.Context) {
	ticker := time.NewTicker(s.set.Checkpoint)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.advanceAll(ctx, s.lines.take(&s.lines.later))
		case <-s.lines.come():
			s.advanceAll(ctx, s.lines.take(&s.lines.soon))
		}
	}
}

// advanceAll looks at some lines at once, and waits for it.
func (s *Service) advanceAll(ctx context.Context, keys map[ConversationKey]struct{}) {
	var all sync.WaitGroup
	places := make(chan struct{}, maxStarts)
	for key := range keys {
		if ctx.Err() != nil {
			break
		}
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			// A start must not be torn off half way; that no more begin once the worker drains, its admission sees to.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
			defer cancel()
			if err := s.advance(ctx, key); err != nil {
				s.logger.WarnContext(ctx, "next turn in line not started yet", "code", string(CodeOf(err)), "err", err)
			}
		})
	}
	all.Wait()
}

// findLines has those lines looked at that may start and that nobody looks at: a page of them each sweep.
func (s *Service) findLines(ctx context.Context) error {
	keys, err := s.store.IdleLines(ctx, s.lines.from, sweepBatch)
	if err != nil {
		return err
	}
	s.lines.from = ConversationKey{}
	if len(keys) == sweepBatch {
		s.lines.from = keys[len(keys)-1]
	}
	for _, key := range keys {
		s.advanceSoon(key)
	}
	return nil
}

// awaits reports whether a turn is about to come that the newest reply was stopped for.
func (st Standing) awaits() bool {
	leaf := st.LeafReply
	return !st.Awaited.IsZero() && leaf != nil && leaf.Status == StatusAbandoned && leaf.endedFor() < awaitTime
}

// endedFor is how long ago a reply ended, by the database's clock.
func (r Reply) endedFor() time.Duration { return r.CreateTime.Add(r.Age).Sub(r.EndTime) }

// next is the turn in line that is to start now, if one is: the first. Results of the newest reply's tool calls come before
// it, and what is no result waits for them as long as toolWait, unless it goes elsewhere. A line also waits, for a short while, for the turn that the
// newest reply was stopped for.
func (st Standing) next(toolWait time.Duration) (InLine, bool) {
	if st.Deleted || st.Running != nil || len(st.Line) == 0 {
		return InLine{}, false
	}
	leaf := st.LeafReply
	if leaf == nil || leaf.EndTime.IsZero() {
		return st.Line[0], true
	}
	if st.awaits() {
		return InLine{}, false
	}
	if leaf.Status != StatusComplete || leaf.StopReason != StopToolUse || st.Line[0].Waiting.Elsewhere {
		return st.Line[0], true
	}
	for _, q := range st.Line {
		if q.Waiting.Results {
			return q, true
		}
	}
	return st.Line[0], leaf.endedFor() >= toolWait
}

// advance starts the turn that is next in a conversation's line, if one can start. One that never can leaves the line, and
// the one behind it is looked at.
func (s *Service) advance(ctx context.Context, key ConversationKey) error {
	if s.lines.rests(key) {
		return nil
	}
	for range submitRounds {
		st, err := s.lookup(ctx, LookupQuery{Key: key})
		if err != nil {
			return err
		}
		next, ok := st.next(s.set.ToolWait)
		if !ok {
			return nil
		}
		if again, err := s.startNext(ctx, key, next); err != nil || !again {
			return err
		}
	}
	s.advanceLater(key)
	return nil
}

// startNext tries to start a turn in line. again says that the line is another now, and no reply of this worker's runs.
func (s *Service) startNext(ctx context.Context, key ConversationKey, next InLine) (again bool, err error) {
	a := s.waitingArrival(key, next)
	if a.admitted = s.admission.try(a.caller); !a.admitted {
		s.lines.starve(key, s.admission.wanting(a.caller))
		return false, nil
	}
	defer a.release()
	var done bool
	for range submitRounds {
		st, err := s.lookup(ctx, a.query())
		if err != nil {
			return false, err
		}
		if a.pending != nil && st.Newest != nil && st.Newest.ID == a.reply && st.Newest.Status == StatusInFlight {
			a.won(ctx, st, *st.Newest)
			return false, nil
		}
		if now, ok := st.next(s.set.ToolWait); !ok || now.Turn != next.Turn || st.Turn == nil {
			return true, nil
		}
		a.Input.Conversation, a.Input.Content, a.Input.Options = st.Turn.Conversation, st.Turn.Content, st.Turn.Options
		if !a.someoneReady(st) {
			return false, nil
		}
		if err = s.checkSuspended(ctx, a.caller); err == nil {
			_, done, err = a.claim(ctx, st)
		}
		switch wait, met := waitsForLimit(err); {
		case met:
			s.lines.rest(key, wait)
			return false, nil
		case err != nil && neverStarts(CodeOf(err)):
			return s.refuse(ctx, key, st, next, CodeOf(err))
		}
		if done || err != nil {
			return false, err
		}
	}
	return true, nil
}

// waitingArrival is a turn in line as it would arrive: what steers it is what its first delivery said.
func (s *Service) waitingArrival(key ConversationKey, next InLine) *arrival {
	w := next.Waiting
	return &arrival{Service: s, sender: s.life, caller: w.Caller, key: key, reply: ReplyID{newID()}, call: CallID{newID()}, starts: true,
		Delivery: Delivery{Input: Input{Turn: next.Turn, ParentSet: w.ParentSet}, OnDisconnect: w.OnDisconnect,
			DisconnectGrace: w.DisconnectGrace, OnAmbiguous: w.OnAmbiguous, OnPartial: w.OnPartial, Deadline: w.Deadline,
			OverrideNoProgress: w.OverrideNoProgress}}
}

// someoneReady reports whether an entry of the turn's route may be asked now: a turn that can wait does not run into an open
// breaker. A model that is gone is for the claim to say.
func (a *arrival) someoneReady(st Standing) bool {
	routes, err := a.routes(a.Input.Options.Or(st.Defaults).Model)
	if err != nil {
		return true
	}
	for _, route := range routes {
		if _, ok := a.generator.Ready(route); ok {
			return true
		}
	}
	return false
}

// mostRest bounds how long a line is left alone whose next turn met a limit: what that waits for may come sooner than the
// next day, since other turns end and limits are raised.
const mostRest = time.Minute

// waitsForLimit reports an error that says that a turn would start later, and when.
func waitsForLimit(err error) (wait time.Duration, met bool) {
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeQuotaExceeded && e.Code != CodeRateLimited || e.Final {
		return 0, false
	}
	return e.RetryAfter, true
}

// neverStarts reports an error that waiting does not cure.
func neverStarts(code Code) bool {
	switch code {
	case CodeConflict, CodeOverloaded, CodeStoreUnavailable, CodeDraining, CodeInternal, CodeBusy, CodeDeleted, CodeStaleEpoch:
		return false
	}
	return true
}

// refuse takes a turn out of line that can't start as things stand, so that it does not keep those behind it.
func (s *Service) refuse(ctx context.Context, key ConversationKey, st Standing, next InLine, code Code) (again bool, err error) {
	d := Departure{Key: key, Turn: next.Turn, Verb: VerbRefuse,
		Reason: ReasonProviderRefused, Reply: ReplyID{newID()}, Owner: s.lease.worker(), ProviderCode: string(code)}
	won, err := s.leaveLine(ctx, d, st, next.Waiting)
	if errors.Is(err, ErrUnknownOutcome) {
		return true, nil
	}
	if won {
		s.logger.WarnContext(ctx, "turn in line refused", "turn_id", next.Turn.String(), "code", string(code))
	}
	return err == nil, err
}
