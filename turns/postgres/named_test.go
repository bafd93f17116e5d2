package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestNamedArgumentsBecomeThoseOfTheDriver(t *testing.T) {
	args := pgx.NamedArgs{"a": 1, "b": "two", "unused": true}
	for _, sql := range []string{
		`SELECT @a, @b::text, @a + 1, @missing`, `SELECT 'of @a', "col@b", @b -- and @a`, `SELECT 1`, `SELECT x FROM y WHERE z @> @a`,
	} {
		text, values, err := args.RewriteQuery(t.Context(), nil, sql, nil)
		require.NoError(t, err)
		for range 2 {
			sent, sentValues, err := named(args).RewriteQuery(t.Context(), nil, sql, nil)
			require.NoError(t, err)
			require.Equal(t, text, sent)
			require.Len(t, sentValues, len(values))
			for i := range values {
				require.Equal(t, values[i], sentValues[i])
			}
		}
	}
}
