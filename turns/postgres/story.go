package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/turnd/turnd/turns"
)

const (
	noContent = `, NULL::text AS content, NULL::text[] AS chunks`

	storyTurn = `
SELECT` + rowColumns + noContent + `, t.waiting <> '' AS waits
FROM turns named
CROSS JOIN LATERAL (
	SELECT * FROM turns u
	WHERE u.conversation_key = named.conversation_key AND u.id = COALESCE(named.responds_to, named.id) AND u.role = 'user'
	LIMIT 1) t
JOIN conversations c ON c.conversation_key = t.conversation_key
LEFT JOIN` + ownerOf + `
WHERE named.conversation_key = @key AND named.id = @row AND NOT t.erased AND c.deleted_at IS NULL`

	storyReplies = `
SELECT` + rowColumns + noContent + `, COALESCE(n.name, '') AS owner_name, t.lookups, t.next_lookup_at, t.settled_at
FROM` + rowSource + `
LEFT JOIN workers n ON n.worker_id = t.owner
WHERE t.conversation_key = @key AND t.responds_to = @turn AND t.role = 'assistant'
ORDER BY t.attempt DESC LIMIT @limit`

	storyTakeovers = `
SELECT o.reply_id, o.epoch, o.way, o.from_worker, o.from_name, o.to_worker, o.to_name, o.create_time
FROM unnest(@replies::uuid[]) AS r (id)
JOIN reply_takeovers o ON o.conversation_key = @key AND o.reply_id = r.id
ORDER BY o.reply_id, o.epoch`

	storyCalls = callColumns + `
FROM unnest(@replies::uuid[]) AS r (id)
JOIN provider_calls p ON p.conversation_key = @key AND p.reply_id = r.id
ORDER BY p.create_time DESC, p.call_id DESC LIMIT @limit`

	storyRepeats = `
SELECT layer, count, first_time, last_time FROM turn_repeats WHERE conversation_key = @key AND turn_id = @turn ORDER BY layer`
)

type (
	storyTurnRow struct {
		turnRow
		Waits bool
	}
	storyReplyRow struct {
		turnRow
		OwnerName    string
		Lookups      int
		NextLookupAt zeronull.Timestamptz
		SettledAt    zeronull.Timestamptz
	}
	takeoverRow struct {
		ReplyID              [16]byte
		Epoch                int64
		Way                  turns.TakeoverWay
		FromWorker, ToWorker [16]byte
		FromName, ToName     string
		CreateTime           time.Time
	}
	repeatRow struct {
		Layer               turns.Layer
		Count               int64
		FirstTime, LastTime time.Time
	}
)

// ReadStory implements turns.Stories.
func (s *Store) ReadStory(ctx context.Context, q turns.StoryQuery) (turns.Story, error) {
	var story turns.Story
	var found bool
	err := s.pool.repeat(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, conn, snapshot, func(tx pgx.Tx) (err error) {
			story = turns.Story{}
			found, err = readStory(ctx, tx, q, &story)
			return err
		})
	})
	switch {
	case err != nil:
		return turns.Story{}, mapRead("read the story of a turn", err)
	case !found:
		return turns.Story{}, s.whyMissing(ctx, q.Key, q.Row, "turn")
	}
	return story, nil
}

func readStory(ctx context.Context, tx pgx.Tx, q turns.StoryQuery, story *turns.Story) (found bool, err error) {
	args := pgx.NamedArgs{"key": zeronull.UUID(q.Key), "row": zeronull.UUID(q.Row.UUID), "limit": q.Replies + 1}
	heads, err := all(ctx, tx, storyTurn, args, pgx.RowToStructByName[storyTurnRow])
	if err != nil || len(heads) == 0 {
		return false, err
	}
	head := &heads[0]
	head.Options = ""
	turn, err := head.userTurnHead()
	if err != nil {
		return false, err
	}
	story.Turn, story.Waits = *turn, head.Waits
	args["turn"] = zeronull.UUID(turn.ID.UUID)
	replies, err := all(ctx, tx, storyReplies, args, pgx.RowToStructByName[storyReplyRow])
	if err != nil {
		return false, err
	}
	replies, story.Truncated = newest(replies, q.Replies)
	for i := range replies {
		reply, err := replies[i].storyReply()
		if err != nil {
			return false, err
		}
		story.Replies = append(story.Replies, reply)
	}
	return true, readStoryOfReplies(ctx, tx, q, args, story)
}

// newest puts rows that were read from the newest on into their order, without those beyond a limit.
func newest[T any](rows []T, limit int) (kept []T, cut bool) {
	cut = len(rows) > limit
	rows = rows[:min(len(rows), limit)]
	slices.Reverse(rows)
	return rows, cut
}

func (r *storyReplyRow) storyReply() (turns.StoryReply, error) {
	r.Options = ""
	reply, err := r.reply()
	if err != nil {
		return turns.StoryReply{}, fmt.Errorf("read a reply's row: %w", err)
	}
	return turns.StoryReply{Reply: *reply, OwnerName: r.OwnerName, Lookups: r.Lookups, NextLookup: utc(r.NextLookupAt), SettleTime: utc(r.SettledAt)}, nil
}

