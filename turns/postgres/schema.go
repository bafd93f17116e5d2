package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ErrSchema says that the database lacks an index that a promise rests on. The error that wraps it names each.
var ErrSchema = errors.New("refusing to serve")

// promise is a unique index and what would break without it.
type promise struct {
	index, table string
	columns      []string
	predicate    string // as the server prints it
	primary      bool
	create       string // the statement that makes it
	without      string // what could happen without it
}

var promises = []promise{
	{
		index: "one_live_reply_per_user_turn", table: "turns", columns: []string{"conversation_key", "responds_to"},
		predicate: `((role = 'assistant'::text) AND (status <> 'abandoned'::text))`,
		create: "CREATE UNIQUE INDEX one_live_reply_per_user_turn ON turns (conversation_key, responds_to) " +
			"WHERE role = 'assistant' AND status <> 'abandoned'",
		without: "two workers could both answer one turn, and both be paid for (P1)",
	},
	{
		index: "one_running_reply_per_conversation", table: "turns", columns: []string{"conversation_key"},
		predicate: `((role = 'assistant'::text) AND (status = 'in_flight'::text))`,
		create: "CREATE UNIQUE INDEX one_running_reply_per_conversation ON turns (conversation_key) " +
			"WHERE role = 'assistant' AND status = 'in_flight'",
		without: "two replies could run in one conversation at once",
	},
	{
		index: "turns_seq", table: "turns", columns: []string{"conversation_key", "seq"}, predicate: "(seq IS NOT NULL)",
		create:  "CREATE UNIQUE INDEX turns_seq ON turns (conversation_key, seq) WHERE seq IS NOT NULL",
		without: "two rows could take one place in a conversation",
	},
	{
		index: "turns_attempt", table: "turns", columns: []string{"conversation_key", "responds_to", "attempt"},
		predicate: "(responds_to IS NOT NULL)",
		create:    "CREATE UNIQUE INDEX turns_attempt ON turns (conversation_key, responds_to, attempt) WHERE responds_to IS NOT NULL",
		without:   "two attempts at one turn could bear one number",
	},
	constraint("workers", "workers_dead", "a worker could be buried while it claims", "worker_id", "dead"),
	primaryKey("conversations", "a conversation could be stored twice", "conversation_key"),
	primaryKey("turns", "one id could stand for two turns or replies", "conversation_key", "id"),
	primaryKey("reply_chunks", "a part of a reply could be stored twice", "conversation_key", "reply_id", "start_offset"),
	primaryKey("provider_calls", "a provider call could be on the ledger twice", "conversation_key", "call_id"),
	primaryKey("reply_takeovers", "one epoch of a reply could have two owners in its story", "conversation_key", "reply_id", "epoch"),
	primaryKey("turn_repeats", "the repeats of a turn could be counted in two places", "conversation_key", "turn_id", "layer"),
	primaryKey("conversation_defaults", "a reply could be made from either of two defaults of one version", "conversation_key", "version"),
	primaryKey("tenant_spending", "a tenant's spending could be counted twice", "tenant"),
	primaryKey("api_keys", "one key could stand for two callers", "key_id"),
	primaryKey("suspensions", "a subject that is reinstated could stay suspended", "tenant", "subject"),
	primaryKey("quotas", "a day's quota could be spent twice", "tenant", "subject", "day"),
	primaryKey("quota_reservations", "one turn could be charged twice", "conversation_key", "turn_id", "generation"),
	primaryKey("workers", "two workers could share one lease", "worker_id"),
}

func constraint(table, name, without string, columns ...string) promise {
	return promise{index: name, table: table, columns: columns, without: without,
		create: "ALTER TABLE " + table + " ADD CONSTRAINT " + name + " UNIQUE (" + strings.Join(columns, ", ") + ")"}
}

func primaryKey(table, without string, columns ...string) promise {
	return promise{index: table + "_pkey", table: table, columns: columns, primary: true, without: without,
		create: "ALTER TABLE " + table + " ADD PRIMARY KEY (" + strings.Join(columns, ", ") + ")"}
}

