package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/internal/pgtest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// lease is how long a worker's claims hold here.
const lease = 2 * time.Second

// house is all that runs: a Postgres, a provider, workers, and the Prometheus that watches them.
type house struct {
	ctx      context.Context
	dir      string
	bin      string
	db       *pgtest.Server
	sql      *pgx.Conn
	provider *rig.Provider
	models   string
	prom     *prometheus
	alerts   int
	workers  map[string]*worker
	procs    []*rig.Process
	everything
}

// worker is a turnd with a client, and with a link to the database of its own.
type worker struct {
	*rig.Process
	ready rig.Ready
	link  *rig.Link
	conn  *grpc.ClientConn
	turns turnsv1.TurnServiceClient
	spool string
}

func newHouse(ctx context.Context) (h *house, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h = &house{ctx: ctx, bin: filepath.Join(filepath.Dir(self), "turnd"), workers: map[string]*worker{}}
	if h.dir, err = os.MkdirTemp("", "turnd-dashboards-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			h.close(true)
		}
	}()
	if err := os.Chmod(h.dir, 0o755); err != nil { //nolint:gosec // Postgres runs as a user of its own
		return nil, err
	}
	if err := h.startStore(); err != nil {
		return nil, err
	}
	if h.provider, err = rig.StartProvider(ctx, h.dir, "provider", h.bin, script()); err != nil {
		return nil, err
	}
	h.procs = append(h.procs, h.provider.Process)
	h.models = filepath.Join(h.dir, "models.yaml")
	if err := os.WriteFile(h.models, []byte(modelsFile("http://"+h.provider.Addr)), 0o600); err != nil {
		return nil, err
	}
	return h, h.startWatch()
}

func (h *house) startStore() (err error) {
	if h.db, err = pgtest.Start(h.ctx, filepath.Join(h.dir, "pg")); err != nil {
		return err
	}
	first, err := pgx.Connect(h.ctx, h.db.DSN("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = first.Close(h.ctx) }()
	if _, err := first.Exec(h.ctx, "CREATE DATABASE watched"); err != nil {
		return err
	}
	h.sql, err = pgx.Connect(h.ctx, h.db.DSN("watched"))
	return err
}

// startWatch starts two workers, and a Prometheus that has the shipped rules in a hurry.
func (h *house) startWatch() (err error) {
	rules := filepath.Join(h.dir, "rules")
	if err := os.Mkdir(rules, 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	if err := shorten(filepath.Join(deployed, "prometheus", "rules"), rules); err != nil {
		return err
	}
	if h.prom, err = startPrometheus(h.ctx, h.dir, rules); err != nil {
		return err
	}
	h.procs = append(h.procs, h.prom.Process)
	if _, err := h.worker("calm"); err != nil {
		return err
	}
	_, err = h.worker("tried", "--max-in-flight", fmt.Sprint(places))
	return err
}

// places are the replies that the worker that is tried runs at once.
const places = 12

// worker starts a worker that is scraped under a name.
func (h *house) worker(name string, args ...string) (*worker, error) {
	return h.workerIn(name, []string{h.bin}, args...)
}

// workerIn is worker, started by a program and its first arguments.
func (h *house) workerIn(name string, program []string, args ...string) (*worker, error) {
	u, err := url.Parse(h.db.DSN("watched"))
	if err != nil {
		return nil, err
	}
	w := &worker{spool: filepath.Join(h.dir, "spool-"+name)}
	if w.link, err = rig.NewLink(u.Host); err != nil {
		return nil, err
	}
	u.Host = w.link.Addr()
	file := filepath.Join(h.dir, "ready-"+name+".json")
	args = append(append(slices.Clone(program[1:]), "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--ready-file", file,
		"--database-url", u.String(), "--migrate", "on", "--models", h.models, "--spool-dir", w.spool, "--worker-name", name,
		"--lease", lease.String(), "--sweep", "300ms", "--max-calls", "3", "--backoff", "50ms", "--max-wait", "2s", "--on-ambiguous", "abandon"), args...)
	if w.Process, err = rig.Start(h.dir, "turnd-"+name, program[0], args...); err != nil {
		return nil, err
	}
	h.procs = append(h.procs, w.Process)
	ctx, cancel := context.WithTimeout(h.ctx, time.Minute)
	defer cancel()
	if w.ready, err = rig.AwaitReady(ctx, w.Process, file); err != nil {
		return nil, err
	}
	if w.conn, err = grpc.NewClient(w.ready.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry()); err != nil {
		return nil, err
	}
	w.turns = turnsv1.NewTurnServiceClient(w.conn)
	h.workers[name] = w
	return w, h.scraped()
}

// scraped tells Prometheus which workers there are.
func (h *house) scraped() error {
	all := map[string]string{}
	for name, w := range h.workers {
		all[name] = w.ready.Ops
	}
	return h.prom.watches(all)
}

// counted waits until Prometheus has what a worker has counted by now.
func (h *house) counted(name string) error {
	now := float64(time.Now().UnixMilli()) / 1000
	return until(h.ctx, patience, "a scrape of "+name, func() (bool, error) {
		samples, err := h.prom.ask(h.ctx, fmt.Sprintf("timestamp(up{instance=%q})", name))
		return len(samples) == 1 && samples[0].value > now, err
	})
}

// leaves ends a worker that is not needed any more.
func (h *house) leaves(name string, sig syscall.Signal) error {
	w := h.workers[name]
	delete(h.workers, name)
	_ = w.End(sig, 10*time.Second)
	w.close()
	return h.scraped()
}

func (w *worker) close() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
	w.link.Close()
}

// close ends everything. After a failure the ends of the logs are shown.
func (h *house) close(failed bool) {
	for _, w := range h.workers {
		w.close()
	}
	for _, p := range slices.Backward(h.procs) {
		_ = p.End(syscall.SIGKILL, 5*time.Second)
		if failed {
			fmt.Printf("--- end of the log of %s\n%s\n", p.Name, p.Tail(12))
		}
	}
	if h.sql != nil {
		_ = h.sql.Close(context.Background())
	}
	if h.db != nil {
		_ = h.db.Stop()
	}
	_ = os.RemoveAll(h.dir)
}
