package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// stored is what the database holds.
type stored struct {
	turns   map[string]storedTurn
	replies map[string]storedReply
	calls   []storedCall
	workers map[string]storedWorker
}

type storedTurn struct {
	ID           string
	Tenant       string
	Conversation string
	Content      string
}

type storedReply struct {
	ID         string
	Turn       string
	Status     string
	Reason     string
	Attempt    int32
	Generation int32
	Epoch      int64
	Owner      string
	Content    string
	LogLen     int64
	WaitedUs   int64
	Settled    bool
	CreateTime time.Time
	EndTime    *time.Time
}

type storedCall struct {
	ID         string
	Turn       string
	Reply      string
	Generation int32
	Epoch      int64
	Number     int32
	Class      string
	Phase      string
	Key        string
	ResponseID string
	Input      int64
	Output     int64
	Source     string
	Waste      string
	Wasted     int64
	CreateTime time.Time
	EndTime    *time.Time
}

type storedWorker struct {
	ID         string
	Name       string
	Dead       bool
	Draining   bool
	LeaseUntil time.Time
}

const (
	selectTurns = `SELECT t.id::text, c.tenant, c.conversation_id::text AS conversation, t.content
FROM turns t JOIN conversations c USING (conversation_key) WHERE t.role = 'user'`

	selectReplies = `SELECT id::text, responds_to::text AS turn, status, reason, attempt, generation, epoch,
	owner::text, content, log_len, waited_us, settled_at IS NOT NULL AS settled, create_time, end_time
FROM turns WHERE role = 'assistant'`

	selectCalls = `SELECT call_id::text AS id, turn_id::text AS turn, reply_id::text AS reply, generation, epoch, number, class, phase,
	idempotency_key AS key, provider_response_id AS response_id, input_tokens AS input, output_tokens AS output,
	token_source AS source, waste_cause AS waste, wasted_tokens AS wasted, create_time, end_time
FROM provider_calls ORDER BY create_time`

	selectWorkers = `SELECT worker_id::text AS id, name, dead, draining, lease_until FROM workers`
)

// readStored reads all that is stored.
func readStored(ctx context.Context, dsn string) (s *stored, err error) {
	err = session(ctx, dsn, func(conn *pgx.Conn) error {
		s, err = readAll(ctx, conn)
		return err
	})
	return s, err
}

func readAll(ctx context.Context, conn *pgx.Conn) (*stored, error) {
	s := &stored{turns: map[string]storedTurn{}, replies: map[string]storedReply{}, workers: map[string]storedWorker{}}
	turns, err := rows[storedTurn](ctx, conn, selectTurns)
	if err != nil {
		return nil, err
	}
	for _, t := range turns {
		s.turns[t.ID] = t
	}
	replies, err := rows[storedReply](ctx, conn, selectReplies)
	if err != nil {
		return nil, err
	}
	for _, r := range replies {
		s.replies[r.ID] = r
	}
	workers, err := rows[storedWorker](ctx, conn, selectWorkers)
	if err != nil {
		return nil, err
	}
	for _, w := range workers {
		s.workers[w.ID] = w
	}
	s.calls, err = rows[storedCall](ctx, conn, selectCalls)
	return s, err
}

func rows[T any](ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]T, error) {
	found, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, pgx.RowToStructByName[T])
}

// number asks for one number.
func number(ctx context.Context, dsn, query string) (n int, err error) {
	err = session(ctx, dsn, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, query).Scan(&n) })
	return n, err
}

func execute(ctx context.Context, dsn, statement string) error {
	return session(ctx, dsn, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement)
		return err
	})
}

// session does one thing over a connection of its own.
func session(ctx context.Context, dsn string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}

// log is the stored content as followers see it: what takes 1 for a start or an end, and the bytes of the text.
func (r storedReply) log() ([]int16, error) {
	var pieces []struct {
		Starts bool   `json:"s"`
		Text   string `json:"t"`
		Ends   bool   `json:"e"`
	}
	if r.Content == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(r.Content), &pieces); err != nil {
		return nil, fmt.Errorf("content of reply %s: %w", r.ID, err)
	}
	var log []int16
	for _, p := range pieces {
		if p.Starts {
			log = append(log, blockStart)
		}
		log = append(log, widen(p.Text)...)
		if p.Ends {
			log = append(log, blockEnd)
		}
	}
	return log, nil
}
