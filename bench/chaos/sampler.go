package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	sampleEvery = 200 * time.Millisecond
	// slack is what a machine under load may take on top of what is promised.
	slack = 3 * time.Second
)

// sampler looks into the database again and again, past every link, and judges what it sees and what became of what it
// saw before.
type sampler struct {
	rec *recorder
	dsn func() string
	// calmSince says since when a sweep could have done its work: the database reachable and a worker steady.
	calmSince func() time.Time

	replies map[string]sampledReply
	calls   map[string]sampledCall

	mu      sync.Mutex
	samples int
	running int // replies in flight in the last sample
	at      time.Time
	seen    map[string]bool
}

type sampledReply struct {
	ID      string
	Turn    string
	Key     string
	Status  string
	Reason  string
	Epoch   int64
	LogLen  int64
	Settled bool
	Overdue float64 // seconds since the owner's lease ran out
	Owner   string
}

type sampledCall struct {
	ID     string
	Class  string
	Source string
	Input  int64
	Output int64
}

const (
	sampleReplies = `SELECT t.id::text, t.responds_to::text AS turn, t.conversation_key::text AS key, t.status, t.reason, t.epoch, t.log_len,
	t.settled_at IS NOT NULL AS settled, COALESCE(EXTRACT(EPOCH FROM clock_timestamp() - w.lease_until), 0)::float8 AS overdue,
	t.owner::text
FROM turns t LEFT JOIN workers w ON w.worker_id = t.owner
WHERE t.role = 'assistant' AND (t.status = 'in_flight' OR t.create_time > clock_timestamp() - interval '60 s')`

	sampleCalls = `SELECT call_id::text AS id, class, token_source AS source, input_tokens AS input, output_tokens AS output
FROM provider_calls WHERE create_time > clock_timestamp() - interval '60 s'`
)

func newSampler(rec *recorder, dsn func() string, calmSince func() time.Time) *sampler {
	return &sampler{rec: rec, dsn: dsn, calmSince: calmSince, replies: map[string]sampledReply{}, calls: map[string]sampledCall{}, seen: map[string]bool{}}
}

// run samples until ctx ends. While the database is away there is nothing to see.
func (s *sampler) run(ctx context.Context) {
	var conn *pgx.Conn
	at := ""
	for ctx.Err() == nil {
		if dsn := s.dsn(); conn == nil || conn.IsClosed() || dsn != at {
			if conn != nil {
				_ = conn.Close(ctx)
			}
			conn, _ = pgx.Connect(ctx, dsn)
			at = dsn
		}
		if conn != nil {
			s.sample(ctx, conn)
		}
		sleep(ctx, sampleEvery)
	}
	if conn != nil {
		_ = conn.Close(context.WithoutCancel(ctx))
	}
}

func (s *sampler) sample(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	replies, err := rows[sampledReply](ctx, conn, sampleReplies)
	if err != nil {
		return
	}
	calls, err := rows[sampledCall](ctx, conn, sampleCalls)
	if err != nil {
		return
	}
	s.judge(replies)
	for _, c := range calls {
		if was, ok := s.calls[c.ID]; ok && was.Class != "" && was.Source == "reported" && was != c {
			s.once(c.ID, "P12", "call %s was closed as %s with %d and %d reported tokens, and then changed to %s with %d and %d", c.ID, was.Class, was.Input, was.Output, c.Class, c.Input, c.Output)
		}
		s.calls[c.ID] = c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples++
}

// once breaks a promise about one thing, once.
func (s *sampler) once(what, promise, format string, args ...any) {
	if key := promise + what; !s.seen[key] {
		s.seen[key] = true
		s.rec.broke(promise, format, args...)
	}
}

// judge looks at one sample of replies: what is true of all together, and what became of each.
func (s *sampler) judge(replies []sampledReply) {
	live, running := map[string][]string{}, map[string][]string{}
	inFlight := 0
	for _, r := range replies {
		if r.Status != "abandoned" {
			live[r.Turn] = append(live[r.Turn], r.ID)
		}
		if r.Status == "in_flight" {
			inFlight++
			running[r.Key] = append(running[r.Key], r.ID)
			s.overdue(r)
		}
		if was, ok := s.replies[r.ID]; ok {
			if why := illegal(was, r); why != "" {
				s.once(r.ID+why, "P4", "reply %s of turn %s went from %s to %s: %s", r.ID, r.Turn, was, r, why)
			}
		}
		s.replies[r.ID] = r
	}
	for turn, ids := range live {
		if len(ids) > 1 {
			s.once(turn, "P1", "turn %s has %d live replies at once: %v", turn, len(ids), ids)
		}
	}
	for key, ids := range running {
		if len(ids) > 1 {
			s.once(key, "P1", "conversation %s has %d running replies at once: %v", key, len(ids), ids)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.at = inFlight, time.Now()
}

// overdue looks for a reply whose owner's lease ran out longer ago than a sweep may take.
func (s *sampler) overdue(r sampledReply) {
	late := min(time.Duration(r.Overdue*float64(time.Second)), time.Since(s.calmSince()))
	if late > lease+sweep+slack {
		s.once(r.ID, "P11", "reply %s is in flight %.1fs after the lease of its owner %s ran out", r.ID, r.Overdue, r.Owner)
	}
}

func (r sampledReply) String() string {
	return fmt.Sprintf("%s(%s) epoch %d length %d", r.Status, r.Reason, r.Epoch, r.LogLen)
}

// revivable are the reasons of replies that their last owner may bring back.
var revivable = []string{"lease_expired", "deadline", "shutdown", "held_released"}

// illegal says what is wrong with what became of a reply between two samples, empty for nothing.
func illegal(was, is sampledReply) string {
	switch {
	case is.Epoch < was.Epoch:
		return "its epoch fell"
	case was.Status == "in_flight" && is.Status == "in_flight" && is.LogLen < was.LogLen && is.Epoch == was.Epoch:
		return "its log shrank"
	case was.Status == "complete" && is.Status != "complete" && is.Reason != "superseded":
		return "it was complete"
	case was.Status == "complete" && is.LogLen != was.LogLen:
		return "its log changed after it was complete"
	case was.Status != "abandoned":
		return ""
	}
	switch {
	case was.Settled && is.Status == "abandoned" && is.Epoch == was.Epoch && (is.LogLen != was.LogLen || is.Reason != was.Reason):
		return "it changed after it was settled"
	case !slices.Contains(revivable, was.Reason) && (is.Status != "abandoned" || is.Reason != was.Reason):
		return "what was given up for that reason does not come back"
	case is.Status == "abandoned" && is.Reason != was.Reason && is.Epoch == was.Epoch && is.Reason != "superseded":
		return "its reason changed"
	case is.Status == "in_flight" && is.Epoch == was.Epoch:
		return "it came back under the same epoch"
	}
	return ""
}

// inFlight is how many replies are in flight: by the last sample or, while the database can't be asked, as many as are
// followed.
func (s *sampler) inFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) > time.Second {
		return s.rec.inFlight()
	}
	return s.running
}
