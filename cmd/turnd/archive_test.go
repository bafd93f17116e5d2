package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// says sends a turn to a process and waits for its reply.
func (p *process) says(conversation, text string) {
	p.t.Helper()
	conn, err := client.Dial(p.ready.Listen)
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, conn.Close()) }()
	turns := turnsv1.NewTurnServiceClient(conn)
	in := &turnsv1.TurnInput{ConversationId: conversation, TurnId: uuid.NewString(),
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}}}
	_, err = turns.SubmitTurn(p.t.Context(), &turnsv1.SubmitTurnRequest{Input: in})
	require.NoError(p.t, err)
	p.until(func() bool {
		got, err := turns.GetTurn(p.t.Context(), &turnsv1.GetTurnRequest{ConversationId: conversation,
			Target: &turnsv1.GetTurnRequest_TurnId{TurnId: in.GetTurnId()}})
		require.NoError(p.t, err)
		return got.GetReplies()[0].GetStatus() == turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE
	})
}

// other is an empty database of the other engine.
func other(t *testing.T, database string) string {
	if strings.HasPrefix(database, "sqlite") {
		url := emptyDatabases[enginePostgres](t)
		prints(t, "migrate", "up", "--database-url", url)
		return url
	}
	return emptyDatabases[engineSQLite](t)
}

func TestAServedDatabaseIsExportedAndImportedIntoTheOtherEngine(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		conversation := uuid.NewString()
		p := serve(t, database, "--migrate", "on")
		p.says(conversation, "hello")
		p.says(uuid.NewString(), "hello there")
		file := filepath.Join(t.TempDir(), "all.jsonl")
		text := exports(t, database, "--out", file)
		require.Contains(t, text, "exported 2 conversations (0 of them deleted), 2 turns, 2 replies, 2 calls")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it is as secret as the database")
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		one := prints(t, "export", "--database-url", database, "--tenant", "default", "--conversation", conversation)
		require.Equal(t, 1, strings.Count(one, `"kind":"conversation"`))

		to := other(t, database)
		require.Equal(t, "would import 2 conversations with 2 turns, 2 replies, 2 calls; 0 were there already, 0 refused\n",
			prints(t, "import", "--database-url", to, "--in", file, "--dry-run"))
		require.Contains(t, prints(t, "import", "--database-url", to, "--in", file), "imported 2 conversations")
		require.Contains(t, prints(t, "import", "--database-url", to, "--in", file), "imported 0 conversations with 0 turns, 0 replies, 0 calls; 2 were there already")
		require.Equal(t, string(raw), prints(t, "export", "--database-url", to))
		require.Contains(t, prints(t, "import", "--database-url", to, "--in", file, "--tenant", "acme"), "imported 2 conversations")
		serve(t, to, "--migrate", "on").says(conversation, "and on it goes")

		require.Contains(t, fails(t, 1, nil, "export", "--database-url", database, "--conversation", uuid.NewString()), "no such conversation")
	})
}

// exports runs turnd export and gives what it says.
func exports(t *testing.T, database string, args ...string) string {
	t.Helper()
	p := launch(t, nil, append([]string{"export", "--database-url", database}, args...)...)
	require.Equal(t, 0, p.code(), p.err.String())
	return p.err.String()
}

func TestAConversationThatIsStoredWithOtherRowsIsLeftAsItIsAndNamed(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		conversation := uuid.NewString()
		p := serve(t, database, "--migrate", "on")
		p.says(conversation, "hello")
		file := filepath.Join(t.TempDir(), "all.jsonl")
		exports(t, database, "--out", file)
		p.says(conversation, "more")
		p.signal(15)
		require.Equal(t, 0, p.code())
		before := prints(t, "export", "--database-url", database)
		text := fails(t, 1, nil, "import", "--database-url", database, "--in", file)
		require.Contains(t, text, "line 2: conversation_id: "+conversation+" is stored with other rows")
		require.Equal(t, before, prints(t, "export", "--database-url", database))
	})
}