func readStoryOfReplies(ctx context.Context, tx pgx.Tx, q turns.StoryQuery, args pgx.NamedArgs, story *turns.Story) error {
	args["replies"] = column(story.Replies, func(r *turns.StoryReply) zeronull.UUID { return zeronull.UUID(r.ID.UUID) })
	args["limit"] = q.Calls + 1
	takeovers, err := all(ctx, tx, storyTakeovers, args, pgx.RowToStructByName[takeoverRow])
	if err != nil {
		return err
	}
	story.Takeovers = column(takeovers, (*takeoverRow).takeover)
	calls, err := all(ctx, tx, storyCalls, args, pgx.RowToStructByName[listedRow])
	if err != nil {
		return err
	}
	calls, cut := newest(calls, q.Calls)
	story.Calls, story.Truncated = column(calls, (*listedRow).call), story.Truncated || cut
	repeats, err := all(ctx, tx, storyRepeats, args, pgx.RowToStructByName[repeatRow])
	if err != nil {
		return err
	}
	story.Repeats = column(repeats, func(r *repeatRow) turns.Repeats {
		return turns.Repeats{Key: q.Key, Turn: story.Turn.ID, Layer: r.Layer, Count: r.Count, FirstTime: r.FirstTime.UTC(), LastTime: r.LastTime.UTC()}
	})
	return nil
}

func (r *takeoverRow) takeover() turns.ReplyTakeover {
	worker := func(id [16]byte, name string) turns.Worker {
		return turns.Worker{ID: turns.WorkerID{UUID: uuid.UUID(id)}, Name: name}
	}
	return turns.ReplyTakeover{Reply: turns.ReplyID{UUID: r.ReplyID}, Epoch: r.Epoch, Way: r.Way,
		From: worker(r.FromWorker, r.FromName), To: worker(r.ToWorker, r.ToName), Time: r.CreateTime.UTC()}
}

// Rows are locked in the order of their keys, so that two workers that add at once don't wait for each other in a ring.
const addRepeats = `
INSERT INTO turn_repeats (conversation_key, turn_id, layer, tenant, conversation_id, count, first_time, last_time)
SELECT c.conversation_key, i.turn_id, i.layer, c.tenant, c.conversation_id, i.count,
	now() - i.first_age * interval '1 microsecond', now() - i.last_age * interval '1 microsecond'
FROM unnest(@key::uuid[], @turn::uuid[], @layer::text[], @count::bigint[], @first::bigint[], @last::bigint[])
	AS i (conversation_key, turn_id, layer, count, first_age, last_age)
JOIN conversations c ON c.conversation_key = i.conversation_key
ORDER BY i.conversation_key, i.turn_id, i.layer
ON CONFLICT (conversation_key, turn_id, layer) DO UPDATE SET count = turn_repeats.count + EXCLUDED.count,
	first_time = LEAST(turn_repeats.first_time, EXCLUDED.first_time), last_time = GREATEST(turn_repeats.last_time, EXCLUDED.last_time)`

// AddRepeats implements turns.Stories. No two of one call may be of the same turn and layer.
func (s *Store) AddRepeats(ctx context.Context, repeats []turns.Repeats) error {
	if len(repeats) == 0 {
		return nil
	}
	_, err := exec(ctx, s.pool, addRepeats, repeatArgs(repeats))
	return mapWrite("add repeated deliveries", err)
}

func repeatArgs(repeats []turns.Repeats) pgx.NamedArgs {
	return pgx.NamedArgs{
		"key":   column(repeats, func(r *turns.Repeats) zeronull.UUID { return zeronull.UUID(r.Key) }),
		"turn":  column(repeats, func(r *turns.Repeats) zeronull.UUID { return zeronull.UUID(r.Turn.UUID) }),
		"layer": column(repeats, func(r *turns.Repeats) string { return string(r.Layer) }),
		"count": column(repeats, func(r *turns.Repeats) int64 { return r.Count }),
		"first": column(repeats, func(r *turns.Repeats) int64 { return r.FirstAge.Microseconds() }),
		"last":  column(repeats, func(r *turns.Repeats) int64 { return r.LastAge.Microseconds() }),
	}
}

const (
	repeatsBy = `
SELECT r.layer, sum(r.count)::bigint AS count FROM turn_repeats r
WHERE r.tenant = @tenant AND r.first_time >= @from AND r.first_time < COALESCE(@before::timestamptz, 'infinity')
	AND (@turn::uuid IS NULL OR r.turn_id = @turn::uuid)`

	sumRepeats = repeatsBy + ` GROUP BY r.layer`

	sumRepeatsOf = repeatsBy + ` AND r.conversation_key = @key GROUP BY r.layer`
)

type repeatSum struct {
	Layer turns.Layer
	Count int64
}

// SumRepeats implements turns.Stories.
func (s *Store) SumRepeats(ctx context.Context, f turns.LedgerFilter) (map[turns.Layer]int64, error) {
	sql := sumRepeats
	if f.Key != nil {
		sql = sumRepeatsOf
	}
	rows, err := collect(ctx, s.pool, sql, filterArgs(f), pgx.RowToStructByName[repeatSum])
	if err != nil {
		return nil, mapRead("sum repeated deliveries", err)
	}
	byLayer := make(map[turns.Layer]int64, len(rows))
	for _, r := range rows {
		byLayer[r.Layer] = r.Count
	}
	return byLayer, nil
}
