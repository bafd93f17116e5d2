package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Durability is what a commit has survived once it was answered.
type Durability struct {
	// OnDisk says that a commit is on the primary's disk: neither synchronous_commit nor fsync is off.
	OnDisk bool
	// Replicated says that a commit waits for a standby, so that a failover to it loses none.
	Replicated bool
	// Standbys is how many servers stream from the primary at the moment.
	Standbys int
}

// Durability reads the settings as they hold for this store's sessions. Storage that replicates by itself is not seen.
func (s *Store) Durability(ctx context.Context) (Durability, error) {
	const sql = `SELECT current_setting('synchronous_commit') <> 'off' AND current_setting('fsync') = 'on' AS on_disk,
		current_setting('synchronous_commit') NOT IN ('off', 'local') AND current_setting('synchronous_standby_names') <> '' AS replicated,
		(SELECT count(*) FROM pg_stat_replication)::int AS standbys`
	d, _, err := one(ctx, s.pool, sql, nil, pgx.RowToStructByName[Durability])
	return d, mapRead("ask how commits are kept", err)
}
