package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
	"github.com/turnd/turnd/turns/access"
	"github.com/turnd/turnd/turns/access/accesstest"
)

func TestTheStoreKeepsKeysAndSuspensions(t *testing.T) {
	accesstest.Run(t, func(t testing.TB) access.Store { return opened(t, pgtest.Reused(t, pgtest.Migrate)).store })
}

func TestKeysAndSuspensionsAreReadByTheirIndexes(t *testing.T) {
	d := openOwn(t)
	const filled = `INSERT INTO api_keys (key_id, hash, tenant, subject, scopes, create_time)
		SELECT 'key' || n, '\x01', 'tenant' || n % 1000, 'ann', 'read', now() FROM generate_series(1, 20000) n;
		INSERT INTO suspensions SELECT 'tenant' || n % 1000, 'subject' || n, now() FROM generate_series(1, 20000) n;
		ANALYZE api_keys; ANALYZE suspensions`
	require.NoError(t, d.exec(t.Context(), filled))
	for name, statement := range map[string]string{
		"findKey": findKey, "listKeys": listKeys, "listKeysOf": listKeysOf, "revokeKey": revokeKey,
		"isSuspended": isSuspended, "reinstate": reinstate, "listSuspended": listSuspended,
	} {
		args := pgx.NamedArgs{"id": "key7", "after": "key1", "limit": 50, "tenant": "tenant7", "subject": "subject7"}
		rows, err := d.rows.Query(t.Context(), "EXPLAIN "+statement, args)
		require.NoError(t, err, name)
		steps, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err, name)
		plan := strings.Join(steps, "\n")
		require.Regexp(t, `Index (Only )?Scan|Bitmap Index Scan`, plan, name)
		require.NotContains(t, plan, "Seq Scan", name)
	}
}

// useAccess calls each method of access.Store once.
func (d database) useAccess(ctx context.Context) error {
	s, text := d.store, access.Mint()
	_, createErr := s.CreateKey(ctx, access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: "tenant", Subject: "ann", Scopes: access.Scopes()})
	_, _, findErr := s.FindKey(ctx, text.ID())
	_, listErr := s.ListKeys(ctx, "", "", 50)
	_, ofErr := s.ListKeys(ctx, "tenant", "", 50)
	_, revokeErr := s.RevokeKey(ctx, text.ID())
	suspendErr := s.Suspend(ctx, "tenant", "ann")
	_, isErr := s.Suspended(ctx, "tenant", "ann")
	_, suspendedErr := s.ListSuspended(ctx, access.Suspension{}, 50)
	_, reinstateErr := s.Reinstate(ctx, "tenant", "ann")
	return errors.Join(createErr, findErr, listErr, ofErr, revokeErr, suspendErr, isErr, suspendedErr, reinstateErr)
}
