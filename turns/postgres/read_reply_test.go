package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Replies that are read together, one of them twice and one of them missing, come to whoever asked for them.
func TestRepliesReadByOneStatementComeInTheirOrder(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	one, other := d.win(t, newClaim(worker)), d.win(t, newClaim(worker))
	elsewhere := replyName{other.Key, one.Reply.ID}
	read, err := d.store.readReplies(t.Context(), []replyName{{other.Key, other.Reply.ID}, elsewhere, {one.Key, one.Reply.ID},
		{one.Key, turns.ReplyID{UUID: uuid.New()}}, {other.Key, other.Reply.ID}})
	require.NoError(t, err)
	var ids []turns.ReplyID
	for _, r := range read {
		if r.row == nil {
			ids = append(ids, turns.ReplyID{})
			continue
		}
		ids = append(ids, turns.ReplyID{UUID: uuid.UUID(r.row.ID)})
	}
	require.Equal(t, []turns.ReplyID{other.Reply.ID, {}, one.Reply.ID, {}, other.Reply.ID}, ids)
}

// A column without a field, or a field without a column, is a mistake in the statement and no row.
func TestRowsAreReadByTheNamesOfAllTheirColumns(t *testing.T) {
	type inner struct{ InputHash int }
	type row struct {
		N int
		inner
	}
	d := open(t)
	read := func(sql string) ([]row, error) {
		return collect(t.Context(), d.store.pool, sql, pgx.NamedArgs{}, byName[row](sql))
	}
	rows, err := read(`SELECT k + 1 AS input_hash, k AS n FROM generate_series(1, 2) k ORDER BY k`)
	require.NoError(t, err)
	require.Equal(t, []row{{1, inner{2}}, {2, inner{3}}}, rows)
	_, err = read(`SELECT 1 AS input_hash, 2 AS n, 3 AS more`)
	require.ErrorContains(t, err, "more")
	_, err = read(`SELECT 1 AS n`)
	require.Error(t, err)
}
