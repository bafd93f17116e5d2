package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql driver "pgx"
	_ "modernc.org/sqlite"             // database/sql driver "sqlite"

	"github.com/turnd/turnd/internal/pgtest"
)

// engine is a fresh database for one scene.
type engine struct {
	name string
	// url is what turnd is given, driver and dsn are how this program looks inside.
	url    string
	driver string
	dsn    string
	// log is the file to which its server logs every statement, if it does.
	log string
}

func (l *lab) sqlite(scene string) engine {
	file := filepath.Join(l.dir, scene+".db")
	return engine{name: "sqlite", url: "sqlite://" + file, driver: "sqlite", dsn: "file:" + file + "?mode=ro&_pragma=busy_timeout(5000)"}
}

// postgres makes a database on the lab's server, which keeps fsync on as one that holds data has to.
func (l *lab) postgres(scene string) (engine, error) {
	if l.pg == nil {
		pg, err := pgtest.Start(l.ctx, filepath.Join(l.dir, "pg"), pgtest.Fsync())
		if err != nil {
			return engine{}, err
		}
		l.pg = pg
	}
	l.pgUsed++
	name := fmt.Sprintf("%s_%d", scene, l.pgUsed)
	conn, err := pgx.Connect(l.ctx, l.pg.DSN("postgres"))
	if err != nil {
		return engine{}, err
	}
	defer conn.Close(l.ctx)
	if _, err := conn.Exec(l.ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return engine{}, err
	}
	dsn := l.pg.DSN(name)
	return engine{name: "postgres", url: dsn, driver: "pgx", dsn: dsn}, nil
}

// engines are a fresh one of each kind.
func (l *lab) engines(scene string) ([]engine, error) {
	pg, err := l.postgres(scene)
	if err != nil {
		return nil, err
	}
	return []engine{l.sqlite(scene), pg}, nil
}

// number asks the database for one number.
func (e engine) number(ctx context.Context, query string) (n int, err error) {
	err = e.ask(ctx, &n, query)
	return n, err
}

// settles waits until a query of an engine gives a number.
func (l *lab) settles(e engine, query string, want int) error {
	return l.until(func() (bool, error) {
		n, err := e.number(l.ctx, query)
		return n == want, err
	})
}

// ask asks the database for one value.
func (e engine) ask(ctx context.Context, value any, query string, args ...any) error {
	db, err := sql.Open(e.driver, e.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.QueryRowContext(ctx, query, args...).Scan(value)
}

const (
	liveReplies  = `SELECT count(*) FROM turns WHERE role = 'assistant' AND status <> 'abandoned'`
	doubleSlots  = `SELECT count(*) FROM (SELECT 1 FROM turns WHERE role = 'assistant' AND status <> 'abandoned' GROUP BY conversation_key, responds_to HAVING count(*) > 1) AS doubled`
	userTurns    = `SELECT count(*) FROM turns WHERE role = 'user'`
	inFlight     = `SELECT count(*) FROM turns WHERE status = 'in_flight'`
	ledgerRows   = `SELECT count(*) FROM provider_calls`
	openCalls    = `SELECT count(*) FROM provider_calls WHERE class = ''`
	wastedRows   = `SELECT count(*) FROM provider_calls WHERE wasted_tokens > 0`
	wastedFirst  = `SELECT coalesce(sum(wasted_tokens), 0) FROM provider_calls WHERE first`
	reportedSums = `SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM provider_calls WHERE token_source = 'reported'`
)
