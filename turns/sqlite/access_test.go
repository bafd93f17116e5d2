package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns/access"
	"github.com/turnd/turnd/turns/access/accesstest"
	"github.com/turnd/turnd/turns/sqlite"
)

func TestTheStoreKeepsKeysAndSuspensions(t *testing.T) {
	accesstest.Run(t, func(t testing.TB) access.Store { return open(t).Store.(*sqlite.Store) })
}

func TestKeysAndSuspensionsAreKeptBesideWhoServesTheFile(t *testing.T) {
	accesstest.Run(t, func(t testing.TB) access.Store {
		path, _ := served(t)
		beside, err := sqlite.OpenBeside(t.Context(), path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, beside.Close()) })
		return beside
	})
}

func TestWhatIsWrittenBesideIsSeenByWhoServesTheFile(t *testing.T) {
	path, serving := served(t)
	beside, err := sqlite.OpenBeside(t.Context(), path)
	require.NoError(t, err)
	text := access.Mint()
	k := access.Key{ID: text.ID(), Hash: text.Hash(), Tenant: "acme", Subject: "ann", Scopes: access.Scopes()}
	_, err = beside.CreateKey(t.Context(), k)
	require.NoError(t, err)
	require.NoError(t, beside.Close())
	_, _, err = serving.FindKey(t.Context(), k.ID)
	require.NoError(t, err)
	require.NoError(t, serving.Suspend(t.Context(), "acme", "ann"))
	_, err = sqlite.OpenBeside(t.Context(), filepath.Join(t.TempDir(), "none.db"))
	require.Error(t, err, "a file that is not there is not made")
}

// served is a file that a store has open.
func served(t testing.TB) (string, *sqlite.Store) {
	t.Helper()
	path := file(t)
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Migrate: up, Unsynced: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return path, s
}
