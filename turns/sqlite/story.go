package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/turnd/turnd/turns"
)

const (
	storyTurn = `SELECT ` + rowColumns + `'', r.waiting <> ''` + rowTables + `
	WHERE r.conversation_key = @key AND r.role = 'user' AND NOT r.erased AND c.deleted_at IS NULL AND r.id = (
		SELECT COALESCE(responds_to, id) FROM turns WHERE conversation_key = @key AND id = @id)`

	storyReplies = `SELECT ` + rowColumns + `'', COALESCE(w.name, ''), r.lookups, r.next_lookup_at, r.settled_at` + rowTables + `
	WHERE r.conversation_key = @key AND r.responds_to = @turn ORDER BY r.attempt DESC LIMIT @limit`

	storyTakeovers = `SELECT epoch, way, from_worker, from_name, to_worker, to_name, create_time FROM reply_takeovers
	WHERE conversation_key = @key AND reply_id = @reply ORDER BY epoch`

	storyCalls = callColumns + ` INDEXED BY provider_calls_of_reply WHERE p.conversation_key = @key AND p.reply_id = @reply
	ORDER BY p.create_time DESC, p.call_id DESC LIMIT @limit`

	storyRepeats = `SELECT layer, count, first_time, last_time FROM turn_repeats
	WHERE conversation_key = @key AND turn_id = @turn ORDER BY layer`
)

// ReadStory implements turns.Stories.
func (s *Store) ReadStory(ctx context.Context, q turns.StoryQuery) (story turns.Story, err error) {
	err = s.readTx(ctx, "read the story of a turn", func(t *tx) error {
		found, err := t.storyTurn(q, &story)
		if err == nil && !found {
			err = t.whyMissing(q.Key, q.Row, "turn")
		}
		if err != nil {
			return err
		}
		if err := t.storyReplies(q, &story); err != nil {
			return err
		}
		return t.storyRepeats(q, &story)
	})
	if err != nil {
		return turns.Story{}, err
	}
	return story, nil
}

func (t *tx) storyTurn(q turns.StoryQuery, story *turns.Story) (found bool, err error) {
	err = t.query(func(scan func(...any) error) error {
		r, err := scanRow(scan, t.now, &story.Waits)
		if err != nil {
			return err
		}
		found, r.options = true, nil
		turn, err := r.userTurnHead()
		if err == nil {
			story.Turn = *turn
		}
		return err
	}, storyTurn, arg("key", q.Key[:]), blob("id", q.Row.UUID))
	return found, err
}

// storyReplies reads the newest replies, and of each, from the newest on, who took it over and what was called for it.
func (t *tx) storyReplies(q turns.StoryQuery, story *turns.Story) error {
	err := t.query(func(scan func(...any) error) error {
		var s turns.StoryReply
		var next, settled sql.NullInt64
		r, err := scanRow(scan, t.now, &s.OwnerName, &s.Lookups, &next, &settled)
		if err != nil {
			return err
		}
		s.Reply = r.reply
		s.Options = turns.Options{}
		if next.Valid {
			s.NextLookup = timeOf(next.Int64)
		}
		if settled.Valid {
			s.SettleTime = timeOf(settled.Int64)
		}
		story.Replies = append(story.Replies, s)
		return nil
	}, storyReplies, arg("key", q.Key[:]), blob("turn", story.Turn.ID.UUID), arg("limit", q.Replies+1))
	if err != nil {
		return err
	}
	if len(story.Replies) > q.Replies {
		story.Replies, story.Truncated = story.Replies[:q.Replies], true
	}
	for i := range story.Replies {
		if err := t.storyOfReply(q, story.Replies[i].ID, story); err != nil {
			return err
		}
	}
	slices.Reverse(story.Replies)
	slices.Reverse(story.Calls)
	slices.SortFunc(story.Takeovers, func(a, b turns.ReplyTakeover) int {
		if by := slices.Compare(a.Reply.UUID[:], b.Reply.UUID[:]); by != 0 {
			return by
		}
		return int(a.Epoch - b.Epoch)
	})
	return nil
}

