package sqlite

import (
	"context"
	"encoding/json"

	"github.com/turnd/turnd/turns"
)

// Sizes of the pages in which a conversation is read: rows up to so many bytes of content and the one that goes beyond.
const (
	archivePage  = 64
	archiveBytes = 4 << 20
)

var _ turns.Archive = (*Store)(nil)

const archiveNames = `SELECT conversation_key, tenant, conversation_id, labels, deleted_at IS NOT NULL, update_time FROM conversations
	WHERE conversation_key > @after ORDER BY conversation_key LIMIT @limit`

// ArchiveNames implements turns.ArchiveReader.
func (s *Store) ArchiveNames(ctx context.Context, after turns.ConversationKey, limit int) (names []turns.ArchiveName, err error) {
	err = s.readTx(ctx, "list conversations for an archive", func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			var n turns.ArchiveName
			var key, labels []byte
			var updated int64
			if err := scan(&key, &n.Tenant, &n.ID.UUID, &labels, &n.Deleted, &updated); err != nil {
				return err
			}
			copy(n.Key[:], key)
			n.UpdateTime = timeOf(updated)
			err := json.Unmarshal(labels, &n.Labels)
			names = append(names, n)
			return err
		}, archiveNames, arg("after", after[:]), arg("limit", limit))
	})
	if err != nil {
		return nil, err
	}
	return names, nil
}

// ReadArchived implements turns.ArchiveReader.
func (s *Store) ReadArchived(ctx context.Context, key turns.ConversationKey, head func(turns.ArchivedConversation) error,
	record func(turns.ArchivedRecord) error) error {
	return s.readTx(ctx, "read a conversation for an archive", func(t *tx) error {
		var c turns.ArchivedConversation
		found, err := t.found(readArchivedConversation, []any{arg("key", key[:])}, cells(&c)...)
		switch {
		case err != nil:
			return err
		case !found:
			return turns.NotFound("conversation", "conversation_id")
		}
		return turns.ReadArchive(archivePages{t, key}, c, head, record)
	})
}

// archivePages implements turns.ArchivePages.
type archivePages struct {
	t   *tx
	key turns.ConversationKey
}

const (
	readArchivedConversation = `SELECT ` + archivedConversation + ` FROM conversations WHERE conversation_key = @key`

	readArchivedDefaults = `SELECT ` + archivedDefaults + ` FROM conversation_defaults
	WHERE conversation_key = @key AND version > @after ORDER BY version LIMIT @limit`

	// The sizes come first, so that a page of large contents is never read whole.
	readArchivedRows = `WITH near AS (SELECT seq AS at, octet_length(content) AS size FROM turns
		WHERE conversation_key = @key AND seq > @after ORDER BY seq LIMIT @limit),
	page AS (SELECT at FROM (SELECT at, sum(size) OVER (ORDER BY at) - size AS before FROM near) sized WHERE before < @bytes)
	SELECT ` + archivedRow + ` FROM page CROSS JOIN turns ON conversation_key = @key AND seq = at ORDER BY seq`

	readArchivedCalls = `SELECT ` + archivedCall + ` FROM provider_calls
	WHERE conversation_key = @key AND call_id > @after ORDER BY call_id LIMIT @limit`

	readArchivedTakeovers = `SELECT ` + archivedTakeover + ` FROM reply_takeovers
	WHERE conversation_key = @key AND (reply_id, epoch) > (@after, @epoch) ORDER BY reply_id, epoch LIMIT @limit`

	readArchivedRepeats = `SELECT ` + archivedRepeats + ` FROM turn_repeats
	WHERE conversation_key = @key AND (turn_id, layer) > (@after, @layer) ORDER BY turn_id, layer LIMIT @limit`

	readArchivedCallsOf = `SELECT ` + archivedCall + ` FROM provider_calls
	WHERE conversation_key = @key AND reply_id = @reply ORDER BY number, epoch`
)

func (p archivePages) DefaultsAfter(version int32) ([]turns.ArchivedDefaults, error) {
	return pageOf[turns.ArchivedDefaults](p, readArchivedDefaults, arg("after", version), arg("limit", archivePage))
}

func (p archivePages) RowsAfter(seq int64) ([]turns.ArchivedRow, error) {
	return pageOf[turns.ArchivedRow](p, readArchivedRows, arg("after", seq), arg("limit", archivePage), arg("bytes", archiveBytes))
}

func (p archivePages) CallsAfter(id turns.CallID) ([]turns.ArchivedCall, error) {
	return pageOf[turns.ArchivedCall](p, readArchivedCalls, arg("after", id.UUID[:]), arg("limit", archivePage))
}

func (p archivePages) TakeoversAfter(reply turns.ReplyID, epoch int64) ([]turns.ArchivedTakeover, error) {
	return pageOf[turns.ArchivedTakeover](p, readArchivedTakeovers, arg("after", reply.UUID[:]), arg("epoch", epoch), arg("limit", archivePage))
}

func (p archivePages) RepeatsAfter(turn turns.TurnID, layer turns.Layer) ([]turns.ArchivedRepeats, error) {
	return pageOf[turns.ArchivedRepeats](p, readArchivedRepeats, arg("after", turn.UUID[:]), arg("layer", string(layer)), arg("limit", archivePage))
}

func (p archivePages) CallsOf(reply *turns.ArchivedRow) ([]turns.ArchivedCall, error) {
	return pageOf[turns.ArchivedCall](p, readArchivedCallsOf, blob("reply", reply.ID.UUID))
}

// LogOf reads the chunks of a reply in flight; any other has its log in its content.
func (p archivePages) LogOf(reply *turns.ArchivedRow) (log []turns.Piece, err error) {
	if reply.Status != turns.StatusInFlight {
		return turns.DecodePieces([]byte(reply.Content))
	}
	_, log, err = p.t.chunks(turns.LogPosition{Key: p.key, Reply: turns.ReplyID(reply.ID)})
	return log, err
}

// pageOf is all rows that a statement gives of the conversation, as an archived type.
func pageOf[T any](p archivePages, text string, args ...any) (list []T, err error) {
	err = p.t.query(func(scan func(...any) error) error {
		var one T
		err := scan(cells(&one)...)
		list = append(list, one)
		return err
	}, text, append(args, arg("key", p.key[:]))...)
	return list, err
}
