package floor

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	groupMost    = 256 // turns that share a statement
	groupWriters = 2   // statements of each kind at once
)

// errClosed says that a write came after the end.
var errClosed = errors.New("the group is closed")

// write is one turn's part of a statement.
type write struct {
	turn    Turn
	content []byte
	done    chan error
}

// Group is claims and completions that share statements: those that wait while one is under way go into the next together,
// and none waits for company.
type Group struct {
	pool              *pgxpool.Pool
	claims, completes chan write
	over              context.Context
}

// NewGroup starts the writers, which end with the context.
func NewGroup(ctx context.Context, pool *pgxpool.Pool) *Group {
	g := &Group{pool: pool, claims: make(chan write, groupMost), completes: make(chan write, groupMost), over: ctx}
	for range groupWriters {
		go g.serve(g.claims, g.claimAll)
		go g.serve(g.completes, g.completeAll)
	}
	return g
}

// Claim is the function Claim, in company.
func (g *Group) Claim(t Turn, content []byte) error { return g.put(g.claims, t, content) }

// Complete is the function Complete, in company.
func (g *Group) Complete(t Turn, content []byte) error { return g.put(g.completes, t, content) }

func (g *Group) put(to chan write, t Turn, content []byte) error {
	w := write{t, content, make(chan error, 1)}
	select {
	case to <- w:
	case <-g.over.Done():
		return errClosed
	}
	select {
	case err := <-w.done:
		return err
	case <-g.over.Done():
		return errClosed
	}
}

func (g *Group) serve(from chan write, all func([]write) error) {
	var batch []write
	for {
		select {
		case w := <-from:
			batch = append(batch[:0], w)
		case <-g.over.Done():
			return
		}
		for more := true; more && len(batch) < groupMost; {
			select {
			case w := <-from:
				batch = append(batch, w)
			default:
				more = false
			}
		}
		err := all(batch)
		for _, w := range batch {
			w.done <- err
		}
	}
}

func (g *Group) claimAll(batch []write) error {
	n := len(batch)
	users, replies, conversations, contents := make([]uuid.UUID, n), make([]uuid.UUID, n), make([]uuid.UUID, n), make([][]byte, n)
	for i, w := range batch {
		users[i], replies[i], conversations[i], contents[i] = w.turn.User, w.turn.Reply, w.turn.Conversation, w.content
	}
	_, err := g.pool.Exec(g.over, `
WITH t AS (SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::jsonb[]) AS t (u, r, c, content)),
u AS (INSERT INTO floor_turns (id, conversation_id, role, content, status) SELECT u, c, 'user', content, 'complete' FROM t)
INSERT INTO floor_turns (id, conversation_id, role, content, status, responds_to)
SELECT r, c, 'assistant', '[]', 'in_flight', u FROM t
ON CONFLICT (responds_to) WHERE role = 'assistant' AND status <> 'abandoned' DO NOTHING`, users, replies, conversations, contents)
	return err
}

func (g *Group) completeAll(batch []write) error {
	replies, contents := make([]uuid.UUID, len(batch)), make([][]byte, len(batch))
	for i, w := range batch {
		replies[i], contents[i] = w.turn.Reply, w.content
	}
	_, err := g.pool.Exec(g.over, `
UPDATE floor_turns f SET status = 'complete', content = t.content
FROM unnest($1::uuid[], $2::jsonb[]) AS t (id, content) WHERE f.id = t.id AND f.status = 'in_flight'`, replies, contents)
	return err
}
