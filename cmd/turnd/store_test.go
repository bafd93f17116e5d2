package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/pgtest"
)

func TestADatabaseWhoseIndexDoesNotHoldItsPromiseIsNotServed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		prints(t, "migrate", "up", "--database-url", database)
		execute(t, database, "DROP INDEX one_live_reply_per_user_turn")
		execute(t, database, "CREATE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to)")
		text := fails(t, 1, nil, "serve", "--demo", "--listen", ":0", "--database-url", database)
		require.Contains(t, text, "refusing to serve: the unique index one_live_reply_per_user_turn is not unique")
		require.Contains(t, text, "CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to) WHERE")
	})
}

func TestAServerThatTakesNoWritesIsNotServed(t *testing.T) {
	primary, standby := pgtest.Pair(t)
	prints(t, "migrate", "up", "--database-url", primary.DSN("postgres"))
	for _, migrate := range []string{"off", "on"} {
		text := fails(t, 1, nil, "serve", "--demo", "--listen", ":0", "--migrate", migrate, "--database-url", standby.DSN("postgres"))
		require.Contains(t, text, "check --database-url: this Postgres takes no writes")
		require.Contains(t, text, "turnd needs the primary")
	}
	serve(t, pgtest.FailoverDSN("postgres", standby, primary))
	serve(t, fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", standby.Addr(), primary.Addr()))
}

func TestWhatCommitsSurviveIsSaidOnceAtStart(t *testing.T) {
	primary, standby := pgtest.Pair(t, pgtest.Fsync())
	database := primary.DSN("postgres")
	prints(t, "migrate", "up", "--database-url", database)
	require.Contains(t, serve(t, database).err.String(), "WRN Postgres answers commits before a standby has them")

	require.NoError(t, primary.Synchronous(t.Context(), standby))
	require.NotContains(t, serve(t, database).err.String(), "Postgres")

	require.NoError(t, primary.Configure(t.Context(), "synchronous_commit", "off"))
	require.Contains(t, serve(t, database).err.String(), "WRN Postgres answers commits before they are on disk")
}
