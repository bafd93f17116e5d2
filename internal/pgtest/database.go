package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// statementTimeout bounds the making and dropping of one database: 50 ms on an idle machine.
const statementTimeout = 60 * time.Second

// cluster is the one server of a test binary, started at first use.
type cluster struct {
	running bool // Main is at work
	start   sync.Once
	err     error
	server  *Server // nil if the server is somebody else's
	admin   string  // DSN from which databases are made
	version string
	copying string // words after CREATE DATABASE .. TEMPLATE ..; depends on the version

	migrate  sync.Once
	template string
	tmplErr  error

	idle    idle
	lasting idle // those that are lent by others
}

// shared is state of the process as the server is: there is one test binary, hence one cluster.
var shared = cluster{idle: idle{most: maxIdle}}

// Database returns the DSN of a database that is empty and belongs to this test alone. It is dropped, with whatever is
// still connected, when the test ends. Without a Postgres the test is skipped or, where the package comment says so,
// fails.
func Database(t testing.TB) string {
	t.Helper()
	shared.need(t)
	return shared.create(t, "")
}

// Migrated returns the DSN of a database like Database does, with a schema in it: the first call runs migrate on a
// template, and each call clones that. A test binary has one template, so all of its calls must pass the same migrate, which is
// Migrate for all but the tests of this package.
func Migrated(t testing.TB, migrate func(dsn string) error) string {
	t.Helper()
	shared.need(t)
	return shared.create(t, shared.migrated(t, migrate))
}

// migrated is the template that databases with a schema are cloned from.
func (c *cluster) migrated(t testing.TB, migrate func(dsn string) error) string {
	t.Helper()
	c.migrate.Do(func() { c.template, c.tmplErr = c.makeTemplate(migrate) })
	if c.tmplErr != nil {
		t.Fatalf("pgtest: template database: %v", c.tmplErr)
	}
	return c.template
}

// need starts the server if this is the first call, and ends the test if there is none.
func (c *cluster) need(t testing.TB) {
	t.Helper()
	if !c.running {
		t.Fatal("pgtest: TestMain of this package must call pgtest.Main, which stops the server")
	}
	c.start.Do(func() { c.err = c.open() })
	if c.err != nil {
		missing(t, c.err, os.Getenv)
	}
}

// missing ends a test that has no Postgres. A server that is there and does not start always fails the test.
func missing(t testing.TB, err error, getenv func(string) string) {
	t.Helper()
	if isMissing(err) && getenv("CI") != "true" && getenv("TURND_TEST_REQUIRE_POSTGRES") == "" {
		t.Skipf("%s%v", skipPrefix, err)
	}
	t.Fatalf("pgtest: %v", err)
}

// isMissing reports a program that is not installed, which is no fault of what is tested.
func isMissing(err error) bool {
	return errors.Is(err, ErrNoPostgres) || errors.Is(err, ErrNoStandby) || errors.Is(err, ErrNoPooler)
}

// skipPrefix begins the reason of each skip, which the summary of a test run looks for.
const skipPrefix = "pgtest: skipped: "

func (c *cluster) open() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if c.admin = os.Getenv("TURND_TEST_DATABASE_URL"); c.admin == "" {
		removeLeftovers(os.TempDir())
		server, err := Start(ctx, "", lean()...)
		if err != nil {
			return err
		}
		c.server, c.admin = server, server.DSN("postgres")
	}
	return c.ask(ctx)
}

// lean are settings for hundreds of small databases, each used by many short sessions: memory that is quick to leave, nothing
// compiled, and no work in the background, which would change plans in the middle of a test.
func lean() []Option {
	return []Option{Setting("shared_buffers", "16MB"), Setting("jit", "off"), Setting("autovacuum", "off")}
}

// ask learns the version, which also shows that the server answers.
func (c *cluster) ask(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.admin)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var number int
	const sql = `SELECT current_setting('server_version'), current_setting('server_version_num')::int`
	if err := conn.QueryRow(ctx, sql).Scan(&c.version, &number); err != nil {
		return fmt.Errorf("ask for the version: %w", err)
	}
	// Copying files is the faster way for a small template, and the only one before 15.
	if number >= 150000 {
		c.copying = " STRATEGY file_copy"
	}
	return nil
}

// create makes a database, from the template if one is named, and drops it at the end of the test.
func (c *cluster) create(t testing.TB, template string) string {
	t.Helper()
	name := c.make(t, template)
	t.Cleanup(func() {
		if err := c.drop(name); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	dsn, err := withDatabase(c.admin, name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return dsn
}

// make makes a database, from the template if one is named.
func (c *cluster) make(t testing.TB, template string) (name string) {
	t.Helper()
	name = newName("turnd_test_")
	sql := "CREATE DATABASE " + name
	if template != "" {
		sql += " TEMPLATE " + template + c.copying
	}
	if err := c.exec(sql); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return name
}

func (c *cluster) makeTemplate(migrate func(dsn string) error) (string, error) {
	name := newName("turnd_template_")
	dsn, err := withDatabase(c.admin, name)
	if err != nil {
		return "", err
	}
	if err := c.exec("CREATE DATABASE " + name); err != nil {
		return "", err
	}
	if err := migrate(dsn); err != nil {
		return "", errors.Join(fmt.Errorf("migrate: %w", err), c.drop(name))
	}
	return name, nil
}

func (c *cluster) drop(name string) error {
	return c.exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)")
}

// exec runs one statement on a connection of its own, since databases can't be made inside a transaction or by two
// users of one connection.
func (c *cluster) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, c.admin)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// close stops the server, with which everything goes, or drops what is left on one of somebody else's.
func (c *cluster) close() error {
	if c.server != nil {
		return c.server.Stop()
	}
	var err error
	for _, left := range []*idle{&c.idle, &c.lasting} {
		for name, ok := left.take(); ok; name, ok = left.take() {
			err = errors.Join(err, c.drop(name))
		}
	}
	if c.template != "" {
		err = errors.Join(err, c.drop(c.template))
	}
	return err
}

// newName makes a name that no other process makes, since several may share a server.
func newName(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// withDatabase names another database in a DSN.
func withDatabase(dsn, name string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "", errors.New("TURND_TEST_DATABASE_URL must be of the form postgres://user@host:port/database")
	}
	u.Path = "/" + name
	return u.String(), nil
}
