package main

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/postgres"
)

// pathPlans runs the service's own statement for a path under EXPLAIN, on a Postgres. On another engine it counts nothing.
type pathPlans struct{ conn *pgx.Conn }

func newPathPlans(ctx context.Context, e engine) (*pathPlans, error) {
	if e.name != "postgres" {
		return &pathPlans{}, nil
	}
	conn, err := pgx.Connect(ctx, e.dsn)
	return &pathPlans{conn}, err
}

func (p *pathPlans) close() {
	if p.conn != nil {
		_ = p.conn.Close(context.Background())
	}
}

// rows is how many rows are touched to read the path from a reply up: those that scans gave and those that they threw away.
func (p *pathPlans) rows(ctx context.Context, reply uuid.UUID) (float64, error) {
	if p.conn == nil {
		return 0, nil
	}
	var key uuid.UUID
	if err := p.conn.QueryRow(ctx, `SELECT conversation_key FROM turns WHERE id = $1`, reply).Scan(&key); err != nil {
		return 0, err
	}
	text, args := postgres.PathStatement(turns.ConversationKey(key), turns.RowID{UUID: reply}, longLimit())
	var raw []byte
	if err := p.conn.QueryRow(ctx, "EXPLAIN (ANALYZE, FORMAT JSON) "+text, args).Scan(&raw); err != nil {
		return 0, err
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(raw, &plans); err != nil {
		return 0, err
	}
	return plans[0].Plan.touched(), nil
}

// planNode is what is looked at of a plan.
type planNode struct {
	Loops    float64    `json:"Actual Loops"`
	Rows     float64    `json:"Actual Rows"`
	Filtered float64    `json:"Rows Removed by Filter"`
	Checked  float64    `json:"Rows Removed by Index Recheck"`
	Relation string     `json:"Relation Name"`
	Plans    []planNode `json:"Plans"`
}

// touched counts the rows of tables; a node without a relation has them from others.
func (n planNode) touched() (rows float64) {
	if n.Relation != "" {
		rows = n.Loops * (n.Rows + n.Filtered + n.Checked)
	}
	for _, below := range n.Plans {
		rows += below.touched()
	}
	return rows
}
