package floor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema is the least that keeps a turn and its one reply: by id, by conversation, and those that are unfinished.
const Schema = `
CREATE TABLE IF NOT EXISTS floor_turns (
  id uuid PRIMARY KEY, conversation_id uuid NOT NULL, role text NOT NULL, content jsonb NOT NULL, status text NOT NULL,
  responds_to uuid, created_at timestamptz NOT NULL DEFAULT now());
CREATE UNIQUE INDEX IF NOT EXISTS floor_one_reply ON floor_turns (responds_to) WHERE role = 'assistant' AND status <> 'abandoned';
CREATE INDEX IF NOT EXISTS floor_conversation ON floor_turns (conversation_id, created_at);
CREATE INDEX IF NOT EXISTS floor_live ON floor_turns (created_at) WHERE status = 'in_flight'`

// Turn is a user turn, its reply, and the conversation that both are in.
type Turn struct{ User, Reply, Conversation uuid.UUID }

// NewTurn is a turn in a conversation of its own.
func NewTurn() Turn { return Turn{uuid.New(), uuid.New(), uuid.New()} }

// Content is text as it is stored.
func Content(text string) []byte {
	out, _ := json.Marshal([]map[string]string{{"type": "text", "text": text}}) // strings always encode
	return out
}

// Connect makes a pool of n connections to a database, with the table in it.
func Connect(ctx context.Context, dsn string, n int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = n
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, Schema); err != nil {
		pool.Close()
		return nil, fmt.Errorf("make the table: %w", err)
	}
	return pool, nil
}

// Claim keeps a user turn and the reply that is begun, in one statement, which is one commit.
func Claim(ctx context.Context, pool *pgxpool.Pool, t Turn, content []byte) error {
	_, err := pool.Exec(ctx, `
WITH u AS (
  INSERT INTO floor_turns (id, conversation_id, role, content, status) VALUES ($1, $3, 'user', $4, 'complete') RETURNING id)
INSERT INTO floor_turns (id, conversation_id, role, content, status, responds_to)
SELECT $2, $3, 'assistant', '[]', 'in_flight', id FROM u
ON CONFLICT (responds_to) WHERE role = 'assistant' AND status <> 'abandoned' DO NOTHING`, t.User, t.Reply, t.Conversation, content)
	return err
}

// Complete keeps the reply, in another.
func Complete(ctx context.Context, pool *pgxpool.Pool, t Turn, content []byte) error {
	_, err := pool.Exec(ctx, "UPDATE floor_turns SET status = 'complete', content = $2 WHERE id = $1 AND status = 'in_flight'", t.Reply, content)
	return err
}
