package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turnd/turnd/llm/scripted"
)

// evidence is all that is known once a run is over and everything is quiet.
type evidence struct {
	rec     *recorder
	stored  *stored
	journal []scripted.Call
	stories *stories
	spans   []span
	// storeSpans are times of trouble with the database.
	storeSpans []span
	// ownerOf is the worker, by number, that a worker id belonged to.
	ownerOf map[string]int

	rowsOf     map[string][]storedCall // by reply
	byResponse map[string]scripted.Call
	opsOf      map[string][]*op // by turn
}

func newEvidence(rec *recorder, s *stored, journal []scripted.Call, told *stories) *evidence {
	e := &evidence{
		rec: rec, stored: s, journal: journal, stories: told, ownerOf: map[string]int{},
		rowsOf: map[string][]storedCall{}, byResponse: map[string]scripted.Call{}, opsOf: map[string][]*op{},
	}
	for _, c := range s.calls {
		e.rowsOf[c.Reply] = append(e.rowsOf[c.Reply], c)
	}
	for _, c := range journal {
		if c.ResponseID != "" {
			e.byResponse[c.ResponseID] = c
		}
	}
	for _, o := range rec.ops {
		e.opsOf[o.turn.id] = append(e.opsOf[o.turn.id], o)
	}
	return e
}

// judge checks every promise that can be judged at the end.
func (e *evidence) judge() {
	e.oneLiveReply()
	e.oneTurn()
	e.claimedBeforePaid()
	e.ambiguityIsSaid()
	e.streamedIsStored()
	e.endsStand()
	e.stopsStop()
	e.paidIsKept()
	e.nothingIsStuck()
	e.tokensAreBooked()
}

// oneLiveReply is P1 at the end.
func (e *evidence) oneLiveReply() {
	live := map[string][]string{}
	for _, r := range e.stored.replies {
		if r.Status != "abandoned" {
			live[r.Turn] = append(live[r.Turn], r.ID)
		}
	}
	for turn, ids := range live {
		if len(ids) > 1 {
			e.rec.broke("P1", "turn %s has %d live replies at the end: %v", turn, len(ids), ids)
		}
	}
}

// oneTurn is P2: what is stored is what was sent, and each turn that was accepted is stored.
func (e *evidence) oneTurn() {
	for _, t := range e.rec.turns {
		s, ok := e.stored.turns[t.id]
		switch {
		case !ok && t.accepted != nil:
			e.rec.broke("P2", "turn %s was accepted and is not stored", t.id)
		case ok && (s.Tenant != t.tenant || s.Conversation != t.conversation || !strings.Contains(s.Content, `"`+t.text+`"`)):
			e.rec.broke("P2", "turn %s is stored for %s in %s as %q, it was sent by %s in %s as %q", t.id, s.Tenant, s.Conversation, s.Content, t.tenant, t.conversation, t.text)
		}
	}
}

// claimedBeforePaid is P3: for each request there is a row of its key that is older, of a reply of that turn.
func (e *evidence) claimedBeforePaid() {
	rows := map[string][]storedCall{}
	for _, c := range e.stored.calls {
		rows[c.Key] = append(rows[c.Key], c)
		if r, ok := e.stored.replies[c.Reply]; !ok || r.Turn != c.Turn || r.Generation != c.Generation {
			e.rec.broke("P3", "call %s with key %s belongs to no claim of its turn", c.ID, c.Key)
		}
	}
	requests := map[string]int{}
	for _, c := range e.journal {
		requests[c.IdempotencyKey]++
		older, sent := 0, 0
		for _, row := range rows[c.IdempotencyKey] {
			if !row.CreateTime.After(c.AcceptedAt) {
				older++
			}
			if row.Class != "not_sent" {
				sent++
			}
		}
		if n := requests[c.IdempotencyKey]; older < n {
			e.rec.broke("P3", "request %d of key %q came at %s, when the ledger had %d rows for it", n, c.IdempotencyKey, c.AcceptedAt, older)
		} else if sent < n {
			e.rec.broke("P12", "the provider had %d requests of key %q, by the ledger %d were sent", n, c.IdempotencyKey, sent)
		}
	}
}

// outlives is how long a delivery may go on claiming after its client is gone.
const outlives = 30 * time.Second

// caused reports whether some client asked for what was claimed at a time.
func (e *evidence) caused(r storedReply) bool {
	for _, o := range e.opsOf[r.Turn] {
		if o.kind != askTurn && o.kind != askSubmit && o.kind != askRegenerate {
			continue
		}
		end := o.answered
		if end.IsZero() {
			end = o.done.Add(outlives)
		}
		if !r.CreateTime.Before(o.call) && !r.CreateTime.After(end) {
			return true
		}
	}
	return false
}

// ambiguityIsSaid is P5 and P9: a further call within a reply follows only one that is known to have left nothing, and a
// further reply only a delivery.
func (e *evidence) ambiguityIsSaid() {
	for id, r := range e.stored.replies {
		if !e.caused(r) {
			e.rec.broke("P5", "reply %s of turn %s was claimed at %s, and nobody had asked for it", id, r.Turn, r.CreateTime)
		}
		rows := e.rowsOf[id]
		for i := 1; i < len(rows); i++ {
			if last := rows[i-1]; !slices.Contains([]string{"not_sent", "transient", "throttled"}, last.Class) {
				e.rec.broke("P5", "reply %s made call %d after call %d had ended as %q", id, rows[i].Number, last.Number, last.Class)
			}
		}
	}
}

