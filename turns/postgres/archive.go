package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// Sizes of the pages in which a conversation is read: rows up to so many bytes of content and the one that goes beyond.
const (
	archivePage  = 64
	archiveBytes = 4 << 20
)

var _ turns.Archive = (*Store)(nil)

const archiveNames = `
SELECT conversation_key, tenant, conversation_id, labels, deleted_at IS NOT NULL AS deleted, update_time FROM conversations
WHERE conversation_key > @after ORDER BY conversation_key LIMIT @limit`

type nameRow struct {
	ConversationKey [16]byte
	Tenant          string
	ConversationID  [16]byte
	Labels          map[string]string
	Deleted         bool
	UpdateTime      time.Time
}

// ArchiveNames implements turns.ArchiveReader.
func (s *Store) ArchiveNames(ctx context.Context, after turns.ConversationKey, limit int) ([]turns.ArchiveName, error) {
	rows, err := collect(ctx, s.pool, archiveNames, pgx.NamedArgs{"after": [16]byte(after), "limit": limit},
		pgx.RowToStructByName[nameRow])
	if err != nil {
		return nil, mapRead("list conversations for an archive", err)
	}
	return column(rows, func(r *nameRow) turns.ArchiveName {
		return turns.ArchiveName{Key: r.ConversationKey, Tenant: turns.Tenant(r.Tenant), ID: turns.ConversationID{UUID: r.ConversationID},
			Labels: r.Labels, Deleted: r.Deleted, UpdateTime: r.UpdateTime.UTC()}
	}), nil
}

// ReadArchived implements turns.ArchiveReader.
func (s *Store) ReadArchived(ctx context.Context, key turns.ConversationKey, head func(turns.ArchivedConversation) error,
	record func(turns.ArchivedRecord) error) error {
	r := archiveReader{key: zeronull.UUID(key), unended: turns.Unended{}, record: record}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return s.archiveTx(ctx, "read a conversation for an archive", snapshot, func(t archiveTx) error {
		r.t = t
		found, err := pageOf[turns.ArchivedConversation](ctx, t, readArchivedConversation, pgx.NamedArgs{"key": r.key})
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return theirs{turns.NotFound("conversation", "conversation_id")}
		}
		c := found[0]
		c.Bury()
		if err := head(c); err != nil {
			return theirs{err}
		}
		if c.DeletedAt.IsZero() {
			if err := r.defaults(ctx); err != nil {
				return err
			}
			if err := r.rows(ctx); err != nil {
				return err
			}
		}
		return r.calls(ctx)
	})
}

// archiveReader reads the records of one conversation, in one snapshot.
type archiveReader struct {
	t       archiveTx
	key     zeronull.UUID
	unended turns.Unended
	record  func(turns.ArchivedRecord) error
}

const (
	readArchivedConversation = `SELECT ` + archivedConversation + ` FROM conversations WHERE conversation_key = @key`

	readArchivedDefaults = `SELECT ` + archivedDefaults + ` FROM conversation_defaults
	WHERE conversation_key = @key AND version > @after ORDER BY version LIMIT @limit`

	// The sizes come first, so that a page of large contents is never read whole.
	readArchivedRows = `WITH near AS (SELECT seq AS at, octet_length(content) AS size FROM turns
		WHERE conversation_key = @key AND seq > @after ORDER BY seq LIMIT @limit),
	page AS (SELECT at FROM (SELECT at, sum(size) OVER (ORDER BY at) - size AS before FROM near) sized WHERE before < @bytes::bigint)
	SELECT ` + archivedRow + ` FROM page JOIN turns ON conversation_key = @key AND seq = at ORDER BY seq`

	readArchivedCalls = `SELECT ` + archivedCall + ` FROM provider_calls
	WHERE conversation_key = @key AND call_id > @after ORDER BY call_id LIMIT @limit`

	readArchivedCallsOf = `SELECT ` + archivedCall + ` FROM provider_calls
	WHERE conversation_key = @key AND reply_id = @reply ORDER BY number, epoch`

	readArchivedLog = `SELECT pieces FROM reply_chunks WHERE conversation_key = @key AND reply_id = @reply ORDER BY start_offset`
)

func (r archiveReader) defaults(ctx context.Context) error {
	args := pgx.NamedArgs{"key": r.key, "after": int32(0), "limit": archivePage}
	for {
		page, err := pageOf[turns.ArchivedDefaults](ctx, r.t, readArchivedDefaults, args)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := r.record(turns.ArchivedRecord{Defaults: &page[i]}); err != nil {
				return theirs{err}
			}
		}
		args["after"] = page[len(page)-1].Version
	}
}

func (r archiveReader) rows(ctx context.Context) error {
	args := pgx.NamedArgs{"key": r.key, "after": int64(0), "limit": archivePage, "bytes": archiveBytes}
	for {
		page, err := pageOf[turns.ArchivedRow](ctx, r.t, readArchivedRows, args)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := r.row(ctx, &page[i]); err != nil {
				return err
			}
		}
		args["after"] = page[len(page)-1].Seq
	}
}

func (r archiveReader) row(ctx context.Context, row *turns.ArchivedRow) error {
	unended := row.Status == turns.StatusInFlight || row.Status == turns.StatusHeld
	if unended {
		if err := r.end(ctx, row); err != nil {
			return err
		}
	}
	if err := r.record(turns.ArchivedRecord{Row: row, Unended: unended}); err != nil {
		return theirs{err}
	}
	return nil
}

// end makes an ended reply of one that has not. Only one without content has its log in chunks.
func (r archiveReader) end(ctx context.Context, row *turns.ArchivedRow) error {
	args := pgx.NamedArgs{"key": r.key, "reply": zeronull.UUID(row.ID.UUID)}
	var chunks []string
	var err error
	if row.Content == "" {
		if chunks, err = r.t.texts(ctx, readArchivedLog, args); err != nil {
			return err
		}
	}
	log, err := decodeLog(string(row.Content), chunks)
	if err != nil {
		return theirs{err}
	}
	calls, err := pageOf[turns.ArchivedCall](ctx, r.t, readArchivedCallsOf, args)
	if err != nil {
		return err
	}
	if err := r.unended.End(row, log, calls); err != nil {
		return theirs{err}
	}
	return nil
}

func (r archiveReader) calls(ctx context.Context) error {
	args := pgx.NamedArgs{"key": r.key, "after": [16]byte{}, "limit": archivePage}
	for {
		page, err := pageOf[turns.ArchivedCall](ctx, r.t, readArchivedCalls, args)
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			r.unended.Close(&page[i])
			if err := r.record(turns.ArchivedRecord{Call: &page[i]}); err != nil {
				return theirs{err}
			}
		}
		args["after"] = [16]byte(page[len(page)-1].ID.UUID)
	}
}