func TestAnImportSaysWhatToDoAboutADatabaseThatItCanNotUse(t *testing.T) {
	served := emptyDatabases[engineSQLite](t)
	serve(t, served)
	text := fails(t, 1, nil, "import", "--database-url", served, "--in", os.DevNull)
	require.Contains(t, text, "in use by another turnd: stop that one")
	require.Contains(t, fails(t, 1, nil, "import", "--database-url", emptyDatabases[enginePostgres](t), "--in", os.DevNull), "run `turnd migrate up`")
	require.Contains(t, fails(t, 1, nil, "export", "--database-url", emptyDatabases[engineSQLite](t)), "no database to look at")
	require.Contains(t, fails(t, 2, nil, "export", "--conversation", "x", "--database-url", served), "--conversation: must be a UUID")
	require.Contains(t, fails(t, 1, nil, "import", "--database-url", emptyDatabases[engineSQLite](t), "--in", os.DevNull), "line 1: is missing: the file is empty")
}

func TestAnExportThatFailsLeavesNoFile(t *testing.T) {
	database := emptyDatabases[engineSQLite](t)
	prints(t, "migrate", "up", "--database-url", database)
	dir := t.TempDir()
	fails(t, 1, nil, "export", "--database-url", database, "--out", filepath.Join(dir, "x"), "--conversation", uuid.NewString())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAPurgeDeletesWhatNobodyUsedAndSaysHowMuch(t *testing.T) {
	onEachEngine(t, func(t *testing.T, database string) {
		p := serve(t, database, "--migrate", "on")
		p.says(uuid.NewString(), "hello")
		p.says(uuid.NewString(), "hello there")
		p.signal(15)
		require.Equal(t, 0, p.code())
		purge := func(args ...string) string {
			t.Helper()
			return prints(t, append([]string{"purge", "--database-url", database, "--unused-for", "2160h"}, args...)...)
		}
		require.Equal(t, "looked at 2 conversations, deleted 0, kept 0 in which something runs, is held or waits\n", purge())
		old := map[string]string{"sqlite": "update_time - 7776001000000"}
		when := old[strings.SplitN(database, ":", 2)[0]]
		if when == "" {
			when = "update_time - interval '2161 hours'"
		}
		execute(t, database, "UPDATE conversations SET update_time = "+when)
		require.Contains(t, purge("--tenant", "another"), "deleted 0,")
		require.Contains(t, purge("--label", "a=b"), "deleted 0,")
		require.Contains(t, purge("--dry-run"), "would delete 2,")
		require.Contains(t, purge(), "deleted 2,")
		for query, n := range map[string]int{
			`SELECT count(*) FROM turns`: 0, `SELECT count(*) FROM reply_chunks`: 0, `SELECT count(*) FROM conversation_defaults`: 0,
			`SELECT count(*) FROM conversations WHERE title <> '' OR defaults <> '' OR subject <> '' OR labels <> '{}'`: 0,
			`SELECT count(*) FROM provider_calls WHERE request_body IS NOT NULL OR end_time IS NULL`:                    0,
			`SELECT count(*) FROM provider_calls`:                            2,
			`SELECT count(*) FROM conversations WHERE erased_at IS NOT NULL`: 2,
		} {
			require.Equal(t, n, counts(t, database, query), query)
		}
		require.Contains(t, purge(), "looked at 2 conversations, deleted 0,", "again finds nothing more")
		require.Equal(t, 2, strings.Count(prints(t, "export", "--database-url", database), `"deleted_at"`), "marks stay")
		require.Contains(t, fails(t, 2, nil, "purge", "--unused-for", "90s", "--database-url", database), "--unused-for: 1m30s is too little")
		require.Contains(t, fails(t, 2, nil, "purge", "--database-url", database), "--unused-for is missing")
	})
}

// counts asks a database that nobody serves.
func counts(t *testing.T, database, query string) (n int) {
	t.Helper()
	pastTurnd(t, database, func(db *sql.DB) { require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n)) })
	return n
}
