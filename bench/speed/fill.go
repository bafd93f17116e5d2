package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/turnd/turnd/bench/speed/load"
)

// copyKind is how a column of a copy is made.
type copyKind int

const (
	sameID    copyKind = iota // it names something outside of the conversation
	copiedID                  // it names something inside
	keyOfCopy                 // the conversation's key
	inputHash                 // the hash of a user turn's input
)

// copiedTable is a table that a conversation has rows in, and how its columns of ids and hashes are made.
type copiedTable struct {
	table string
	ids   map[string]copyKind
}

// copied are all of them. Columns of ids that are not here are a mistake; all others are copied, times moved.
var copied = []copiedTable{
	{"conversations", map[string]copyKind{
		"conversation_key": keyOfCopy, "conversation_id": copiedID, "leaf_id": copiedID, "last_turn_id": copiedID, "spent_through": copiedID,
	}},
	{"turns", map[string]copyKind{
		"conversation_key": keyOfCopy, "id": copiedID, "parent_id": copiedID, "responds_to": copiedID, "replaced_by": copiedID,
		"window_start": copiedID, "stopped_for": copiedID, "owner": sameID, "input_hash": inputHash,
	}},
	{"provider_calls", map[string]copyKind{
		"conversation_key": keyOfCopy, "call_id": copiedID, "conversation_id": copiedID, "turn_id": copiedID, "reply_id": copiedID,
	}},
}

const (
	// copyEvery is how much time lies between a copy and the next.
	copyEvery = 100 * time.Millisecond
	// copyTogether is how many copies are written side by side, turn by turn, as conversations are that go on at the same time: the
	// rows of one lie far from each other.
	copyTogether = 1000
	// copyNumber is the column that has a copy's number; no table may have one of the name.
	copyNumber = "copy_number"
	// fillers write copies at once.
	fillers = 2
	// Inputs are hashed with these in front of the conversation's id and behind it; the first one is the name of the encoding.
	hashName, hashHead = "h1", `\x0110`
)

// hashTail is what stands behind the conversation's id where an input is nothing but load.Ask.
func hashTail() []byte {
	const text, blockEnd = 4, 9
	n := len(load.Ask)
	return append(append([]byte{text, byte(n&0x7f | 0x80), byte(n >> 7)}, load.Ask...), blockEnd, 0)
}

// filler writes copies of the one conversation of a database.
type filler struct {
	ctx    context.Context
	dsn    string
	copies int
	known  load.Filled
}

// fill copies the one conversation that turnd has made in a database. Indexes and keys are taken away before and made again
// after, by their own definitions, which checks them as well: that takes minutes where keeping them takes hours.
func fill(ctx context.Context, dsn string, copies int) (load.Filled, error) {
	f := &filler{ctx: ctx, dsn: dsn, copies: copies, known: load.Filled{Conversations: copies}}
	err := f.with(func(conn *pgx.Conn) error {
		if err := f.learn(conn); err != nil {
			return err
		}
		keys, err := f.takeKeys(conn)
		if err != nil {
			return err
		}
		for _, step := range []struct {
			name string
			do   func() error
		}{
			{"rows", f.copyAll},
			{"indexes", func() error { return f.giveKeys(conn, keys) }},
			{"vacuum", func() error { return f.vacuum(conn) }},
		} {
			began := time.Now()
			if err := step.do(); err != nil {
				return fmt.Errorf("fill: %s: %w", step.name, err)
			}
			fmt.Printf("filled %d conversations: %s in %.1f s\n", copies, step.name, time.Since(began).Seconds())
		}
		return nil
	})
	return f.known, err
}

func (f *filler) with(do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(f.ctx, f.dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(f.ctx) }()
	if _, err := conn.Exec(f.ctx, "SET maintenance_work_mem = '1GB'; SET work_mem = '64MB'; SET statement_timeout = 0"); err != nil {
		return err
	}
	return do(conn)
}

