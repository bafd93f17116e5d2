package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/turnd/turnd/internal/pgtest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	failoverReplies = 200
	failoverShort   = 60
	failoverDeltas  = 128
	failoverPaceMS  = 150
	failoverShortMS = 75
	// failoverBegun is how far every reply has come when the primary is killed: an eighth.
	failoverBegun = 1 + failoverDeltas/8*16
	// failoverPause is how long a client waits before it sends its turn again.
	failoverPause = 100 * time.Millisecond
	// probePeriod is how often a new turn is sent to learn when claims are refused.
	probePeriod = 50 * time.Millisecond
)

// failover kills the primary and promotes its standby while replies are streamed by two servers whose address names both.
// It is played with synchronous and with asynchronous replication, each with a provider that enforces the idempotency key
// and with one that does not. The asynchronous standby is cut off before the last tenth of the turns are claimed, so that
// the failover loses their claims for sure.
func failover(l *lab) error {
	replies := failoverReplies
	if l.short {
		replies = failoverShort
	}
	figure("replies_each", replies)
	for _, synchronous := range []bool{true, false} {
		for _, enforce := range []bool{true, false} {
			name := map[bool]string{true: "sync", false: "async"}[synchronous] + map[bool]string{true: "_key", false: ""}[enforce]
			s := &failoverScene{lab: l, name: name, synchronous: synchronous, replies: replies}
			if err := s.play(enforce); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// failoverScene is one play.
type failoverScene struct {
	*lab
	name             string
	synchronous      bool
	replies          int
	primary, standby *pgtest.Server
	generator, probe *provider
	servers          []*service
	clients          []*failoverClient
	refused          refusal
	lost             int
	done             int           // replies that clients had seen complete when the primary was killed
	promoted         time.Duration // from the crash until the standby takes writes
}

func (s *failoverScene) play(enforce bool) error {
	defer s.stop()
	if err := s.setUp(enforce); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, 3*time.Minute)
	defer cancel()
	turns, turnsCtx := errgroup.WithContext(ctx)
	probing, stopProbe := context.WithCancel(ctx)
	defer stopProbe()
	probed := make(chan error, 1)
	go func() { probed <- s.refused.watch(probing, s.servers[0]) }()

	err := s.scenes(turnsCtx, turns)
	if err == nil {
		err = turns.Wait()
	}
	if err != nil {
		cancel() // whoever still follows is let go
		return errors.Join(err, turns.Wait(), <-probed)
	}
	if err := s.refused.awaitEnd(ctx); err != nil {
		return err
	}
	stopProbe()
	if err := <-probed; err != nil {
		return err
	}
	return s.judge()
}

// scenes sends the turns, kills the primary in their middle and promotes the standby.
func (s *failoverScene) scenes(ctx context.Context, turns *errgroup.Group) error {
	late := 0
	if !s.synchronous {
		late = s.replies / 10
	}
	s.submit(ctx, turns, s.replies-late)
	if err := s.begun(); err != nil {
		return err
	}
	if late > 0 {
		if err := s.detach(ctx); err != nil {
			return err
		}
		s.submit(ctx, turns, late)
		if err := s.begun(); err != nil {
			return err
		}
	}
	begun := time.Now()
	s.refused.armed.Store(true)
	defer func() { s.promoted = time.Since(begun) }()
	if err := s.primary.Crash(); err != nil {
		return err
	}
	for _, c := range s.clients {
		if c.completed.Load() {
			s.done++
		}
	}
	var err error
	if s.lost, err = s.missing(ctx); err != nil {
		return err
	}
	return s.standby.Promote(ctx)
}

// submit starts clients, each with a turn of its own.
func (s *failoverScene) submit(ctx context.Context, turns *errgroup.Group, n int) {
	for range n {
		c := &failoverClient{in: textInput(uuid.NewString(), uuid.NewString(), "tell", "anthropic"), servers: s.servers, next: len(s.clients)}
		s.clients = append(s.clients, c)
		turns.Go(func() error { return c.follow(ctx) })
	}
}

// begun waits until every client has read an eighth of its reply.
func (s *failoverScene) begun() error {
	return s.until(func() (bool, error) {
		for _, c := range s.clients {
			if c.at.Load() < failoverBegun {
				return false, nil
			}
		}
		return true, nil
	})
}

// detach makes the standby follow nobody: what the primary commits from now on it never gets.
func (s *failoverScene) detach(ctx context.Context) error {
	if err := s.standby.Configure(ctx, "primary_conninfo", ""); err != nil {
		return err
	}
	return s.until(func() (bool, error) {
		n, err := s.ask(ctx, s.primary, `SELECT count(*) FROM pg_stat_replication`)
		return n == 0, err
	})
}

// missing is how many of the turns that were acknowledged the standby does not have, once it has applied what it got.
func (s *failoverScene) missing(ctx context.Context) (int, error) {
	err := s.until(func() (bool, error) {
		n, err := s.ask(ctx, s.standby, `SELECT count(*) WHERE pg_last_wal_receive_lsn() > pg_last_wal_replay_lsn()`)
		return n == 0, err
	})
	if err != nil {
		return 0, err
	}
	ids := s.turnIDs()
	n, err := s.ask(ctx, s.standby, `SELECT count(*) FROM turns WHERE id = ANY ($1::text[]::uuid[])`, ids)
	return len(ids) - n, err
}

func (s *failoverScene) turnIDs() []string {
	ids := make([]string, len(s.clients))
	for i, c := range s.clients {
		ids[i] = c.in.GetTurnId()
	}
	return ids
}

func (s *failoverScene) ask(ctx context.Context, server *pgtest.Server, sql string, args ...any) (n int, err error) {
	conn, err := pgx.Connect(ctx, server.DSN("postgres"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return n, conn.QueryRow(ctx, sql, args...).Scan(&n)
}

// setUp starts the two databases, two providers and two servers.
func (s *failoverScene) setUp(enforce bool) (err error) {
	if s.primary, err = pgtest.Start(s.ctx, filepath.Join(s.dir, s.name+"-a"), pgtest.Fsync()); err != nil {
		return err
	}
	if s.standby, err = pgtest.Standby(s.ctx, filepath.Join(s.dir, s.name+"-b"), s.primary, pgtest.Fsync()); err != nil {
		return err
	}
	if s.synchronous {
		if err := s.primary.Synchronous(s.ctx, s.standby); err != nil {
			return err
		}
	}
	rule := plain(failoverDeltas)
	rule["plan"].(object)["pace_ms"] = failoverPaceMS
	if s.short {
		rule["plan"].(object)["pace_ms"] = failoverShortMS
	}
	script := object{"rules": []object{rule}}
	if enforce {
		script["endpoint"] = object{"idempotency": "enforce"}
	}
	if s.generator, err = s.provider(script); err != nil {
		return err
	}
	if s.probe, err = s.provider(object{"rules": []object{plain(1)}}); err != nil {
		return err
	}
	models, err := s.probeModels(s.generator.url, s.probe.url)
	if err != nil {
		return err
	}
	e := s.engine()
	for range 2 {
		server, err := s.serve(e, models)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, server)
	}
	return nil
}

// engine names both servers, for turnd and for the looks inside.
func (s *failoverScene) engine() engine {
	dsn := pgtest.FailoverDSN("postgres", s.primary, s.standby)
	return engine{name: "postgres", url: dsn, driver: "pgx", dsn: dsn}
}

func (s *failoverScene) stop() {
	for _, server := range s.servers {
		server.stop()
	}
	for _, p := range []*provider{s.generator, s.probe} {
		if p != nil {
			p.stop()
		}
	}
	for _, pg := range []*pgtest.Server{s.standby, s.primary} {
		if pg != nil {
			_ = pg.Stop()
		}
	}
}

// judge compares what clients got, what is stored and what the provider counted.
func (s *failoverScene) judge() error {
	c, err := s.generator.counts()
	if err != nil {
		return err
	}
	completed, again := 0, 0
	for _, client := range s.clients {
		again += client.sent - 1
		if client.completed.Load() && client.text == s.clients[0].text && client.text != "" {
			completed++
		}
	}
	twice := c.Generations - s.replies
	figure(s.name+"_completed", completed)
	figure(s.name+"_paid_twice", twice)
	figure(s.name+"_promoted_ms", s.promoted.Milliseconds())
	figure(s.name+"_refused_ms", s.refused.time().Milliseconds())
	figure(s.name+"_rows_lost", s.lost)
	figure(s.name+"_sent_again", again)
	switch {
	case completed != s.replies:
		return fmt.Errorf("%d of %d turns completed with the whole text", completed, s.replies)
	case s.synchronous && s.lost != 0:
		return fmt.Errorf("a synchronous failover lost %d turns", s.lost)
	case s.synchronous && twice != 0:
		return fmt.Errorf("%d replies were paid for twice though nothing was lost", twice)
	case !s.synchronous && s.lost == 0:
		return errors.New("the asynchronous failover lost nothing, so that nothing was shown")
	}
	return s.stored()
}

// stored looks at the rows, once nothing runs any more: one complete reply a turn and nothing double. What an asynchronous
// failover may lose besides is the ending of a reply that clients had seen complete just before.
func (s *failoverScene) stored() error {
	const unanswered = `SELECT count(*) FROM turns u WHERE u.id = ANY ($1::text[]::uuid[]) AND NOT EXISTS (SELECT 1 FROM turns r
		WHERE r.conversation_key = u.conversation_key AND r.responds_to = u.id AND r.status = 'complete')`
	err := s.until(func() (bool, error) {
		n, err := s.engine().number(s.ctx, inFlight)
		return n == 0, err
	})
	if err != nil {
		return fmt.Errorf("replies in flight: %w", err)
	}
	double, err := s.engine().number(s.ctx, doubleSlots)
	if err != nil {
		return err
	}
	endings, err := s.ask(s.ctx, s.standby, unanswered, s.turnIDs())
	if err != nil {
		return err
	}
	figure(s.name+"_endings_lost", endings)
	switch {
	case double > 0:
		return fmt.Errorf("%d turns have two live replies", double)
	case s.synchronous && endings > 0, endings > s.done:
		return fmt.Errorf("%d turns have no complete reply, and %d were complete when the primary was killed", endings, s.done)
	}
	return nil
}

// failoverClient follows one turn by the contract: on a stream that is lost it sends the same turn with its cursor again.
type failoverClient struct {
	in      *turnsv1.TurnInput
	servers []*service
	next    int
	at      atomic.Uint32

	sent      int
	reply     string
	text      string
	completed atomic.Bool
}

func (c *failoverClient) follow(ctx context.Context) error {
	for {
		err := c.stream(ctx)
		if c.completed.Load() {
			return nil
		}
		c.next++ // the other server may answer
		select {
		case <-ctx.Done():
			return fmt.Errorf("a turn did not complete after %d sendings: %w", c.sent, err)
		case <-time.After(failoverPause):
		}
	}
}

func (c *failoverClient) stream(ctx context.Context) error {
	c.sent++
	var cursor *turnsv1.Cursor
	if c.reply != "" {
		cursor = &turnsv1.Cursor{ReplyId: c.reply, Offset: c.at.Load()}
	}
	stream, err := c.servers[c.next%len(c.servers)].turns.Turn(ctx, &turnsv1.TurnRequest{Input: c.in, Cursor: cursor})
	if err != nil {
		return err
	}
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.take(msg.GetEvent()); err != nil {
			return err
		}
	}
}

// take reads an event. Another reply begins anew; within one nothing may be missing or come twice.
func (c *failoverClient) take(e *turnsv1.Event) error {
	switch e.GetKind().(type) {
	case *turnsv1.Event_Accepted, *turnsv1.Event_Restarted, *turnsv1.Event_Heartbeat, *turnsv1.Event_Abandoned:
		return nil
	case *turnsv1.Event_Started:
		if c.reply != e.GetReplyId() {
			c.reply, c.text = e.GetReplyId(), ""
			c.at.Store(0)
		}
		return nil
	case *turnsv1.Event_Completed:
		c.completed.Store(true)
	}
	if e.GetOffset() != c.at.Load() {
		return fmt.Errorf("an event starts at offset %d, the one before it ended at %d", e.GetOffset(), c.at.Load())
	}
	c.text += e.GetDelta().GetText()
	c.at.Store(e.GetNextOffset())
	return nil
}

// refusal measures for how long new turns were refused.
type refusal struct {
	armed        atomic.Bool  // the primary is being killed: what was refused before is no matter
	began, ended atomic.Int64 // microseconds since 1970
}

// watch sends new turns until ctx ends.
func (r *refusal) watch(ctx context.Context, s *service) error {
	tick := time.NewTicker(probePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		armed, begun := r.armed.Load(), time.Now()
		_, err := s.turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: textInput(uuid.NewString(), uuid.NewString(), "probe", "probe")})
		switch {
		case ctx.Err() != nil:
		case err != nil && armed:
			r.began.CompareAndSwap(0, begun.UnixMicro())
		case err == nil && r.began.Load() != 0:
			r.ended.CompareAndSwap(0, time.Now().UnixMicro())
		}
	}
}

// awaitEnd waits until a turn was taken again after one was refused.
func (r *refusal) awaitEnd(ctx context.Context) error {
	for r.ended.Load() == 0 {
		select {
		case <-ctx.Done():
			return errors.New("new turns were not taken again after the failover")
		case <-time.After(probePeriod):
		}
	}
	return nil
}

func (r *refusal) time() time.Duration {
	return time.Duration(r.ended.Load()-r.began.Load()) * time.Microsecond
}

// probeModels is a models file whose model "probe" is served by another provider.
func (l *lab) probeModels(base, probe string) (string, error) {
	return l.write(fmt.Sprintf("models-%d.yaml", len(l.procs)), fmt.Sprintf(`version: 1
default_model: anthropic
endpoints:
  one: {wire: anthropic.messages, base_url: %q}
  two: {wire: anthropic.messages, base_url: %q}
models:
  anthropic: {route: [{endpoint: one, model: demo}]}
  probe: {route: [{endpoint: two, model: demo}]}
`, base, probe))
}
