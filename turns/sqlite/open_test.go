package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/sqlite"
)

// file is the path of a database that does not exist yet.
func file(t testing.TB) string { return filepath.Join(t.TempDir(), "turnd.db") }

func mustOpen(t *testing.T, cfg sqlite.Config) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func TestASecondOpenOfOneFileIsRefusedAtOnceAndNamesIt(t *testing.T) {
	path := file(t)
	first := mustOpen(t, sqlite.Config{Path: path, Migrate: up})
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Migrate: up})
	require.ErrorIs(t, err, sqlite.ErrInUse)
	require.ErrorContains(t, err, path)
	require.NoError(t, first.Close())
	mustOpen(t, sqlite.Config{Path: path})
}

func TestARefusedOpenDoesNotTouchTheFile(t *testing.T) {
	path := file(t)
	store := mustOpen(t, sqlite.Config{Path: path, Migrate: up})
	worker := turns.WorkerID{UUID: uuid.New()}
	require.NoError(t, store.RegisterWorker(t.Context(), turns.Worker{ID: worker}, time.Hour))
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Migrate: func(context.Context, *sql.DB) error {
		return errors.New("must not be called")
	}})
	require.ErrorIs(t, err, sqlite.ErrInUse)
	require.NoError(t, store.RenewLease(t.Context(), worker, time.Hour), "nobody was buried")
}

func TestOpenBuriesTheWorkersOfEarlierProcesses(t *testing.T) {
	path := file(t)
	before := mustOpen(t, sqlite.Config{Path: path, Migrate: up})
	claim := claimFor(t, before)
	require.NoError(t, before.Close())

	after := mustOpen(t, sqlite.Config{Path: path})
	require.ErrorIs(t, after.RenewLease(t.Context(), claim.Reply.Owner, time.Hour), turns.ErrBuried)
	stale, err := after.StaleReplies(t.Context(), turns.StaleQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, stale, 1, "its lease had an hour left")
	require.Equal(t, claim.Reply.ID, stale[0].Reply.ID)
	require.True(t, stale[0].OwnerDead)
}

// claimFor registers a worker with a lease of an hour and claims a reply for it.
func claimFor(t *testing.T, store *sqlite.Store) turns.Claim {
	t.Helper()
	id, turn, worker := turns.ConversationID{UUID: uuid.New()}, turns.TurnID{UUID: uuid.New()}, turns.WorkerID{UUID: uuid.New()}
	require.NoError(t, store.RegisterWorker(t.Context(), turns.Worker{ID: worker}, time.Hour))
	claim := turns.Claim{Key: turns.KeyOf("t", id), Tenant: "t", Conversation: id, NextSeq: 1, Turn: turn,
		NewTurn: &turns.NewTurn{InputHash: []byte{1}},
		Reply:   turns.NewReply{ID: turns.ReplyID{UUID: uuid.New()}, Attempt: 1, Generation: 1, Owner: worker, Calls: 1, Deadline: time.Hour},
		Call:    turns.NewCall{ID: turns.CallID{UUID: uuid.New()}, Number: 1}}
	results, err := store.Claim(t.Context(), []turns.Claim{claim})
	require.NoError(t, err)
	require.True(t, results[0].Won)
	return claim
}

func TestAFileOutlivesItsStore(t *testing.T) {
	path := file(t)
	before := mustOpen(t, sqlite.Config{Path: path, Migrate: up})
	claim := claimFor(t, before)
	require.NoError(t, before.Close())
	reply, err := mustOpen(t, sqlite.Config{Path: path}).ReadReply(t.Context(), claim.Key, claim.Reply.ID)
	require.NoError(t, err)
	require.Equal(t, turns.StatusInFlight, reply.Status)
}

func TestCommitsAreSyncedUnlessATestSaysOtherwise(t *testing.T) {
	path := file(t)
	for unsynced, level := range map[bool]int64{false: 2, true: 0} {
		db, err := sql.Open("sqlite", sqlite.DSN(path, unsynced))
		require.NoError(t, err)
		for pragma, want := range map[string]any{"synchronous": level, "foreign_keys": int64(1), "journal_mode": "wal", "busy_timeout": int64(5000)} {
			rows, err := query(t.Context(), db, "PRAGMA "+pragma)
			require.NoError(t, err)
			require.Equal(t, [][]any{{want}}, rows, pragma)
		}
		require.NoError(t, db.Close())
	}
}

func TestAPathOfAnySpellingIsOneFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a b?c#d%41&é")
	require.NoError(t, os.Mkdir(folder, 0o700))
	path := filepath.Join(folder, "turnd.db")
	mustOpen(t, sqlite.Config{Path: path, Migrate: up})
	require.FileExists(t, path)
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(folder, ".", "turnd.db")})
	require.ErrorIs(t, err, sqlite.ErrInUse)
}

func TestALinkToTheFileIsTheSameFile(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	path := filepath.Join(folder, "turnd.db")
	links := map[string]string{
		filepath.Join(other, "link.db"):     path,
		filepath.Join(folder, "beside.db"):  "turnd.db",
		filepath.Join(other, "far.db"):      filepath.Join(other, "link.db"),
		filepath.Join(other, "folder.link"): folder,
	}
	for link, target := range links {
		require.NoError(t, os.Symlink(target, link))
	}
	names := []string{path, filepath.Join(other, "link.db"), filepath.Join(folder, "beside.db"), filepath.Join(other, "far.db"),
		filepath.Join(other, "folder.link", "turnd.db")}
	for _, first := range []string{filepath.Join(other, "far.db"), path} { // the first makes the file
		store := mustOpen(t, sqlite.Config{Path: first, Migrate: up})
		for _, name := range names {
			_, err := sqlite.Open(t.Context(), sqlite.Config{Path: name})
			require.ErrorIs(t, err, sqlite.ErrInUse, name)
		}
		require.NoError(t, store.Close())
		require.FileExists(t, path)
	}
}

func TestALinkInACircleIsNoFile(t *testing.T) {
	path := file(t)
	require.NoError(t, os.Symlink(path, path))
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path})
	require.ErrorContains(t, err, path)
}

func TestTheFilesAreForThisUserAlone(t *testing.T) {
	path := file(t)
	claimFor(t, mustOpen(t, sqlite.Config{Path: path, Migrate: up}))
	files, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3, "the log of writes is a file beside it")
	for _, name := range files {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm(), name)
	}
}

func TestAFileThatCantBeOpenedIsAnErrorThatNamesIt(t *testing.T) {
	folder := t.TempDir()
	garbage := filepath.Join(folder, "garbage.db")
	require.NoError(t, os.WriteFile(garbage, []byte("this is no database, whatever its name says it is"), 0o600))
	for _, path := range []string{filepath.Join(folder, "missing", "turnd.db"), folder, garbage} {
		_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Migrate: up})
		require.ErrorContains(t, err, path)
		require.NotErrorIs(t, err, sqlite.ErrInUse)
	}
}

func TestAFailedOpenLetsTheFileGo(t *testing.T) {
	path := file(t)
	_, err := sqlite.Open(t.Context(), sqlite.Config{Path: path, Migrate: func(context.Context, *sql.DB) error { return errors.New("no") }})
	require.ErrorContains(t, err, "no")
	_, err = sqlite.Open(t.Context(), sqlite.Config{Path: path})
	require.ErrorContains(t, err, "no such table", "a database without a schema is not served")
	mustOpen(t, sqlite.Config{Path: path, Migrate: up})
}
