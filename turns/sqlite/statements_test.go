package sqlite_test

import (
	"database/sql"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns/sqlite"
)

// fragments are constants of SQL text that are no statement by themselves.
var fragments = []string{"rowColumns", "rowTables", "conversationColumns", "openColumns", "chosen", "chosenOf", "callColumns", "page", "sums", "callSpent", "tailSums", "carriesStart", "openShares", "thatEnded",
	"archivedConversation", "archivedDefaults", "archivedRow", "archivedCall", "archivedTakeover", "archivedRepeats", "keyColumns", "repeatsBy", "repeatsChosen"}

// migrated is a database of this build's schema, without a store.
func migrated(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", sqlite.DSN(file(t), true))
	require.NoError(t, err)
	db.SetMaxOpenConns(1) // statistics are read once by each connection
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	require.NoError(t, up(t.Context(), db))
	return db
}

func TestEveryStatementCanBePreparedOnTheMigratedSchema(t *testing.T) {
	db := migrated(t)
	for name, text := range sqlite.Statements {
		stmt, err := db.PrepareContext(t.Context(), text)
		require.NoError(t, err, name)
		require.NoError(t, stmt.Close())
	}
}

func TestEveryConstantOfSQLIsAmongTheStatements(t *testing.T) {
	var names []string
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		require.NoError(t, err)
		names = append(names, stringConstants(parsed)...)
	}
	require.Greater(t, len(names), 30)
	for _, name := range names {
		if !slices.Contains(fragments, name) {
			require.Contains(t, sqlite.Statements, name)
		}
	}
	require.Len(t, sqlite.Statements, len(names)-len(fragments))
}

// stringConstants are the names of a file's constants of text at the top level.
func stringConstants(parsed *ast.File) (names []string) {
	for _, decl := range parsed.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			value := spec.(*ast.ValueSpec)
			if isText(value.Values[0]) {
				names = append(names, value.Names[0].Name)
			}
		}
	}
	return names
}

func isText(e ast.Expr) (text bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		text = text || ok && lit.Kind == token.STRING
		return true
	})
	return text
}

var (
	// scan is a walk through a whole table, and walk one through all rows of a conversation.
	scan = regexp.MustCompile(`\bSCAN (r|c|t|s|w|turns|reply_chunks|provider_calls|conversations|workers|api_keys|suspensions)\b|AUTOMATIC`)
	walk = regexp.MustCompile(`\bSEARCH (r|t|s|turns|reply_chunks|provider_calls) .*\(conversation_key=\?\)`)
	// few are walks through what stays short however much is stored: workers, and indexes of replies in flight and of turns in line.
	few = regexp.MustCompile(`\bSCAN (w|workers)\b|USING (COVERING )?INDEX (turns_running_by_owner|one_running_reply_per_conversation|turns_in_line)\b`)
)

// whole are statements that go through a conversation: what is deleted, and the places of what is left.
var whole = []string{"runningReplies", "eraseChunks", "eraseDefaults", "closeLeftCalls", "newestRows", "newestTurn"}

func TestNoStatementWalksThroughAHundredThousandRows(t *testing.T) {
	db := migrated(t)
	t.Run("without statistics, as in production", func(t *testing.T) { plansAreShort(t, db) })
	fillTables(t, db)
	t.Run("with statistics", func(t *testing.T) { plansAreShort(t, db) })
}

func plansAreShort(t *testing.T, db *sql.DB) {
	t.Helper()
	for name, text := range sqlite.Statements {
		if slices.Contains(whole, name) {
			continue
		}
		for _, step := range plan(t, db, text) {
			if scan.MatchString(step) || walk.MatchString(step) {
				require.Regexp(t, few, step, "%s", name)
			}
			if name == "listConversations" {
				require.NotContains(t, step, "TEMP B-TREE", "pages are sorted by their index")
			}
		}
	}
}

// plan is how SQLite means to run a statement, with every parameter unknown as in production.
func plan(t *testing.T, db *sql.DB, text string) (steps []string) {
	t.Helper()
	var args []any
	seen := map[string]bool{}
	for _, name := range regexp.MustCompile(`@(\w+)`).FindAllStringSubmatch(text, -1) {
		if !seen[name[1]] {
			seen[name[1]] = true
			args = append(args, sql.Named(name[1], nil))
		}
	}
	rows, err := query(t.Context(), db, "EXPLAIN QUERY PLAN "+text, args...)
	require.NoError(t, err)
	for _, row := range rows {
		steps = append(steps, row[3].(string))
	}
	return steps
}

// fillTables makes the planner plan for 100,000 rows in each table that grows, in 5,000 conversations. SQLite plans by the
// statistics that ANALYZE left and never by the rows themselves. So a sample is stored and analyzed, and then only the
// count of rows is raised to what it stands for.
func fillTables(t *testing.T, db *sql.DB) {
	t.Helper()
	id := func(prefix, expr string) string { return `CAST(printf('` + prefix + `%015d', ` + expr + `) AS BLOB)` }
	const numbers = ` WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999) SELECT `
	for _, text := range []string{
		`INSERT INTO conversations (conversation_key, tenant, conversation_id, create_time, update_time)` + numbers +
			id("k", "i") + `, 't', ` + id("c", "i") + `, i, i FROM n`,
		`INSERT INTO turns (conversation_key, id, role, seq, input_hash, create_time)` + numbers +
			id("k", "i % 500") + `, ` + id("u", "i") + `, 'user', 2 * (i / 500) + 1, x'01', i FROM n`,
		`INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, status, attempt, epoch, owner, create_time, end_time)` +
			numbers + id("k", "i % 500") + `, ` + id("r", "i") + `, 'assistant', ` + id("u", "i") + `, ` + id("u", "i") +
			`, 2 * (i / 500) + 2, 'complete', 1, 1, ` + id("w", "1") + `, i, i FROM n`,
		`INSERT INTO provider_calls (conversation_key, call_id, tenant, conversation_id, turn_id, generation, reply_id, epoch, number,
			first, layer, endpoint, provider, model, idempotency_key, request_bytes, create_time)` + numbers +
			id("k", "i % 250") + `, ` + id("p", "i") + `, 't', x'00', x'00', 1, ` + id("r", "i / 2") + `, 1, 1, 1, 'first', '', '', '', '', 1, i FROM n`,
		`INSERT INTO reply_chunks (conversation_key, reply_id, start_offset, end_offset, pieces)` + numbers +
			id("k", "i % 250") + `, ` + id("r", "i / 10") + `, i, i + 1, '' FROM n`,
		`ANALYZE`,
		`UPDATE sqlite_stat1 SET stat = '100000' || substr(stat, instr(stat, ' ')) WHERE tbl <> 'workers' AND CAST(stat AS INTEGER) >= 5000`,
		`ANALYZE sqlite_schema`,
	} {
		_, err := db.ExecContext(t.Context(), text)
		require.NoError(t, err, text)
	}
}
