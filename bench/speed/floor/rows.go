package floor

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Rows is how many rows there are to be looked up.
const Rows = 20_000

// RowID is the id of the nth row.
func RowID(n int) (id uuid.UUID) {
	// Spread over the index as random ids are, and the same in each process.
	binary.BigEndian.PutUint64(id[:8], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// Fill writes the rows, each with a content of that many bytes of text.
func Fill(ctx context.Context, pool *pgxpool.Pool, text string) error {
	ids := make([]uuid.UUID, Rows)
	for i := range ids {
		ids[i] = RowID(i)
	}
	_, err := pool.Exec(ctx, `
INSERT INTO floor_turns (id, conversation_id, role, content, status)
SELECT id, id, 'assistant', $2, 'complete' FROM unnest($1::uuid[]) AS t (id) ON CONFLICT (id) DO NOTHING`, ids, Content(text))
	if err == nil {
		_, err = pool.Exec(ctx, "VACUUM ANALYZE floor_turns")
	}
	if err != nil {
		return fmt.Errorf("fill the table: %w", err)
	}
	return nil
}