// learn looks at the conversation that is to be copied, puts it aside, and sees that inputs are hashed as they are here.
func (f *filler) learn(conn *pgx.Conn) error {
	var n int
	var hashed bool
	err := conn.QueryRow(f.ctx, `SELECT count(*), min(conversation_id::text)::uuid FROM conversations`).Scan(&n, &f.known.Conversation)
	if err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("there are %d conversations to copy", n)
	}
	rows, err := conn.Query(f.ctx, `SELECT id FROM turns WHERE role = 'user' ORDER BY seq`)
	if err != nil {
		return err
	}
	if f.known.Turns, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); err != nil {
		return err
	}
	err = conn.QueryRow(f.ctx, `SELECT bool_and(t.input_hash = `+hashSQL("c.conversation_id")+`
		AND t.conversation_key = `+keySQL("c.tenant", "c.conversation_id")+`) FROM turns t JOIN conversations c USING (conversation_key) WHERE t.role = 'user'`).Scan(&hashed)
	if err != nil {
		return err
	}
	if !hashed {
		return errors.New("inputs or keys are hashed in another way than copies would be")
	}
	for _, c := range copied {
		// Vacuum would look at what is not indexed yet, beside those that write.
		_, err := conn.Exec(f.ctx, fmt.Sprintf(
			"CREATE TABLE seed_%[1]s AS SELECT * FROM %[1]s; ALTER TABLE %[1]s SET (autovacuum_enabled = off)", c.table))
		if err != nil {
			return err
		}
	}
	return f.nothingElse(conn)
}

// nothingElse sees that the conversation has no rows in tables that are not copied.
func (f *filler) nothingElse(conn *pgx.Conn) error {
	rows, err := conn.Query(f.ctx, `SELECT table_name::text FROM information_schema.columns
		WHERE table_schema = 'public' AND column_name = 'conversation_key' AND table_name NOT LIKE 'seed_%' ORDER BY 1`)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range tables {
		if slices.ContainsFunc(copied, func(c copiedTable) bool { return c.table == table }) {
			continue
		}
		var some bool
		if err := conn.QueryRow(f.ctx, "SELECT EXISTS (SELECT FROM "+pgx.Identifier{table}.Sanitize()+")").Scan(&some); err != nil {
			return err
		}
		if some {
			return fmt.Errorf("the conversation has rows in %s, which is not copied", table)
		}
	}
	return nil
}

// keySQL is the key of a conversation, as turns.KeyOf makes it.
func keySQL(tenant, id string) string {
	hash := fmt.Sprintf("sha256(int8send(length(%[1]s)) || convert_to(%[1]s, 'UTF8') || uuid_send(%[2]s))", tenant, id)
	return fmt.Sprintf("encode(substring(%s, 1, 16), 'hex')::uuid", hash)
}

// hashSQL is the hash of an input that says load.Ask in a conversation, as turns.HashInput makes it.
func hashSQL(id string) string {
	return fmt.Sprintf(`(convert_to('%s', 'UTF8') || sha256('%s'::bytea || uuid_send(%s) || '\x%x'::bytea))`,
		hashName, hashHead, id, hashTail())
}

// column is one of a table.
type column struct{ name, kind string }

// expressions are what each column of a copy is made of: s is the row that is copied, with the number of the copy.
func (f *filler) expressions(columns []column, ids map[string]copyKind) ([]string, error) {
	conversation := load.CopyIDSQL("'"+f.known.Conversation.String()+"'", copyNumber)
	made := make([]string, len(columns))
	used := 0
	for i, c := range columns {
		own := "s." + pgx.Identifier{c.name}.Sanitize()
		kind, named := ids[c.name]
		if named {
			used++
		}
		switch {
		case named && kind == keyOfCopy:
			made[i] = keySQL("'default'", "("+conversation+")")
		case named && kind == inputHash:
			made[i] = "CASE WHEN " + own + " IS NOT NULL THEN " + hashSQL("("+conversation+")") + " END"
		case named && kind == copiedID:
			made[i] = load.CopyIDSQL(own, copyNumber)
		case !named && c.kind == "uuid":
			return nil, fmt.Errorf("nobody knows what the column %s is the id of", c.name)
		case c.kind == "timestamp with time zone":
			made[i] = fmt.Sprintf("%s - (%d - %s) * interval '%d milliseconds'", own, f.copies, copyNumber, copyEvery.Milliseconds())
		default:
			made[i] = own
		}
	}
	if used != len(ids) {
		return nil, fmt.Errorf("of %d columns of ids only %d are there", len(ids), used)
	}
	return made, nil
}

