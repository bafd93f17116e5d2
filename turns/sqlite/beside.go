package sqlite

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/turnd/turnd/turns/access"
)

// Beside keeps keys and suspensions in a database file that another process may be serving. It takes no lock and touches no
// other table: what it writes is a row at a time, for which SQLite itself has the two processes take turns, and none of it
// is anything that a worker keeps in its memory.
type Beside struct{ access.Store }

// OpenBeside opens a file that exists and has this build's schema.
func OpenBeside(ctx context.Context, path string) (*Beside, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	settings := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)", "synchronous(FULL)", "temp_store(MEMORY)"}}
	dsn := (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String()
	s := &Store{opened: time.Now()}
	s.writers = s.newWriters()
	if s.write, err = newPool(ctx, dsn, 1, nil); err != nil {
		return nil, err
	}
	if s.read, err = newPool(ctx, dsn+"&_pragma=query_only(1)", 1, nil); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Beside{s}, nil
}

// Close closes the file.
func (b *Beside) Close() error { return b.Store.(*Store).Close() }
