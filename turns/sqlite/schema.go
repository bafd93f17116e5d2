package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrSchema says that the database lacks an index that a promise rests on. The error that wraps it names each.
var ErrSchema = errors.New("refusing to serve")

// promise is a unique index and what would break without it. The index of a constraint has no name of its own here, so one
// with the same columns and no predicate stands for it.
type promise struct {
	index, table string
	columns      []string
	predicate    string
	without      string // what could happen without it
}

var promises = []promise{
	{"one_live_reply_per_user_turn", "turns", []string{"conversation_key", "responds_to"},
		"role = 'assistant' AND status <> 'abandoned'", "two claims could both answer one turn, and both be paid for (P1)"},
	{"one_running_reply_per_conversation", "turns", []string{"conversation_key"},
		"role = 'assistant' AND status = 'in_flight'", "two replies could run in one conversation at once"},
	{"turns_seq", "turns", []string{"conversation_key", "seq"}, "", "two rows could take one place in a conversation"},
	{"turns_attempt", "turns", []string{"conversation_key", "responds_to", "attempt"}, "",
		"two attempts at one turn could bear one number"},
	{"workers_dead", "workers", []string{"worker_id", "dead"}, "", "the schema is not the one of the migrations"},
	{"conversations_key", "conversations", []string{"conversation_key"}, "", "a conversation could be stored twice"},
	{"turns_id", "turns", []string{"conversation_key", "id"}, "", "one id could stand for two turns or replies"},
	{"reply_chunks_key", "reply_chunks", []string{"conversation_key", "reply_id", "start_offset"}, "",
		"a part of a reply could be stored twice"},
	{"provider_calls_key", "provider_calls", []string{"conversation_key", "call_id"}, "",
		"a provider call could be on the ledger twice"},
	{"workers_key", "workers", []string{"worker_id"}, "", "two workers could share one lease"},
}

// create is the statement that makes the index.
func (p promise) create() string {
	text := fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s (%s)", p.index, p.table, strings.Join(p.columns, ", "))
	if p.predicate != "" {
		text += " WHERE " + p.predicate
	}
	return text
}

type indexRow struct {
	table, name, columns, text string
	unique                     bool
}

// CheckSchema looks whether every unique index that a promise rests on is there and as the migrations made it. Its error
// wraps ErrSchema and says of each what is wrong, what could happen, and what to run.
func (s *Store) CheckSchema(ctx context.Context) error {
	var broken []error
	err := s.readTx(ctx, "look at the indexes", func(t *tx) (err error) {
		broken, err = t.brokenGuards()
		return err
	})
	return errors.Join(append(broken, err)...)
}

// brokenGuards says of each index that a promise rests on what is wrong with it, if anything is.
func (t *tx) brokenGuards() (broken []error, err error) {
	rows, err := t.readIndexes()
	if err != nil {
		return nil, err
	}
	for _, p := range promises {
		if err := p.check(rows); err != nil {
			broken = append(broken, err)
		}
	}
	return broken, nil
}

// readIndexes reads the catalog. An expression in an index has no column name.
func (t *tx) readIndexes() (rows []indexRow, err error) {
	text := `SELECT m.name, l.name, l."unique", COALESCE(i.sql, ''),
			(SELECT group_concat(COALESCE(name, '?'), ', ' ORDER BY seqno) FROM pragma_index_info(l.name))
		FROM sqlite_master m JOIN pragma_index_list(m.name) l LEFT JOIN sqlite_master i ON i.type = 'index' AND i.name = l.name
		WHERE m.type = 'table'`
	err = t.query(func(scan func(...any) error) error {
		var r indexRow
		err := scan(&r.table, &r.name, &r.unique, &r.text, &r.columns)
		rows = append(rows, r)
		return err
	}, text)
	return rows, err
}

func (p promise) check(rows []indexRow) error {
	if slices.ContainsFunc(rows, p.heldBy) {
		return nil
	}
	i := slices.IndexFunc(rows, func(r indexRow) bool { return r.name == p.index })
	wrong, run := "is missing", p.create()
	if i >= 0 {
		wrong, run = "has another definition than the migrations give it", "DROP INDEX "+p.index+"; "+run
		if !rows[i].unique {
			wrong = "is not unique"
		}
	}
	return fmt.Errorf("%w: the unique index %s %s, and without it %s; run `%s` before anything serves this database",
		ErrSchema, p.index, wrong, p.without, run)
}

// heldBy reports whether an index does what the promise needs.
func (p promise) heldBy(r indexRow) bool {
	if r.table != p.table || !r.unique || r.columns != strings.Join(p.columns, ", ") {
		return false
	}
	_, predicate, partial := strings.Cut(strings.Join(strings.Fields(r.text), " "), " WHERE ")
	return partial == (p.predicate != "") && predicate == p.predicate
}

// SchemaVersion is the newest migration that the file has, 0 without any.
func (s *Store) SchemaVersion(ctx context.Context) (version int64, err error) {
	const text = `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`
	err = s.readTx(ctx, "read the schema's version", func(t *tx) error {
		_, err := t.found(text, nil, &version)
		return err
	})
	return version, err
}
