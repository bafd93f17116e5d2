package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ErrNoPooler means that pgbouncer is not installed.
var ErrNoPooler = errors.New("no pgbouncer found: install the package pgbouncer")

// pools is how many sessions the pooler keeps for one database: few, so that clients get each other's.
const pools = 3

// Pooler starts a pgbouncer for one test that gives out sessions of the database at dsn for one transaction at a time, and
// returns the same DSN through it. Without the program the test is skipped or, where the package comment says so, fails.
func Pooler(t testing.TB, dsn string) string {
	t.Helper()
	program, err := findPooler()
	if err != nil {
		missing(t, err, os.Getenv)
	}
	through, stop, err := startPooler(t.Context(), program, dsn)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return through
}

// findPooler looks beside the PATH too: distributions put it where only root has it on the PATH.
func findPooler() (string, error) {
	if program, err := exec.LookPath("pgbouncer"); err == nil {
		return program, nil
	}
	const system = "/usr/sbin/pgbouncer"
	if _, err := os.Stat(system); err == nil {
		return system, nil
	}
	return "", ErrNoPooler
}

func startPooler(ctx context.Context, program, dsn string) (through string, stop func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	u, err := url.Parse(dsn)
	if err != nil {
		return "", nil, fmt.Errorf("read the address: %w", err)
	}
	port, err := freePort(ctx)
	if err != nil {
		return "", nil, err
	}
	s := &Server{port: port}
	if s.who, err = serverAccount(); err != nil {
		return "", nil, err
	}
	if err := s.prepare(); err != nil {
		return "", nil, err
	}
	ini := filepath.Join(s.dir, "pgbouncer.ini")
	if err := os.WriteFile(ini, []byte(poolerSettings(u, port, s.dir)), 0o644); err != nil {
		return "", nil, errors.Join(fmt.Errorf("write the settings: %w", err), s.cleanUp())
	}
	s.cmd = s.who.command(context.WithoutCancel(ctx), program, ini)
	dieWithParent(s.cmd.SysProcAttr)
	if err := s.run(); err != nil {
		return "", nil, errors.Join(err, s.cleanUp())
	}
	u.Host = s.Addr()
	if err := s.accepts(ctx); err != nil {
		return "", nil, errors.Join(err, s.Stop())
	}
	return u.String(), s.Stop, nil
}

func poolerSettings(u *url.URL, port int, dir string) string {
	return strings.Join([]string{
		"[databases]",
		"* = host=" + u.Hostname() + " port=" + u.Port() + " user=" + u.User.Username(),
		"[pgbouncer]",
		"listen_addr = 127.0.0.1",
		"listen_port = " + strconv.Itoa(port),
		"unix_socket_dir =",
		"auth_type = any",
		"auth_file =",
		"pool_mode = transaction",
		"default_pool_size = " + strconv.Itoa(pools),
		"max_client_conn = 100",
		"logfile = " + filepath.Join(dir, "pgbouncer.log"),
		"",
	}, "\n")
}

// accepts waits until the port is listened on.
func (s *Server) accepts(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "tcp", s.Addr())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-s.done:
			log, _ := os.ReadFile(filepath.Join(s.dir, "pgbouncer.log"))
			return fmt.Errorf("pgbouncer ended at once: %s", log)
		case <-ctx.Done():
			return fmt.Errorf("pgbouncer takes no connections: %w", err)
		case <-tick.C:
		}
	}
}