func (t *tx) storyOfReply(q turns.StoryQuery, reply turns.ReplyID, story *turns.Story) error {
	key, of := arg("key", q.Key[:]), blob("reply", reply.UUID)
	err := t.query(func(scan func(...any) error) error {
		o := turns.ReplyTakeover{Reply: reply}
		var at int64
		err := scan(&o.Epoch, &o.Way, &o.From.ID.UUID, &o.From.Name, &o.To.ID.UUID, &o.To.Name, &at)
		o.Time = timeOf(at)
		story.Takeovers = append(story.Takeovers, o)
		return err
	}, storyTakeovers, key, of)
	if err != nil {
		return err
	}
	left := q.Calls - len(story.Calls)
	err = t.query(func(scan func(...any) error) error {
		call, err := scanCall(scan)
		story.Calls = append(story.Calls, call)
		return err
	}, storyCalls, key, of, arg("limit", left+1))
	if len(story.Calls) > q.Calls {
		story.Calls, story.Truncated = story.Calls[:q.Calls], true
	}
	return err
}

func (t *tx) storyRepeats(q turns.StoryQuery, story *turns.Story) error {
	return t.query(func(scan func(...any) error) error {
		r := turns.Repeats{Key: q.Key, Turn: story.Turn.ID}
		var first, last int64
		err := scan(&r.Layer, &r.Count, &first, &last)
		r.FirstTime, r.LastTime = timeOf(first), timeOf(last)
		story.Repeats = append(story.Repeats, r)
		return err
	}, storyRepeats, arg("key", q.Key[:]), blob("turn", story.Turn.ID.UUID))
}

const addRepeats = `INSERT INTO turn_repeats (conversation_key, turn_id, layer, tenant, conversation_id, count, first_time, last_time)
	SELECT conversation_key, @turn, @layer, tenant, conversation_id, @count, @now - @first, @now - @last
	FROM conversations WHERE conversation_key = @key
	ON CONFLICT (conversation_key, turn_id, layer) DO UPDATE SET count = count + excluded.count,
		first_time = MIN(first_time, excluded.first_time), last_time = MAX(last_time, excluded.last_time)`

// AddRepeats implements turns.Stories.
func (s *Store) AddRepeats(ctx context.Context, repeats []turns.Repeats) error {
	if len(repeats) == 0 {
		return nil
	}
	return s.writeTx(ctx, "add repeated deliveries", func(t *tx) error {
		for i := range repeats {
			r := &repeats[i]
			if _, err := t.exec(addRepeats, arg("key", r.Key[:]), blob("turn", r.Turn.UUID), arg("layer", string(r.Layer)),
				arg("count", r.Count), arg("first", r.FirstAge.Microseconds()), arg("last", r.LastAge.Microseconds()), arg("now", t.now)); err != nil {
				return err
			}
		}
		return nil
	})
}

const (
	repeatsBy = `SELECT r.layer, sum(r.count) FROM turn_repeats r`

	repeatsChosen = ` r.tenant = @tenant AND r.first_time >= @from AND r.first_time < @before AND (@turn IS NULL OR r.turn_id = @turn)`

	sumRepeats = repeatsBy + ` INDEXED BY turn_repeats_of_tenant WHERE` + repeatsChosen + ` GROUP BY r.layer`

	sumRepeatsOf = repeatsBy + ` WHERE r.conversation_key = @key AND` + repeatsChosen + ` GROUP BY r.layer`
)

// SumRepeats implements turns.Stories.
func (s *Store) SumRepeats(ctx context.Context, f turns.LedgerFilter) (map[turns.Layer]int64, error) {
	text := sumRepeats
	args := []any{arg("tenant", string(f.Tenant)), arg("from", fromTime(f.From)), arg("before", beforeTime(f.Before)), blob("turn", f.Turn.UUID)}
	if f.Key != nil {
		text, args = sumRepeatsOf, append(args, arg("key", f.Key[:]))
	}
	sums := map[turns.Layer]int64{}
	err := s.readTx(ctx, "sum repeated deliveries", func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			var layer turns.Layer
			var count int64
			err := scan(&layer, &count)
			sums[layer] = count
			return err
		}, text, args...)
	})
	if err != nil {
		return nil, err
	}
	return sums, nil
}