type indexRow struct {
	TableName, IndexName                      string
	IsPrimary, IsUnique, IsValid, IsImmediate bool
	Columns                                   []string
	Predicate                                 string
	NullsEqual                                bool
}

// CheckSchema looks whether every unique index that a promise rests on is there, valid and as the migrations made it. Its
// error wraps ErrSchema and says of each what is wrong, what could happen, and what to run.
func (s *Store) CheckSchema(ctx context.Context) error {
	broken, err := s.brokenGuards(ctx)
	return errors.Join(append(broken, err)...)
}

// brokenGuards says of each index that a promise rests on what is wrong with it, if anything is.
func (s *Store) brokenGuards(ctx context.Context) (broken []error, err error) {
	rows, err := s.readIndexes(ctx)
	if err != nil {
		return nil, mapRead("look at the indexes", err)
	}
	for _, p := range promises {
		if err := p.check(rows); err != nil {
			broken = append(broken, err)
		}
	}
	return broken, nil
}

// readIndexes reads the catalog. The tables are those that the search path leads to, as for every other statement of the
// store. An index of a deferred constraint looks at rows too late to decide a claim.
func (s *Store) readIndexes(ctx context.Context) ([]indexRow, error) {
	const sql = `
SELECT t.name AS table_name, c.relname::text AS index_name, i.indisprimary AS is_primary, i.indisunique AS is_unique,
	i.indisvalid AND i.indisready AS is_valid, i.indimmediate AS is_immediate,
	ARRAY(SELECT pg_get_indexdef(i.indexrelid, k, false) FROM generate_series(1, i.indnkeyatts) k ORDER BY k) AS columns,
	COALESCE(pg_get_expr(i.indpred, i.indrelid), '') AS predicate,
	pg_get_indexdef(i.indexrelid) LIKE '%NULLS NOT DISTINCT%' AS nulls_equal
FROM unnest(@tables::text[]) t(name)
JOIN pg_index i ON i.indrelid = to_regclass(t.name)
JOIN pg_class c ON c.oid = i.indexrelid`
	tables := column(promises, func(p *promise) string { return p.table })
	slices.Sort(tables)
	return collect(ctx, s.pool, sql, pgx.NamedArgs{"tables": slices.Compact(tables)}, pgx.RowToStructByName[indexRow])
}

func (p promise) check(rows []indexRow) error {
	i := slices.IndexFunc(rows, func(r indexRow) bool {
		return r.TableName == p.table && (r.IndexName == p.index || p.primary && r.IsPrimary)
	})
	if i < 0 {
		return p.broken("is missing", p.create)
	}
	wrong := p.wrong(rows[i])
	if wrong == "" {
		return nil
	}
	drop := "DROP INDEX " + p.index
	if strings.HasPrefix(p.create, "ALTER") {
		// Depending on who made it there is a constraint with the index, or the index alone.
		drop = "ALTER TABLE " + p.table + " DROP CONSTRAINT IF EXISTS " + p.index + "; DROP INDEX IF EXISTS " + p.index
	}
	return p.broken(wrong, drop+"; "+p.create)
}

// wrong says in which way an index does not hold its promise; empty if it does.
func (p promise) wrong(r indexRow) string {
	switch {
	case !r.IsUnique:
		return "is not unique"
	case !r.IsValid:
		return "is not valid, which is what a build that failed leaves"
	case !r.IsImmediate:
		return "is deferred to the end of a transaction"
	case !slices.Equal(r.Columns, p.columns), r.Predicate != p.predicate, r.NullsEqual, r.IsPrimary != p.primary:
		return "has another definition than the migrations give it"
	}
	return ""
}

func (p promise) broken(wrong, run string) error {
	return fmt.Errorf("%w: the unique index %s %s, and without it %s; run `%s` before anything serves this database",
		ErrSchema, p.index, wrong, p.without, run)
}

// SchemaVersion is the newest migration that the database has, 0 without any.
func (s *Store) SchemaVersion(ctx context.Context) (int64, error) {
	const sql = `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`
	version, _, err := one(ctx, s.pool, sql, nil, pgx.RowTo[int64])
	return version, mapRead("read the schema's version", err)
}
