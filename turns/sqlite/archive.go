package sqlite

import (
	"context"
	"encoding/json"
	"errors"

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
		r := archiveReader{t, arg("key", key[:]), turns.Unended{}, record}
		var c turns.ArchivedConversation
		found, err := t.found(readArchivedConversation, []any{r.key}, cells(&c)...)
		switch {
		case err != nil:
			return err
		case !found:
			return turns.NotFound("conversation", "conversation_id")
		}
		c.Bury()
		if err := head(c); err != nil {
			return err
		}
		if c.DeletedAt.IsZero() {
			if err := errors.Join(r.defaults(), r.rows()); err != nil {
				return err
			}
		}
		return r.calls()
	})
}

// archiveReader reads the records of one conversation, in one snapshot.
type archiveReader struct {
	t       *tx
	key     any
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
	page AS (SELECT at FROM (SELECT at, sum(size) OVER (ORDER BY at) - size AS before FROM near) sized WHERE before < @bytes)
	SELECT ` + archivedRow + ` FROM page CROSS JOIN turns ON conversation_key = @key AND seq = at ORDER BY seq`

	readArchivedCalls = `SELECT ` + archivedCall + ` FROM provider_calls
	WHERE conversation_key = @key AND call_id > @after ORDER BY call_id LIMIT @limit`

	readArchivedCallsOf = `SELECT ` + archivedCall + ` FROM provider_calls
	WHERE conversation_key = @key AND reply_id = @reply ORDER BY number, epoch`
)

func (r archiveReader) defaults() error {
	for after := int32(0); ; {
		page, err := pageOf[turns.ArchivedDefaults](r.t, readArchivedDefaults, r.key, arg("after", after), arg("limit", archivePage))
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := r.record(turns.ArchivedRecord{Defaults: &page[i]}); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Version
	}
}

func (r archiveReader) rows() error {
	for after := int64(0); ; {
		page, err := pageOf[turns.ArchivedRow](r.t, readArchivedRows, r.key, arg("after", after), arg("limit", archivePage), arg("bytes", archiveBytes))
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			if err := r.row(&page[i]); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Seq
	}
}

func (r archiveReader) row(row *turns.ArchivedRow) error {
	unended := row.Status == turns.StatusInFlight || row.Status == turns.StatusHeld
	if unended {
		if err := r.end(row); err != nil {
			return err
		}
	}
	return r.record(turns.ArchivedRecord{Row: row, Unended: unended})
}

// end makes an ended reply of one that has not. Only one in flight has its log in chunks.
func (r archiveReader) end(row *turns.ArchivedRow) error {
	log, err := turns.DecodePieces([]byte(row.Content))
	if err == nil && row.Status == turns.StatusInFlight {
		log, err = r.t.archivedLog(r.key, row.ID)
	}
	if err != nil {
		return err
	}
	calls, err := pageOf[turns.ArchivedCall](r.t, readArchivedCallsOf, r.key, blob("reply", row.ID.UUID))
	if err != nil {
		return err
	}
	return r.unended.End(row, log, calls)
}

func (t *tx) archivedLog(key any, id turns.RowID) (log []turns.Piece, err error) {
	p := turns.LogPosition{}
	err = t.query(func(scan func(...any) error) error {
		var data []byte
		var starts uint32
		if err := scan(&starts, &data); err != nil {
			return err
		}
		chunk, err := turns.DecodePieces(data)
		log = append(log, chunk...)
		return err
	}, readChunks, key, blob("reply", id.UUID), arg("from", p.From), arg("upto", p.Until()))
	return log, err
}

func (r archiveReader) calls() error {
	after := arg("after", []byte{})
	for {
		page, err := pageOf[turns.ArchivedCall](r.t, readArchivedCalls, r.key, after, arg("limit", archivePage))
		if err != nil || len(page) == 0 {
			return err
		}
		for i := range page {
			r.unended.Close(&page[i])
			if err := r.record(turns.ArchivedRecord{Call: &page[i]}); err != nil {
				return err
			}
		}
		after = blob("after", page[len(page)-1].ID.UUID)
	}
}

// pageOf is all rows that a statement gives, as an archived type.
func pageOf[T any](t *tx, text string, args ...any) (list []T, err error) {
	err = t.query(func(scan func(...any) error) error {
		var one T
		err := scan(cells(&one)...)
		list = append(list, one)
		return err
	}, text, args...)
	return list, err
}
