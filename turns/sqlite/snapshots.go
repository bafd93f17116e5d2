package sqlite

import (
	"context"
	"net/url"

	"github.com/turnd/turnd/turns"
)

// Snapshots reads a database file that another process may be serving.
type Snapshots struct{ store *Store }

var _ turns.ArchiveReader = (*Snapshots)(nil)

// OpenSnapshots opens a file that exists, for reading alone. It takes no lock.
func OpenSnapshots(ctx context.Context, path string) (*Snapshots, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	settings := url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(5000)", "temp_store(MEMORY)", "query_only(1)"}}
	read, err := newPool(ctx, (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String(), 1, nil)
	if err != nil {
		return nil, err
	}
	return &Snapshots{&Store{read: read}}, nil
}

// ArchiveNames implements turns.ArchiveReader.
func (s *Snapshots) ArchiveNames(ctx context.Context, after turns.ConversationKey, limit int) ([]turns.ArchiveName, error) {
	return s.store.ArchiveNames(ctx, after, limit)
}

// ReadArchived implements turns.ArchiveReader.
func (s *Snapshots) ReadArchived(ctx context.Context, key turns.ConversationKey, head func(turns.ArchivedConversation) error,
	record func(turns.ArchivedRecord) error) error {
	return s.store.ReadArchived(ctx, key, head, record)
}

// Close closes the file.
func (s *Snapshots) Close() error { return s.store.Close() }

// CheckSchema is that of Store.
func (s *Snapshots) CheckSchema(ctx context.Context) error { return s.store.CheckSchema(ctx) }

// ListWorkers is that of turns.Leases.
func (s *Snapshots) ListWorkers(ctx context.Context) ([]turns.WorkerView, error) {
	return s.store.ListWorkers(ctx)
}

// Backlog is that of turns.Gauge.
func (s *Snapshots) Backlog(ctx context.Context, most int) (turns.Backlog, error) {
	return s.store.Backlog(ctx, most)
}
