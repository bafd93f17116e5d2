package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// Row and chunks come from one snapshot, so that the length in the row is that of the chunks. The chunk that holds the
// offset is the last that starts at or before it; both bounds of the chunks are known before they are walked.
const readLogs = `
WITH item AS (
	SELECT * FROM unnest(@n::int[], @key::uuid[], @reply::uuid[], @from::bigint[], @upto::bigint[])
	AS i (n, conversation_key, reply_id, from_offset, upto)
)
SELECT i.n, i.from_offset, b.starts,` + rowColumns + `, t.content, CASE WHEN t.content = '' THEN ARRAY(
	SELECT k.pieces FROM reply_chunks k
	WHERE k.conversation_key = i.conversation_key AND k.reply_id = i.reply_id AND k.start_offset >= b.starts
		AND k.start_offset < i.upto
	ORDER BY k.start_offset) END AS chunks
FROM item i
CROSS JOIN LATERAL (
	SELECT * FROM turns r
	WHERE r.conversation_key = i.conversation_key AND r.id = i.reply_id AND r.role = 'assistant'
	LIMIT 1) t
CROSS JOIN LATERAL (
	SELECT COALESCE((SELECT CASE WHEN k.end_offset > i.from_offset THEN k.start_offset END FROM reply_chunks k
		WHERE t.content = '' AND k.conversation_key = i.conversation_key AND k.reply_id = i.reply_id
			AND k.start_offset <= i.from_offset
		ORDER BY k.start_offset DESC LIMIT 1), i.from_offset) AS starts) b
CROSS JOIN LATERAL (
	SELECT * FROM conversations c WHERE c.conversation_key = i.conversation_key AND c.deleted_at IS NULL
	LIMIT 1) c
LEFT JOIN` + ownerOf

type logRow struct {
	N          int
	FromOffset int64
	Starts     int64
	turnRow
}

// ReadLogs implements turns.Reader. Chunks are read until one starts Max bytes after the offset.
func (s *Store) ReadLogs(ctx context.Context, positions []turns.LogPosition) ([]turns.LogView, error) {
	if len(positions) == 0 {
		return nil, nil
	}
	rows, err := collect(ctx, s.pool, readLogs, pgx.NamedArgs{
		"n":     places(positions),
		"key":   column(positions, func(p *turns.LogPosition) zeronull.UUID { return zeronull.UUID(p.Key) }),
		"reply": column(positions, func(p *turns.LogPosition) zeronull.UUID { return zeronull.UUID(p.Reply.UUID) }),
		"from":  column(positions, func(p *turns.LogPosition) int64 { return int64(p.From) }),
		"upto":  column(positions, func(p *turns.LogPosition) int64 { return p.Until() }),
	}, pgx.RowToStructByName[logRow])
	if err != nil {
		return nil, mapRead("read logs", err)
	}
	views := make([]turns.LogView, len(positions))
	for i := range rows {
		if view, err := rows[i].view(positions[rows[i].N].Max); err == nil {
			views[rows[i].N] = view
		}
	}
	return views, nil
}

// view splits the log from the row. Of a reply in flight chunks were read; the whole content of one that has ended is cut
// here.
func (r *logRow) view(limit int) (turns.LogView, error) {
	if r.FromOffset > int64(r.LogLen) {
		return turns.LogView{}, turns.ErrBadOffset
	}
	reply, err := r.reply()
	if err != nil {
		return turns.LogView{}, err
	}
	view := turns.LogView{From: uint32(r.Starts), Pieces: reply.Content}
	if reply.Content = nil; r.Content != "" {
		log, err := turns.LogOf(view.Pieces)
		if err != nil {
			return turns.LogView{}, err
		}
		if view.From, view.Pieces, err = log.FromRune(uint32(r.FromOffset), limit); err != nil {
			return turns.LogView{}, err
		}
	}
	view.Reply = *reply
	return view, nil
}
