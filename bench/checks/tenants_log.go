package main

import (
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnd/turnd/internal/pgtest"
)

// logPrefix begins each entry of the server's log with who sent the statement.
const logPrefix = "app="

// logging makes a database on a Postgres that logs every statement, and leaves out what parameters stand for.
func (l *lab) logging(scene string) (engine, error) {
	if l.pg == nil {
		pg, err := pgtest.Start(l.ctx, filepath.Join(l.dir, "pg"), pgtest.Setting("log_statement", "all"),
			pgtest.Setting("log_line_prefix", logPrefix+"%a|"), pgtest.Setting("log_parameter_max_length", "0"))
		if err != nil {
			return engine{}, err
		}
		l.pg = pg
	}
	e, err := l.postgres(scene)
	if err != nil {
		return e, err
	}
	e.log = l.pg.Log()
	e.url, err = named(e.url, "turnd")
	return e, err
}

// named is a database's URL with a name of who connects.
func named(dsn, application string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	values := u.Query()
	values.Set("application_name", application)
	u.RawQuery = values.Encode()
	return u.String(), nil
}

// statementLog reads what the service sends to its database.
type statementLog struct {
	*lab
	file  string
	db    *sql.DB
	read  int64
	marks int
}

// listen reads from now on; what is in the log already is of a scene before.
func (l *lab) listen(e engine) (*statementLog, error) {
	written, err := os.Stat(e.log)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open(e.driver, e.dsn)
	if err != nil {
		return nil, err
	}
	g := &statementLog{lab: l, file: e.log, db: db, read: written.Size()}
	if _, err := g.next(); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *statementLog) close() { _ = g.db.Close() }

// next gives what the service has sent since it was called last. A statement of its own marks the place.
func (g *statementLog) next() (statements []string, err error) {
	g.marks++
	mark := fmt.Sprintf("SELECT 'mark %d.'", g.marks)
	if _, err := g.db.ExecContext(g.ctx, mark); err != nil {
		return nil, err
	}
	var text string
	err = g.until(func() (bool, error) {
		text, err = g.rest()
		return strings.Contains(text, mark), err
	})
	if err != nil {
		return nil, err
	}
	end := strings.Index(text, mark)
	g.read += int64(end + len(mark))
	for _, entry := range strings.Split(text[:end], "\n"+logPrefix)[1:] {
		sent, ours := strings.CutPrefix(entry, "turnd|LOG:  ")
		if ours && !strings.Contains(sent, "-- ping") && !strings.Contains(sent, "transaction_read_only") {
			statements = append(statements, sent)
		}
	}
	return statements, nil
}

// rest is what the log has from the last mark on.
func (g *statementLog) rest() (string, error) {
	f, err := os.Open(g.file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	data := make([]byte, info.Size()-g.read)
	_, err = f.ReadAt(data, g.read)
	return string(data), err
}
