package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// ReadLogs implements turns.Reader. Rows and chunks are of one snapshot, so that a reply that ends meanwhile is seen
// either with its chunks or with its content. Chunks are read until one starts Max bytes after the offset.
func (s *Store) ReadLogs(ctx context.Context, positions []turns.LogPosition) ([]turns.LogView, error) {
	views := make([]turns.LogView, len(positions))
	err := s.readTx(ctx, "read logs", func(t *tx) error {
		for i, p := range positions {
			view, err := t.view(p)
			if err != nil && !isUnreadable(err) {
				return err
			}
			if err == nil {
				views[i] = view
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return views, nil
}

func (t *tx) view(p turns.LogPosition) (view turns.LogView, err error) {
	r, found, err := t.reply(p.Key, p.Reply)
	if err != nil || !found {
		return view, err
	}
	view.Reply = r.reply
	switch {
	case p.From > r.reply.Length:
		err = asUnreadable(turns.ErrBadOffset)
	case r.reply.Status == turns.StatusInFlight:
		view.From, view.Pieces, err = t.chunks(p)
	default:
		view.From, view.Pieces, err = cut(r.content, p.From, p.Max)
	}
	return view, err
}

// The chunk that holds the offset is the last that starts at or before it.
const readChunks = `SELECT start_offset, pieces FROM reply_chunks
	WHERE conversation_key = @key AND reply_id = @reply AND start_offset < @upto AND end_offset > @from
		AND start_offset >= COALESCE((SELECT MAX(start_offset) FROM reply_chunks
			WHERE conversation_key = @key AND reply_id = @reply AND start_offset <= @from), 0)
	ORDER BY start_offset`

// chunks is the stored log of a reply in flight from the chunk on that holds the offset, and where that begins.
func (t *tx) chunks(p turns.LogPosition) (from uint32, pieces []turns.Piece, err error) {
	from = p.From
	err = t.query(func(scan func(...any) error) error {
		var data []byte
		var starts uint32
		if err := scan(&starts, &data); err != nil {
			return err
		}
		from = min(from, starts)
		chunk, err := turns.DecodePieces(data)
		pieces = append(pieces, chunk...)
		return asUnreadable(err)
	}, readChunks, arg("key", p.Key[:]), blob("reply", p.Reply.UUID), arg("from", p.From), arg("upto", p.Until()))
	return from, pieces, err
}

// cut is stored content from an offset on, or from the start of the rune that the offset lies in.
func cut(content []byte, offset uint32, limit int) (uint32, []turns.Piece, error) {
	pieces, err := turns.DecodePieces(content)
	if err != nil {
		return 0, nil, asUnreadable(err)
	}
	log, err := turns.LogOf(pieces)
	if err != nil {
		return 0, nil, asUnreadable(err)
	}
	from, pieces, err := log.FromRune(offset, limit)
	return from, pieces, asUnreadable(err)
}
