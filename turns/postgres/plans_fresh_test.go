package postgres

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// ofATurn are the statements that a turn, its delivery again and its followers take.
var ofATurn = []string{"lookup", "readPath", "claim", "checkpoint", "permitCalls", "noteCalls", "closeCalls", "end", "sweep",
	"markFollowed", "readReplies", "readLogs", "entries"}

// keyed are the columns that a look in an index must name, so that it finds one row, or those of one reply.
var keyed = map[string][]string{
	"turns_pkey":                         {"conversation_key", "id"},
	"turns_attempt":                      {"conversation_key", "responds_to"},
	"one_live_reply_per_user_turn":       {"conversation_key", "responds_to"},
	"one_running_reply_per_conversation": {"conversation_key"},
	"turns_in_line":                      {"conversation_key"},
	"turns_stopped_for":                  {"conversation_key", "stopped_for"},
	"turns_below":                        {"conversation_key", "parent_id"},
	"turns_at_the_top":                   {"conversation_key"},
	"conversations_pkey":                 {"conversation_key"},
	"provider_calls_pkey":                {"conversation_key", "call_id"},
	"provider_calls_of_reply":            {"conversation_key", "reply_id"},
	"reply_chunks_pkey":                  {"conversation_key", "reply_id"},
}

var (
	scan     = regexp.MustCompile(`Scan (?:Backward )?(?:using (\w+) )?on (?:turns|conversations|provider_calls|reply_chunks)\b`)
	compared = regexp.MustCompile(`\((\w+) = `)
)

// findsByKeys asserts that each look at a table that grows names the whole key of an index.
func findsByKeys(t *testing.T, name, plan string) {
	t.Helper()
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		look := scan.FindStringSubmatch(line)
		if look == nil {
			continue
		}
		columns, ok := keyed[look[1]]
		require.True(t, ok && i+1 < len(lines), "%s: %s", name, line)
		condition := strings.TrimSpace(lines[i+1])
		require.True(t, strings.HasPrefix(condition, "Index Cond:"), "%s: %s has no condition", name, line)
		var has []string
		for _, m := range compared.FindAllStringSubmatch(condition, -1) {
			has = append(has, m[1])
		}
		require.Subset(t, has, columns, "%s: %s: %s", name, line, condition)
	}
}

// A session keeps the plan that it made first, and the first tables are empty.
func TestATurnsStatementsFindRowsByWholeKeysInADatabaseWithoutStatistics(t *testing.T) {
	d := openOwn(t)
	all, conn := statements(t), d.session(t)
	for _, name := range ofATurn {
		findsByKeys(t, name, explainGeneric(t, conn, all[name]))
	}
}

// session is one as the store sets it up.
func (d database) session(t *testing.T) *pgx.Conn {
	t.Helper()
	p, err := newPool(t.Context(), Config{URL: d.dsn}, 1)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	conn, err := p.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	return conn.Conn()
}

func TestASessionPlansEachStatementOnce(t *testing.T) {
	d := openOwn(t)
	setting := func(name string) (value string) {
		require.NoError(t, d.session(t).QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&value))
		return value
	}
	require.Equal(t, "force_generic_plan", setting("plan_cache_mode"))
	require.Equal(t, "off", setting("enable_seqscan"))
	require.Equal(t, "0", setting("max_parallel_workers_per_gather"), "a list would wait for processes to start")

	require.NoError(t, d.exec(t.Context(), `ALTER ROLE CURRENT_USER IN DATABASE `+d.name(t)+` SET plan_cache_mode = force_custom_plan`))
	require.Equal(t, "force_custom_plan", setting("plan_cache_mode"), "a role that says how to plan has its way")
	require.Equal(t, "on", setting("enable_seqscan"))
}

func (d database) name(t *testing.T) (name string) {
	t.Helper()
	require.NoError(t, d.rows.QueryRow(t.Context(), "SELECT quote_ident(current_database())").Scan(&name))
	return name
}
