package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns/live"
	"github.com/turnd/turnd/turns/postgres"
)

// defaultBases are the places that adapters ask where an endpoint names none.
var defaultBases = map[llm.Wire]string{
	llm.WireAnthropicMessages: "https://api.anthropic.com", llm.WireOpenAIChat: "https://api.openai.com", llm.WireOpenAIResponses: "https://api.openai.com",
}

// connected hears once that a bus hears what others publish.
type connected struct {
	once sync.Once
	yes  chan struct{}
}

// Take implements live.Handler.
func (c *connected) Take([]live.Hint) {}

// Connected implements live.Handler.
func (c *connected) Connected(yes bool) {
	if yes {
		c.once.Do(func() { close(c.yes) })
	}
}

// hears reports whether a bus comes to hear itself in time.
func hears(ctx context.Context, bus live.Bus) bool {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	c := &connected{yes: make(chan struct{})}
	var run sync.WaitGroup
	run.Go(func() { _ = bus.Run(ctx, c) })
	defer run.Wait()
	defer cancel()
	select {
	case <-c.yes:
		return true
	case <-ctx.Done():
		return false
	}
}

// bus tries the way on which workers tell each other of news, and what stands between here and Postgres.
func (d *doctor) bus(ctx context.Context) {
	kind := (&app{cfg: d.cfg, at: d.at}).busKind()
	away := d.failed("database")
	if d.at.engine == enginePostgres && !away {
		d.pooler(ctx)
	}
	// A server that is away hears nothing either, and advice about poolers would lead away from it.
	if kind == busPostgres && away && d.at.direct == d.at.url {
		return
	}
	switch kind {
	case busPostgres:
		if hears(ctx, postgres.NewBus(postgres.BusConfig{URL: d.at.direct, Logger: silent()})) {
			d.ok("bus", "a NOTIFY came back to its LISTEN")
			return
		}
		d.fail("bus", "set --database-direct-url past the pooler, or --bus poll", "LISTEN hears nothing at %s", redactURL(d.at.direct))
	case busNATS:
		if hears(ctx, (&app{cfg: d.cfg, at: d.at, logger: silent()}).newBus()) {
			d.ok("bus", "NATS at %s answers", redactURLs(d.cfg.NATSURL))
			return
		}
		d.fail("bus", "check --nats-url, and that a server runs there and lets this machine in", "no NATS server of %s answers", redactURLs(d.cfg.NATSURL))
	default:
		d.ok("bus", "%s, which needs no server", kind)
	}
}

// pooler finds out whether what --database-url names keeps a session for its client, by whether LISTEN has an effect there.
func (d *doctor) pooler(ctx context.Context) {
	session := hears(ctx, postgres.NewBus(postgres.BusConfig{URL: d.at.url, Logger: silent()}))
	switch {
	case session && d.at.direct == d.at.url:
		d.ok("pooler", "none, or one that keeps sessions")
	case session:
		d.ok("pooler", "--database-url keeps sessions, so --database-direct-url is not needed")
	case d.at.direct == d.at.url:
		d.fail("pooler", "set --database-direct-url to the server's own address, for migrations and the bus",
			"what --database-url names keeps no session, as a pooler in transaction mode")
	default:
		d.ok("pooler", "--database-url pools by transaction, and --database-direct-url goes past it")
	}
}

// endpoints looks whether providers can be reached. Nothing is asked of them, so nothing is spent.
func (d *doctor) endpoints(ctx context.Context) {
	if d.cfg.wantsDemo() {
		d.warn("models", "set --models, or a vendor's key, to ask real ones", "the scripted demo is served, and no model is called")
		return
	}
	chosen, err := d.cfg.chooseModels()
	if err != nil {
		d.fail("models", "mend the file that --models names", "%s", lineOf(err))
		return
	}
	d.ok("models", "%d models by %d endpoints", len(chosen.Models), len(chosen.Endpoints))
	found := make([]finding, len(chosen.Endpoints))
	var all sync.WaitGroup
	for i, e := range chosen.Endpoints {
		all.Go(func() { found[i] = reach(ctx, e) })
	}
	all.Wait()
	d.findings = append(d.findings, found...)
}

// reach connects to an endpoint, up to the end of the TLS handshake.
func reach(ctx context.Context, e llm.Endpoint) finding {
	name := "endpoint " + e.Name
	base := e.BaseURL
	if base == "" {
		base = defaultBases[e.Wire]
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" {
		return finding{levelFAIL, name, "its base_url is no URL", "mend it in the models file"}
	}
	key := "a key is set"
	if e.Key == "" {
		key = "no key is set"
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
		u = proxy
		name += " by a proxy"
	}
	_, err = inTime(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, handshake(ctx, u) })
	if err != nil {
		return finding{levelFAIL, name, lineOf(err), "check base_url, the network and its firewall; turns that need it fail"}
	}
	return finding{Level: levelOK, Name: name, What: fmt.Sprintf("%s://%s is reached; %s; nothing was asked", u.Scheme, u.Host, key)}
}

func handshake(ctx context.Context, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	address := net.JoinHostPort(u.Hostname(), port)
	dial := (&net.Dialer{}).DialContext
	if u.Scheme == "https" {
		dial = (&tls.Dialer{Config: &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}}).DialContext
	}
	conn, err := dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// spool looks whether finished replies can be kept while the database is away, and whether some are.
func (d *doctor) spool() {
	dir, err := d.cfg.spoolDir()
	if err != nil {
		d.warn("spool", "set --spool-dir", "there is no place for it: %s", lineOf(err))
		return
	}
	kept, bad, err := spooled(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.ok("spool", "%s is not there yet; `turnd serve` makes it", dir)
		return
	case err != nil:
		d.fail("spool", "give this user the directory, or set --spool-dir", "%s", lineOf(err))
		return
	}
	if err := writable(dir); err != nil {
		d.fail("spool", "give this user the directory, or set --spool-dir", "%s", lineOf(err))
		return
	}
	switch {
	case bad > 0:
		d.warn("spool", "see the worker's log for why, and keep the files", "%s holds %d files that could not be read, and %d finished replies that the database has not taken",
			dir, bad, kept)
	case kept > 0:
		d.warn("spool", "they are stored once a worker with this spool reaches the database", "%s holds %d finished replies that the database has not taken", dir, kept)
	default:
		d.ok("spool", "%s can be written and is empty", dir)
	}
}

// mostSpooled bounds the files of a spool that are counted.
const mostSpooled = 100_000

// spooled counts what waits in a spool, in which each worker has a folder, and what of it could not be read.
func spooled(dir string) (kept, bad int, err error) {
	seen := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if seen++; err != nil || seen > mostSpooled {
			return cmp.Or(err, fs.SkipAll)
		}
		switch filepath.Ext(path) {
		case ".json":
			kept++
		case ".bad":
			bad++
		}
		return nil
	})
	return kept, bad, err
}

// writable writes a file that is taken for none of the spool's.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, "doctor-*.tmp")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
