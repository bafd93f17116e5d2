package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/internal/pgtest"
)

const (
	workerCount  = 3
	databaseName = "chaos"

	lease      = 2 * time.Second
	sweep      = 500 * time.Millisecond
	checkpoint = 100 * time.Millisecond
	drain      = 3 * time.Second
)

// cluster is what is played with: a database with its standby, a provider, three workers, and a link on each connection
// between them.
type cluster struct {
	dir      string
	bin      string
	database *database
	provider *rig.Provider
	workers  []*worker
}

// startCluster starts everything in a folder that Postgres, which runs as a user of its own, can reach.
func startCluster(ctx context.Context, dir, bin string, told *stories) (*cluster, error) {
	c := &cluster{dir: dir, bin: bin}
	var err error
	if c.database, err = startDatabase(ctx, dir); err != nil {
		return c, err
	}
	migrate := exec.CommandContext(ctx, bin, "migrate", "up", "--database-url", c.database.dsn())
	migrate.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	if out, err := migrate.CombinedOutput(); err != nil {
		return c, fmt.Errorf("migrate: %w: %s", err, out)
	}
	if err := execute(ctx, c.database.dsn(), "CHECKPOINT"); err != nil { // so that a crash has little to recover
		return c, err
	}
	if c.provider, err = rig.StartProvider(ctx, dir, "provider", bin, told.script); err != nil {
		return c, err
	}
	for n := range workerCount {
		w, err := newWorker(c, n)
		if err != nil {
			return c, err
		}
		c.workers = append(c.workers, w)
		if err := w.start(ctx); err != nil {
			return c, err
		}
	}
	return c, nil
}

// fronts are where clients reach the workers.
func (c *cluster) fronts() []string {
	addrs := make([]string, len(c.workers))
	for i, w := range c.workers {
		addrs[i] = w.front.Addr()
	}
	return addrs
}

// stop ends everything that was started.
func (c *cluster) stop() {
	for _, w := range c.workers {
		w.close()
	}
	if c.provider != nil {
		_ = c.provider.End(syscall.SIGKILL, time.Second)
	}
	if c.database != nil {
		c.database.stop()
	}
}

// database is a primary with a synchronous standby, until that is promoted.
type database struct {
	mu      sync.Mutex // guards primary and standby
	primary *pgtest.Server
	standby *pgtest.Server // nil once it is the primary
	servers []*pgtest.Server
}

func startDatabase(ctx context.Context, dir string) (*database, error) {
	// A crash is followed by a sync of every file, which takes many seconds file by file.
	options := []pgtest.Option{pgtest.Fsync(), pgtest.Setting("wal_retrieve_retry_interval", "100ms"), pgtest.Setting("recovery_init_sync_method", "syncfs")}
	primary, err := pgtest.Start(ctx, filepath.Join(dir, "primary"), options...)
	if err != nil {
		return nil, err
	}
	d := &database{primary: primary, servers: []*pgtest.Server{primary}}
	if d.standby, err = pgtest.Standby(ctx, filepath.Join(dir, "standby"), primary, options...); err != nil {
		return d, err
	}
	d.servers = append(d.servers, d.standby)
	if err := primary.Synchronous(ctx, d.standby); err != nil {
		return d, err
	}
	return d, execute(ctx, primary.DSN("postgres"), "CREATE DATABASE "+databaseName)
}

// dsn is the address of the server that takes writes.
func (d *database) dsn() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.primary.DSN(databaseName)
}

// fail ends the primary at once and promotes the standby.
func (d *database) fail(ctx context.Context) error {
	if d.standby == nil {
		return errors.New("there is no standby any more")
	}
	if err := d.primary.Crash(); err != nil {
		return err
	}
	if err := d.standby.Promote(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.primary, d.standby = d.standby, nil
	return nil
}

// restart ends the primary at once and starts it again.
func (d *database) restart(ctx context.Context, away time.Duration) error {
	if err := d.primary.Crash(); err != nil {
		return err
	}
	sleep(ctx, away)
	return d.primary.Restart(ctx)
}

func (d *database) stop() {
	for _, s := range d.servers {
		_ = s.Stop()
	}
}
