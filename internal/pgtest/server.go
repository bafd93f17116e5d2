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
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	startTimeout = 60 * time.Second // initdb and start take 2 s on an idle machine
	stopTimeout  = 10 * time.Second // SIGQUIT takes under half a second
	pollInterval = 20 * time.Millisecond
	bindTries    = 3 // a free port can be taken between looking and starting
)

// Server is a Postgres process with its files. Stop it.
type Server struct {
	dir  string // holds data and log
	made bool   // dir was made here and goes with the server
	bin  string // folder of the programs
	who  account
	opts options
	port int    // 0 until one is chosen; a server that is started again keeps it
	name string // a standby's application_name and slot on its primary
	cmd  *exec.Cmd
	done chan struct{} // closed once the process has ended
}

// Option changes how Start runs a server.
type Option func(*options)

type options struct {
	fsync    bool
	settings []string
}

// Fsync makes the server write through to the disk, as one that keeps data has to.
func Fsync() Option { return func(o *options) { o.fsync = true } }

// Setting sets a parameter of the server, as postgres -c does; it cannot be changed by ALTER SYSTEM afterwards.
func Setting(name, value string) Option {
	return func(o *options) { o.settings = append(o.settings, "-c", name+"="+value) }
}

// Start starts a server whose data and log are kept in dir, and returns once it takes connections. A dir that holds
// the data of an earlier server is started as it is. If dir is empty, a folder is made and removed again by Stop. A
// user other than the caller must be able to reach dir if the caller is root. ErrNoPostgres means that there is
// nothing to start.
//
// The server outlives ctx, which bounds only the start.
func Start(ctx context.Context, dir string, opts ...Option) (*Server, error) {
	bin, err := newFinder().bin(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := newServer(dir, bin, opts)
	if err := s.start(ctx, s.initialise); err != nil {
		return nil, errors.Join(fmt.Errorf("start postgres of %s: %w", bin, err), s.cleanUp())
	}
	return s, nil
}

func newServer(dir, bin string, opts []Option) *Server {
	s := &Server{dir: dir, bin: bin}
	for _, opt := range opts {
		opt(&s.opts)
	}
	return s
}

// start prepares the folder, fills it unless it holds data already, and starts the process.
func (s *Server) start(ctx context.Context, fill func(context.Context) error) error {
	var err error
	if s.who, err = serverAccount(); err != nil {
		return err
	}
	if err := s.prepare(); err != nil {
		return err
	}
	if s.bin, err = s.who.reachable(ctx, s.bin, s.dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); err != nil {
		if err := fill(ctx); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
		err := s.launch(ctx)
		if err == nil || try == bindTries || ctx.Err() != nil {
			return err
		}
	}
}

// prepare makes the folder and gives it to the server's user.
func (s *Server) prepare() error {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", leftoverPrefix+strconv.Itoa(os.Getpid())+"-")
		if err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		s.dir, s.made = dir, true
	}
	abs, err := filepath.Abs(s.dir)
	if err != nil {
		return fmt.Errorf("resolve the folder: %w", err)
	}
	s.dir = abs
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	return s.who.own(s.dir)
}

func (s *Server) initialise(ctx context.Context) error {
	return s.program(ctx, "initdb", "-D", s.data(), "-U", "postgres", "-A", "trust",
		"--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
}

// program runs one of the programs that come with the server to its end.
func (s *Server) program(ctx context.Context, name string, args ...string) error {
	if out, err := s.who.command(ctx, filepath.Join(s.bin, name), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// launch starts the process on its port and waits until it takes connections.
func (s *Server) launch(ctx context.Context) error {
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }() // the process has its own descriptor
	// The start is not tied to ctx: a context would kill the server as soon as the caller cancels it.
	s.cmd = s.who.command(context.WithoutCancel(ctx), filepath.Join(s.bin, "postgres"), s.arguments()...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	dieWithParent(s.cmd.SysProcAttr)
	if err := s.run(); err != nil {
		return err
	}
	if err := s.waitReady(ctx); err != nil {
		return errors.Join(err, s.halt())
	}
	return nil
}

func (s *Server) arguments() []string {
	args := []string{
		"-D", s.data(), "-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(s.port),
		"-c", "unix_socket_directories=", "-c", "max_connections=200", "-c", "timezone=UTC",
	}
	if !s.opts.fsync {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	return append(args, s.opts.settings...)
}

// run starts the process from a thread of its own that stays until the process ends: the kernel ties the server's
// life to the thread that started it, and Go ends idle threads as it likes.
func (s *Server) run() error {
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // the log holds the reason, and whoever stopped it knows
		}
	}()
	s.done = done
	if err := <-started; err != nil {
		<-done
		return fmt.Errorf("run postgres: %w", err)
	}
	return nil
}

func (s *Server) waitReady(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.done:
			return fmt.Errorf("postgres ended at once: %s", s.tail())
		case <-ctx.Done():
			return fmt.Errorf("postgres takes no connections: %w: %s", err, s.tail())
		case <-tick.C:
		}
	}
}

// DSN is the address of one database of the server, for its superuser.
func (s *Server) DSN(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Log is the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.dir, "postgres.log") }

// PID is the id of the server's main process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop ends the server at once, without a last checkpoint, and returns when it has ended. A folder that Start made is
// removed; one that the caller gave stays. Stopping twice is no error.
func (s *Server) Stop() error {
	return errors.Join(s.halt(), s.cleanUp())
}

func (s *Server) halt() error { return s.end(syscall.SIGQUIT) }

// end sends a signal and returns when the process has ended; one that does not listen is killed.
func (s *Server) end(sig syscall.Signal) error {
	if s.done == nil {
		return nil
	}
	// The process may have ended by itself; then the signal finds nobody, which is as good.
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop postgres: %w", err)
	}
	timeout := time.NewTimer(stopTimeout)
	defer timeout.Stop()
	select {
	case <-s.done:
		return nil
	case <-timeout.C:
	}
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill postgres: %w", err)
	}
	<-s.done
	return nil
}

func (s *Server) cleanUp() error {
	if !s.made {
		return nil
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("remove the server's folder: %w", err)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// tail is the end of the log, for error texts.
func (s *Server) tail() string {
	const most = 2000
	log, err := os.ReadFile(s.Log())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-most):])
}

func freePort(ctx context.Context) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return port, nil
}
