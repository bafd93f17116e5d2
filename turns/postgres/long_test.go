package postgres

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// talked fills conversations: of each name one, of so many turns. Each reply's window starts with the turn twenty before its own.
const talked = `
CREATE OR REPLACE FUNCTION pg_temp.id(kind text, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS 'SELECT md5(kind || n)::uuid';
INSERT INTO conversations (conversation_key, tenant, conversation_id, next_seq, version, leaf_id, last_turn_id, create_time, update_time)
	SELECT md5(c.name)::uuid, 'tenant', md5(c.name)::uuid, 2 * n + 1, n, pg_temp.id(c.name || 'reply', n), pg_temp.id(c.name || 'turn', n), now(), now()
	FROM (VALUES %[1]s) c (name, n);
INSERT INTO turns (conversation_key, id, role, parent_id, seq, content, input_hash, create_time)
	SELECT md5(c.name)::uuid, pg_temp.id(c.name || 'turn', k), 'user', CASE WHEN k > 1 THEN pg_temp.id(c.name || 'reply', k - 1) END,
		2 * k - 1, '[]', '\x01', now() FROM (VALUES %[1]s) c (name, n), generate_series(1, n) k;
INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, status, attempt, epoch, owner, content, create_time, end_time,
	model, window_start)
	SELECT md5(c.name)::uuid, pg_temp.id(c.name || 'reply', k), 'assistant', pg_temp.id(c.name || 'turn', k), pg_temp.id(c.name || 'turn', k),
		2 * k, 'complete', 1, 1, pg_temp.id('worker', 1), '[]', now(), now(), 'demo', pg_temp.id(c.name || 'turn', greatest(k - 20, 1))
	FROM (VALUES %[1]s) c (name, n), generate_series(1, n) k;
`

// scanned is what is looked at of a plan.
type scanned struct {
	Loops    float64   `json:"Actual Loops"`
	Rows     float64   `json:"Actual Rows"`
	Filtered float64   `json:"Rows Removed by Filter"`
	Relation string    `json:"Relation Name"`
	Plans    []scanned `json:"Plans"`
}

// touched is how many rows of tables a plan looked at.
func (s scanned) touched() (rows float64) {
	if s.Relation != "" {
		rows = s.Loops * (s.Rows + s.Filtered)
	}
	for _, below := range s.Plans {
		rows += below.touched()
	}
	return rows
}

// A path is read by key row by row, whatever the planner believes of how long conversations are: it believes nothing before the
// first ANALYZE, and afterwards too much of some conversations and too little of others.
func TestAPathTouchesTheRowsOfItsWindowHoweverLongTheConversationIs(t *testing.T) {
	d := openOwn(t)
	fill := func(name string, turns int) {
		_, err := d.rows.Exec(t.Context(), fmt.Sprintf(talked, fmt.Sprintf("('%s', %d)", name, turns)))
		require.NoError(t, err)
	}
	fill("old", 10000)
	_, err := d.rows.Exec(t.Context(), "ANALYZE")
	require.NoError(t, err)
	fill("young", 100)
	conn, err := d.rows.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	for _, step := range []string{"SELECT 1", "ANALYZE", "SET plan_cache_mode = force_generic_plan"} {
		_, err = conn.Exec(t.Context(), step)
		require.NoError(t, err)
		for name, last := range map[string]int{"old": 10000, "young": 100} {
			var key, leaf uuid.UUID
			require.NoError(t, conn.QueryRow(t.Context(), `SELECT conversation_key, leaf_id FROM conversations WHERE next_seq = $1`, 2*last+1).Scan(&key, &leaf))
			for rows, limit := range map[int]turns.PathLimit{
				42:  {Rows: 2000, Bytes: 16 << 20, Model: "demo", Tokens: 1000}, // a window
				102: {Rows: 102, Bytes: 2 << 20},                                // a page of a list
			} {
				text, args := PathStatement(turns.ConversationKey(key), turns.RowID{UUID: leaf}, limit)
				var raw []byte
				require.NoError(t, conn.QueryRow(t.Context(), "EXPLAIN (ANALYZE, FORMAT JSON) "+text, pgx.QueryExecModeCacheStatement, args).Scan(&raw))
				var plans []struct{ Plan scanned }
				require.NoError(t, json.Unmarshal(raw, &plans))
				require.Less(t, plans[0].Plan.touched(), float64(4*rows), "%s after %s: %s", name, step, raw)
				path, err := d.store.ReadPath(t.Context(), turns.ConversationKey(key), turns.RowID{UUID: leaf}, limit)
				require.NoError(t, err)
				require.Len(t, path, rows)
			}
		}
	}
}