// copyAll writes the copies.
func (f *filler) copyAll() error {
	group, ctx := errgroup.WithContext(f.ctx)
	part := *f
	part.ctx = ctx
	for i := range fillers {
		group.Go(func() error {
			from, to := f.copies*i/fillers+1, f.copies*(i+1)/fillers
			return part.with(func(conn *pgx.Conn) error { return part.copyRange(conn, from, to) })
		})
	}
	return group.Wait()
}

// copyRange writes some copies, table by table.
func (f *filler) copyRange(conn *pgx.Conn, from, to int) error {
	for _, c := range copied {
		columns, err := f.columns(conn, c.table)
		if err != nil {
			return err
		}
		made, err := f.expressions(columns, c.ids)
		if err != nil {
			return fmt.Errorf("%s: %w", c.table, err)
		}
		names := make([]string, len(columns))
		for i, column := range columns {
			names[i] = pgx.Identifier{column.name}.Sanitize()
		}
		_, err = conn.Exec(f.ctx, fmt.Sprintf(`INSERT INTO %s (%s) SELECT %s
			FROM generate_series(%d::bigint, %d, %d) AS from_copy, LATERAL (
				SELECT o.*, copy_number FROM seed_%s o, generate_series(from_copy, least(from_copy + %d, %d)) AS copy_number
				ORDER BY o.create_time, o.ctid, copy_number OFFSET 0) s`,
			c.table, strings.Join(names, ", "), strings.Join(made, ", "), from, to, copyTogether, c.table, copyTogether-1, to))
		if err != nil {
			return fmt.Errorf("%s: %w", c.table, err)
		}
	}
	return nil
}

func (f *filler) columns(conn *pgx.Conn, table string) ([]column, error) {
	rows, err := conn.Query(f.ctx, `SELECT column_name::text, data_type::text FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name = $1 ORDER BY ordinal_position`, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) { return c, row.Scan(&c.name, &c.kind) })
}

// tableKey is an index or a constraint that is made again: the statement that takes it away, and the one that makes it.
type tableKey struct{ drop, make string }

// takeKeys drops the indexes and keys of the tables that are filled, those that lean on others first.
func (f *filler) takeKeys(conn *pgx.Conn) ([]tableKey, error) {
	var tables []string
	for _, c := range copied {
		tables = append(tables, c.table)
	}
	rows, err := conn.Query(f.ctx, `
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
	format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)),
	CASE contype WHEN 'f' THEN 1 ELSE 2 END AS turn, conname::text
FROM pg_constraint WHERE conrelid = ANY($1::regclass[]) AND contype IN ('p', 'u', 'f')
UNION ALL
SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid), 3, indexrelid::regclass::text
FROM pg_index WHERE indrelid = ANY($1::regclass[])
	AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))
ORDER BY turn, 4`, tables)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k tableKey, err error) {
		var turn int
		var name string
		return k, row.Scan(&k.drop, &k.make, &turn, &name)
	})
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if _, err := conn.Exec(f.ctx, k.drop); err != nil {
			return nil, fmt.Errorf("%s: %w", k.drop, err)
		}
	}
	return keys, nil
}

// giveKeys makes them again, the other way round.
func (f *filler) giveKeys(conn *pgx.Conn, keys []tableKey) error {
	for _, k := range slices.Backward(keys) {
		if _, err := conn.Exec(f.ctx, k.make); err != nil {
			return fmt.Errorf("%s: %w", k.make, err)
		}
	}
	return nil
}

// vacuum leaves the tables as they are where they have been for long, and says when their calls were made.
func (f *filler) vacuum(conn *pgx.Conn) error {
	for _, c := range copied {
		_, err := conn.Exec(f.ctx, fmt.Sprintf("DROP TABLE seed_%[1]s; ALTER TABLE %[1]s RESET (autovacuum_enabled)", c.table))
		if err != nil {
			return err
		}
	}
	if _, err := conn.Exec(f.ctx, "VACUUM (ANALYZE)"); err != nil {
		return err
	}
	return conn.QueryRow(f.ctx, "SELECT min(create_time), max(create_time) FROM provider_calls").Scan(&f.known.Since, &f.known.Until)
}
