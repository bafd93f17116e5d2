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
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return s.archiveTx(ctx, "read a conversation for an archive", snapshot, func(t archiveTx) error {
		pages := archivePages{ctx, t, zeronull.UUID(key)}
		found, err := pageOf[turns.ArchivedConversation](pages, readArchivedConversation, pgx.NamedArgs{})
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return theirs{turns.NotFound("conversation", "conversation_id")}
		}
		return turns.ReadArchive(pages, found[0],
			func(c turns.ArchivedConversation) error { return asTheirs(head(c)) },
			func(r turns.ArchivedRecord) error { return asTheirs(record(r)) })
	})
}

// archivePages implements turns.ArchivePages.
type archivePages struct {
	ctx context.Context
	t   archiveTx
	key zeronull.UUID
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

	readArchivedTakeovers = `SELECT ` + archivedTakeover + ` FROM reply_takeovers
	WHERE conversation_key = @key AND (reply_id, epoch) > (@after, @epoch) ORDER BY reply_id, epoch LIMIT @limit`

	readArchivedRepeats = `SELECT ` + archivedRepeats + ` FROM turn_repeats
	WHERE conversation_key = @key AND (turn_id, layer) > (@after, @layer) ORDER BY turn_id, layer LIMIT @limit`

	readArchivedCallsOf = `SELECT ` + archivedCall + ` FROM provider_calls
	WHERE conversation_key = @key AND reply_id = @reply ORDER BY number, epoch`

	readArchivedLog = `SELECT pieces FROM reply_chunks WHERE conversation_key = @key AND reply_id = @reply ORDER BY start_offset`
)

func (p archivePages) DefaultsAfter(version int32) ([]turns.ArchivedDefaults, error) {
	return pageOf[turns.ArchivedDefaults](p, readArchivedDefaults, pgx.NamedArgs{"after": version, "limit": archivePage})
}

func (p archivePages) RowsAfter(seq int64) ([]turns.ArchivedRow, error) {
	return pageOf[turns.ArchivedRow](p, readArchivedRows, pgx.NamedArgs{"after": seq, "limit": archivePage, "bytes": archiveBytes})
}

func (p archivePages) CallsAfter(id turns.CallID) ([]turns.ArchivedCall, error) {
	return pageOf[turns.ArchivedCall](p, readArchivedCalls, pgx.NamedArgs{"after": [16]byte(id.UUID), "limit": archivePage})
}

func (p archivePages) TakeoversAfter(reply turns.ReplyID, epoch int64) ([]turns.ArchivedTakeover, error) {
	return pageOf[turns.ArchivedTakeover](p, readArchivedTakeovers, pgx.NamedArgs{"after": [16]byte(reply.UUID), "epoch": epoch, "limit": archivePage})
}

func (p archivePages) RepeatsAfter(turn turns.TurnID, layer turns.Layer) ([]turns.ArchivedRepeats, error) {
	return pageOf[turns.ArchivedRepeats](p, readArchivedRepeats, pgx.NamedArgs{"after": [16]byte(turn.UUID), "layer": string(layer), "limit": archivePage})
}

func (p archivePages) CallsOf(reply *turns.ArchivedRow) ([]turns.ArchivedCall, error) {
	return pageOf[turns.ArchivedCall](p, readArchivedCallsOf, pgx.NamedArgs{"reply": zeronull.UUID(reply.ID.UUID)})
}

// LogOf reads the chunks of a reply without content; any other has its log there.
func (p archivePages) LogOf(reply *turns.ArchivedRow) ([]turns.Piece, error) {
	var chunks []string
	if reply.Content == "" {
		var err error
		if chunks, err = readPage(p, readArchivedLog, pgx.NamedArgs{"reply": zeronull.UUID(reply.ID.UUID)}, pgx.RowTo[string]); err != nil {
			return nil, err
		}
	}
	log, err := decodeLog(string(reply.Content), chunks)
	return log, asTheirs(err)
}

// pageOf is all rows that a statement gives of the conversation, as an archived type.
func pageOf[T any](p archivePages, sql string, args pgx.NamedArgs) ([]T, error) {
	return readPage(p, sql, args, scanArchived[T])
}

// readPage is all rows that a statement gives of the conversation.
func readPage[T any](p archivePages, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.t.limits.statement)
	defer cancel()
	args["key"] = p.key
	return all(ctx, p.t, sql, args, scan)
}