// endsStand is P7 and P4: what a client was told of a reply's end is so in the end.
func (e *evidence) endsStand() {
	for id, seen := range e.rec.replies {
		r, ok := e.stored.replies[id]
		if !ok {
			e.rec.broke("P7", "reply %s of turn %s was followed and is not stored", id, seen.turn.id)
			continue
		}
		for _, end := range seen.ends {
			if wrong := contradicts(end.event, r); wrong {
				e.rec.broke("P4", "request %d was told %s of reply %s, which is %s(%s) in the end", end.op, end.event, id, r.Status, r.Reason)
				break
			}
		}
	}
	for _, t := range e.rec.turns {
		if t.settled == "" && t.accepted != nil {
			e.rec.broke("P7", "turn %s came to no end for its client", t.id)
		}
	}
}

func contradicts(event string, r storedReply) bool {
	if event == endCompleted {
		return r.Status != "complete" && r.Reason != "superseded"
	}
	reason := strings.ToLower(strings.TrimPrefix(event, endAbandoned+" "))
	return event != endHeld && !slices.Contains(revivable, reason) && r.Reason != reason
}

// stopsStop is P8: nothing of a generation starts after its stop was acknowledged, and nothing is stopped unasked.
func (e *evidence) stopsStop() {
	for _, o := range e.rec.ops {
		if o.kind != askCancel || o.answered.IsZero() {
			continue
		}
		prefix := fmt.Sprintf("turnd-%s-g%d-", o.turn.id, o.generation)
		for _, c := range e.journal {
			if strings.HasPrefix(c.IdempotencyKey, prefix) && c.AcceptedAt.After(o.answered.Add(2*time.Second)) {
				e.rec.broke("P8", "generation %d of turn %s was stopped by request %d at %s, and a call of it came at %s", o.generation, o.turn.id, o.n, o.answered.UTC(), c.AcceptedAt)
			}
		}
	}
	for _, o := range e.rec.ops {
		if took := o.answered.Sub(o.call); o.kind == askCancel && !o.answered.IsZero() && e.calm(o.call, o.answered) > 2*time.Second+slack {
			e.rec.broke("P8", "the stop of turn %s by request %d took %s", o.turn.id, o.n, took)
		}
	}
	for id, r := range e.stored.replies {
		if r.Reason == "disconnected" || r.Reason == "cancelled" && !slices.ContainsFunc(e.opsOf[r.Turn], func(o *op) bool { return o.kind == askCancel }) {
			e.rec.broke("P8", "reply %s of turn %s was given up as %s, and nobody had asked for that", id, r.Turn, r.Reason)
		}
	}
}

// nothingIsStuck is P11 at the end, and that no claim was taken from a worker whose lease held.
func (e *evidence) nothingIsStuck() {
	for id, r := range e.stored.replies {
		if r.Status == "in_flight" {
			e.rec.broke("P11", "reply %s of turn %s is still in flight", id, r.Turn)
		}
		e.isMade(r)
		w, known := e.stored.workers[r.Owner]
		if r.Reason != "lease_expired" || !known {
			continue
		}
		if !w.Dead || !w.Draining && w.LeaseUntil.After(*r.EndTime) {
			e.rec.broke("P11", "reply %s was swept at %s, the lease of its owner %s held until %s", id, r.EndTime, w.Name, w.LeaseUntil)
		}
	}
}

// unmade is how long a reply may stay in flight once its last call is over, while nothing is in trouble.
const unmade = lease + sweep + 2*slack

// isMade demands that somebody made a reply as long as it was in flight. The waits between its calls, which are booked on it and
// have a budget, are part of that: the last one may end before a breaker that lets nothing out.
func (e *evidence) isMade(r storedReply) {
	if r.EndTime == nil {
		return
	}
	last := r.CreateTime
	for _, row := range e.rowsOf[r.ID] {
		if row.EndTime != nil && row.EndTime.After(last) && row.EndTime.Before(r.EndTime.Add(-time.Second)) {
			last = *row.EndTime
		}
		for _, c := range e.callsOf(row) {
			if c.EndedAt != nil && c.EndedAt.After(last) && c.AcceptedAt.Before(*r.EndTime) {
				last = *c.EndedAt
			}
		}
	}
	if idle := e.calm(last, *r.EndTime); idle > unmade+time.Duration(r.WaitedUs)*time.Microsecond {
		e.rec.broke("P11", "reply %s of turn %s stayed in flight for %s after its last call had ended, %s of that with nothing in trouble", r.ID, r.Turn,
			r.EndTime.Sub(last).Round(time.Millisecond), idle.Round(time.Millisecond))
	}
}

// calm is how much of a time passed with no trouble of any process or of the database, a lease after each included, since
// sweepers hold back that long.
func (e *evidence) calm(from, to time.Time) time.Duration {
	all := slices.Concat(e.spans, e.storeSpans)
	slices.SortFunc(all, func(a, b span) int { return a.begin.Compare(b.begin) })
	var sum time.Duration
	for _, s := range all {
		if s.begin.After(from) {
			sum += max(0, minTime(s.begin, to).Sub(from))
		}
		if end := s.end.Add(lease); end.After(from) {
			from = end
		}
	}
	return sum + max(0, to.Sub(from))
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
