package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/turnd/turnd/turns"
)

// The index named holds only replies in flight.
const ownedReplies = `SELECT conversation_key, id, epoch FROM turns INDEXED BY turns_running_by_owner
	WHERE status = 'in_flight' AND owner = @owner AND create_time <= @now - @age ORDER BY create_time LIMIT @limit`

// OwnedReplies implements turns.Returns.
func (s *Store) OwnedReplies(ctx context.Context, owner turns.WorkerID, age time.Duration, limit int) (fences []turns.Fence, err error) {
	err = s.readTx(ctx, "read owned replies", func(t *tx) error {
		return t.query(func(scan func(...any) error) error {
			f := turns.Fence{Owner: owner}
			var key []byte
			err := scan(&key, &f.Reply.UUID, &f.Epoch)
			copy(f.Key[:], key)
			fences = append(fences, f)
			return err
		}, ownedReplies, blob("owner", owner.UUID), arg("age", age.Microseconds()), arg("limit", limit), arg("now", t.now))
	})
	if err != nil {
		return nil, err
	}
	return fences, nil
}

const readUnsettled = `SELECT reason, content FROM turns WHERE conversation_key = @key AND id = @reply AND status = 'abandoned'
	AND epoch = @epoch AND owner = @owner AND settled_at IS NULL
	AND EXISTS (SELECT 1 FROM conversations WHERE conversation_key = @key AND deleted_at IS NULL)`

// unsettled looks for a reply that was ended from outside, and gives its reason and whether log extends what is stored of
// it. Only one transaction at a time writes, so what this one reads holds until its commit.
func (t *tx) unsettled(f turns.Fence, log []turns.Piece) (reason turns.Reason, extends bool, err error) {
	var content []byte
	found, err := t.found(readUnsettled, fenceArgs(f), &reason, &content)
	if err != nil || !found {
		return "", false, err
	}
	stored, err := turns.DecodePieces(content)
	if err != nil {
		return "", false, err
	}
	extends, err = isExtended(stored, log)
	return reason, extends, err
}

// isExtended reports whether a log begins with all that is stored of it.
func isExtended(stored, pieces []turns.Piece) (bool, error) {
	short, err := turns.LogOf(stored)
	if err != nil {
		return false, err
	}
	long, err := turns.LogOf(pieces)
	if err != nil {
		return false, err
	}
	rest, _, err := long.From(short.Len(), 0)
	if err != nil {
		return false, nil // shorter, or cut inside a rune that is not the stored one
	}
	for _, p := range rest {
		if short.Append(p) != nil {
			return false, nil
		}
	}
	return sameLog(short, long)
}

func sameLog(a, b *turns.Log) (bool, error) {
	left, _, err := a.From(0, 0)
	if err != nil {
		return false, err
	}
	right, _, err := b.From(0, 0)
	return slices.Equal(left, right), err
}

const mayReturn = `SELECT 1 FROM turns r JOIN turns u ON u.conversation_key = r.conversation_key AND u.id = r.responds_to
		JOIN conversations c ON c.conversation_key = r.conversation_key
	WHERE r.conversation_key = @key AND r.id = @reply AND u.generation = r.generation AND u.cancelled_generation < r.generation
		AND c.last_turn_id = r.responds_to AND c.deleted_at IS NULL`

// mayReturn reports whether a reply may become live again by a verb, as far as the indexes are not asked.
func (t *tx) mayReturn(f turns.Fence, log []turns.Piece, verb turns.Verb, to turns.Status) (bool, error) {
	reason, extends, err := t.unsettled(f, log)
	if err != nil || !extends {
		return false, err
	}
	if _, ok := turns.Allowed(turns.StatusAbandoned, reason, verb, to, ""); !ok {
		return false, nil
	}
	var one int
	return t.found(mayReturn, []any{arg("key", f.Key[:]), blob("reply", f.Reply.UUID)}, &one)
}

// A reply in flight has no usage, end or content of its own: these come with its end.
const reviveReply = `UPDATE turns SET status = 'in_flight', reason = '', epoch = epoch + 1, owner = @owner, content = '',
		log_len = @length, input_tokens = 0, cache_read_tokens = 0, cache_write_tokens = 0, output_tokens = 0,
		reasoning_tokens = 0, token_source = '', wasted_tokens = 0, cost_micros = 0, provider_calls = 0,
		deadline_at = @now + @deadline, end_time = NULL, replaced_by = NULL
	WHERE conversation_key = @key AND id = @reply AND EXISTS (SELECT 1 FROM workers WHERE worker_id = @owner AND dead = 0)`

const reopenCall = `UPDATE provider_calls SET class = '', phase = '', http_status = 0, input_tokens = 0, cache_read_tokens = 0,
		cache_write_tokens = 0, output_tokens = 0, reasoning_tokens = 0, token_source = '', wasted_tokens = 0, cost_micros = 0,
		waste_cause = '', extra_requests = 0, output_low = 0, output_high = 0, end_time = NULL
	WHERE conversation_key = @key AND call_id = @call AND reply_id = @reply`

// Revive implements turns.Returns.
func (s *Store) Revive(ctx context.Context, r turns.Revival) (won bool, err error) {
	f := r.Fence
	key, reply := arg("key", f.Key[:]), blob("reply", f.Reply.UUID)
	return s.winTx(ctx, "revive", func(t *tx) (bool, error) {
		may, err := t.mayReturn(f, r.Pieces, turns.VerbRevive, turns.StatusInFlight)
		if err != nil || !may {
			return false, err
		}
		won, err := t.won(reviveReply, key, reply, blob("owner", r.Owner.UUID), arg("length", r.Length),
			arg("deadline", r.Deadline.Microseconds()), arg("now", t.now))
		if err != nil || !won {
			return false, err
		}
		if err := t.tell(f, r.Owner, turns.TakenBack); err != nil {
			return false, err
		}
		if _, err := t.exec(reopenCall, key, reply, blob("call", r.Call.UUID)); err != nil {
			return false, err
		}
		if err := t.insertChunk(&turns.Checkpoint{Fence: f, To: r.Length, Pieces: r.Pieces}); err != nil {
			return false, err
		}
		return true, t.leafBack(f)
	})
}

const leafBack = `UPDATE conversations SET version = version + 1, leaf_id = CASE WHEN EXISTS (
		SELECT 1 FROM turns l JOIN turns r ON r.conversation_key = l.conversation_key AND r.responds_to = l.responds_to
			WHERE l.conversation_key = @key AND l.id = leaf_id AND r.id = @reply) THEN @reply ELSE leaf_id END
	WHERE conversation_key = @key`

// leafBack moves the conversation's leaf to a reply that came back from another reply of the same turn, whose attempt came
// to nothing. A leaf below another turn was put there since, and stays.
func (t *tx) leafBack(f turns.Fence) error {
	_, err := t.exec(leafBack, arg("key", f.Key[:]), blob("reply", f.Reply.UUID))
	return err
}
