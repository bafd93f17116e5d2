package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"github.com/turnd/turnd/turns"
)

// readers is the size of the pool of reading connections. Reads are short and run on the processor, so more would only
// hold more page caches.
const readers = 4

// Config says where the store is.
type Config struct {
	// Path is the database file. It is made, for this user alone, if it does not exist, in a directory that must.
	Path string
	// Migrate brings the schema up to date before anything else is done; nil leaves it as it is.
	Migrate func(ctx context.Context, db *sql.DB) error
	// Unsynced leaves commits to the operating system's cache: they survive the process, and not a loss of power. For
	// tests.
	Unsynced bool
	// Trace, if set, is told the text of each statement before it runs, with the context of who asked for it. It holds
	// parameters and never what they stand for. For tests.
	Trace func(ctx context.Context, statement string)
}

// Store is a turns.Store on one file. It is safe for concurrent use.
type Store struct {
	lock  *os.File
	write *pool
	read  *pool
	// writers take turns with write.
	writers *writers
	opened  time.Time
	closed  atomic.Bool
}

var _ turns.Store = (*Store)(nil)

// Open opens the file, which no other process and no other Store may have open: that is ErrInUse. All workers it finds
// are buried.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open sqlite store %s: %w", cfg.Path, err)
	}
	return s, nil
}

func open(ctx context.Context, cfg Config) (_ *Store, err error) {
	path, err := resolve(cfg.Path)
	if err != nil {
		return nil, err
	}
	s := &Store{opened: time.Now()}
	s.writers = s.newWriters()
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if s.lock, err = lockFile(path); err != nil {
		return nil, err
	}
	if err = create(path); err != nil {
		return nil, err
	}
	if cfg.Migrate != nil {
		if err := migrate(ctx, path, cfg); err != nil {
			return nil, err
		}
	}
	if s.write, err = newPool(ctx, dsn(path, cfg.Unsynced), 1, cfg.Trace); err != nil {
		return nil, err
	}
	if s.read, err = newPool(ctx, dsn(path, cfg.Unsynced)+"&_pragma=query_only(1)", readers, cfg.Trace); err != nil {
		return nil, err
	}
	return s, s.buryAll(ctx)
}

// migrate runs the migrations on a pool of their own, which may open as many connections as the migrator likes.
func migrate(ctx context.Context, path string, cfg Config) error {
	db, err := sql.Open("sqlite", dsn(path, cfg.Unsynced))
	if err != nil {
		return err
	}
	return errors.Join(cfg.Migrate(ctx, db), db.Close())
}

// dsn names the file with the settings that each connection must have, so that none is opened without them. FULL costs
// an fsync for each commit: a claim that was answered and then lost to a power cut would be paid for twice, and a reply
// that was answered and lost would be paid for and gone.
func dsn(path string, unsynced bool) string {
	synchronous := "FULL"
	if unsynced {
		synchronous = "OFF"
	}
	settings := url.Values{"_pragma": {
		"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(" + synchronous + ")", "foreign_keys(1)", "temp_store(MEMORY)",
	}}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String()
}

// Close releases the file. Calls that come later fail with CodeStoreUnavailable; closing again is no error.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.writers != nil {
		s.writers.Close()
	}
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.close())
	}
	if s.write != nil {
		errs = append(errs, s.write.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// Server is this process: the engine lives in it.
func (s *Store) Server(ctx context.Context) (turns.ServerLife, error) {
	return turns.ServerLife{Name: "this process", Uptime: time.Since(s.opened)}, s.mapError(ctx, "server", ctx.Err())
}
