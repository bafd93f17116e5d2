package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoStandby means that the Postgres which was found can't copy a running server: it comes without pg_basebackup, as
// the one of the package registry does.
var ErrNoStandby = errors.New("this Postgres has no pg_basebackup: install the package postgresql, or set PGBIN to a " +
	"folder that has it")

// Standby starts a server that streams from primary and answers reads, and returns once it streams. Its folder, which must
// hold no server yet, and its options are those of Start; settings that bound connections, workers and locks must not be below the primary's. It
// replicates asynchronously until Synchronous is called on the primary. ErrNoStandby means that there is no program to
// copy the primary with.
func Standby(ctx context.Context, dir string, primary *Server, opts ...Option) (*Server, error) {
	if _, err := os.Stat(filepath.Join(primary.bin, "pg_basebackup")); err != nil {
		return nil, fmt.Errorf("%s: %w", primary.bin, ErrNoStandby)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := newServer(dir, primary.bin, opts)
	if _, err := os.Stat(s.data()); dir != "" && err == nil {
		return nil, fmt.Errorf("start a standby in %s: the folder holds a server already", dir)
	}
	s.name = newName("standby_")
	err := s.start(ctx, func(ctx context.Context) error { return s.copyOf(ctx, primary) })
	if err == nil {
		err = primary.await(ctx, `SELECT count(*) = 1 FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming'`, s.name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a standby of port %d: %w", primary.port, err), s.Stop())
	}
	return s, nil
}

// copyOf fills the folder with a copy of the primary that goes on from there.
func (s *Server) copyOf(ctx context.Context, primary *Server) error {
	from := "host=127.0.0.1 port=" + strconv.Itoa(primary.port) + " user=postgres sslmode=disable application_name=" + s.name
	return s.program(ctx, "pg_basebackup", "-D", s.data(), "-d", from, "-R", "-X", "stream", "-C", "-S", s.name,
		"-c", "fast", "--no-sync")
}

// Synchronous makes every commit of a primary wait for one of the standbys, and returns once the first of them counts.
// While none of them is connected, commits wait for ever.
func (s *Server) Synchronous(ctx context.Context, standbys ...*Server) error {
	names := make([]string, len(standbys))
	for i, standby := range standbys {
		names[i] = standby.name
	}
	if err := s.Configure(ctx, "synchronous_standby_names", strings.Join(names, ",")); err != nil {
		return err
	}
	return s.await(ctx, `SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync' AND application_name = ANY ($1)`, names)
}

// Asynchronous makes commits of a primary wait for no standby; commits that wait for one end.
func (s *Server) Asynchronous(ctx context.Context) error {
	return s.Configure(ctx, "synchronous_standby_names", "")
}

// Configure sets a parameter of a running server for good, and returns once new sessions have it. It fails for those
// that were given to Start, and for those that need a restart.
func (s *Server) Configure(ctx context.Context, name, value string) error {
	err := s.session(ctx, func(conn *pgx.Conn) error {
		// The parameter can be the reason why statements that write do not end or are refused: neither of these writes.
		_, err := conn.Exec(ctx, "ALTER SYSTEM SET "+pgx.Identifier{name}.Sanitize()+" = '"+strings.ReplaceAll(value, "'", "''")+"'")
		if err == nil {
			_, err = conn.Exec(ctx, `SELECT pg_reload_conf()`)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	return s.await(ctx, `SELECT setting = $2 OR current_setting(name) = $2 FROM pg_settings WHERE name = $1`, name, value)
}

// Promote makes a standby a primary and returns once it takes writes. What it copied of its primary's configuration about
// synchronous standbys is cleared first: it would let every commit wait for a server that follows another.
func (s *Server) Promote(ctx context.Context) error {
	if err := s.Asynchronous(ctx); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	var promoted bool
	err := s.session(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT pg_promote(true, 60)`).Scan(&promoted)
	})
	if err == nil && !promoted {
		err = errors.New("the server went on to follow its primary")
	}
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return s.await(ctx, `SELECT NOT pg_is_in_recovery()`)
}

// Crash stops the server at once, as a fault would; its files stay, and Restart starts it again. Clients see their
// connections end.
func (s *Server) Crash() error { return s.halt() }

// Shutdown stops the server in order: statements that run are cancelled and sessions told why. Its files stay.
func (s *Server) Shutdown() error { return s.end(syscall.SIGINT) }

// Restart starts a server that was stopped, with its files, options and port. One that runs is shut down first. A standby
// follows its primary again; a primary is one again, though its standby may have been promoted in the meantime.
func (s *Server) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.Shutdown(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		err := s.launch(ctx)
		if err == nil || try == bindTries || ctx.Err() != nil {
			return err
		}
	}
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// FailoverDSN is the address of one database on whichever of the servers takes writes.
func FailoverDSN(database string, servers ...*Server) string {
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr()
	}
	return ManyHosts(database, addrs...)
}

// ManyHosts is FailoverDSN for addresses of the form host:port, which can be those of proxies.
func ManyHosts(database string, addrs ...string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Host: strings.Join(addrs, ","), Path: "/" + database,
		RawQuery: "sslmode=disable&target_session_attrs=read-write",
	}
	return u.String()
}

// Pair starts a primary and its standby for one test and stops them with it. Without the programs for it the test is
// skipped or, where the package comment says so, fails.
func Pair(t testing.TB, opts ...Option) (primary, standby *Server) {
	t.Helper()
	primary = Alone(t, opts...)
	standby, err := Standby(t.Context(), "", primary, opts...)
	if err != nil {
		missing(t, err, os.Getenv)
	}
	t.Cleanup(stopping(t, standby))
	return primary, standby
}

// Alone starts a server that one test may stop and configure, and stops it with the test. It is Start under the rule of
// the package comment about a missing Postgres.
func Alone(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return aloneIn(t, "", opts...)
}

// aloneIn is Alone in a folder of the test.
func aloneIn(t testing.TB, dir string, opts ...Option) *Server {
	t.Helper()
	server, err := Start(t.Context(), dir, opts...)
	if err != nil {
		missing(t, err, os.Getenv)
	}
	t.Cleanup(stopping(t, server))
	return server
}

func stopping(t testing.TB, s *Server) func() {
	return func() {
		if err := s.Stop(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	}
}

// session does one thing over a connection of its own.
func (s *Server) session(ctx context.Context, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn)
}

// await asks until the answer is true. Each question has a session of its own, as sessions learn of settings at their own
// pace.
func (s *Server) await(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		var yes bool
		err := s.session(ctx, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, sql, args...).Scan(&yes) })
		if err == nil && yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w: %w", sql, ctx.Err(), err)
		case <-tick.C:
		}
	}
}
