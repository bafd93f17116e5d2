package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// The conversation is only looked at: a claim that was computed beside a takeover is judged by its version, which stays.
const takeOverReply = `UPDATE turns SET epoch = epoch + 1, owner = @new_owner, traceparent = @traceparent, calls = calls + @spends
	WHERE conversation_key = @key AND id = @reply AND status = 'in_flight' AND epoch = @epoch AND owner = @owner
		AND log_len = @stored AND cancel_requested = 0 AND epoch < @max_epoch AND (NOT @spends OR calls < @max_calls)
		AND (deadline_at IS NULL OR deadline_at > @now)
		AND EXISTS (SELECT 1 FROM workers WHERE worker_id = @new_owner AND dead = 0)
		AND NOT EXISTS (SELECT 1 FROM workers WHERE worker_id = @owner AND dead = 0)
		AND EXISTS (SELECT 1 FROM turns u JOIN conversations c ON c.conversation_key = u.conversation_key
			WHERE u.conversation_key = @key AND u.id = turns.responds_to AND u.role = 'user' AND u.generation = turns.generation
				AND u.cancelled_generation < u.generation AND c.deleted_at IS NULL)
	RETURNING calls, COALESCE(deadline_at - @now, 0)`

// TakeOver implements turns.Returns. Calls that are open and that the takeover does not name are closed as sent and
// unknown, as with an ending; unless it has no call of its own.
func (s *Store) TakeOver(ctx context.Context, v turns.Takeover) (turns.TakeoverResult, error) {
	var result turns.TakeoverResult
	spends := v.Call.ID != (turns.CallID{})
	err := s.writeTx(ctx, "take over", func(t *tx) (err error) {
		args := fenceArgs(v.Fence, blob("new_owner", v.Owner.UUID), arg("stored", v.StoredLength), arg("max_epoch", turns.MaxEpoch),
			arg("max_calls", v.MaxCalls), arg("spends", spends), arg("traceparent", v.Traceparent), arg("now", t.now))
		var left int64
		result.Won, err = t.found(takeOverReply, args, &result.Calls, &left)
		result.Left = micros(left)
		if err != nil || !result.Won {
			return err
		}
		if err := t.tell(v.Fence, v.Owner, v.Way); err != nil {
			return err
		}
		if err := t.closeCalls(v.Fence, v.Closed, !spends); err != nil || !spends {
			return err
		}
		return t.nextCall(v.Fence.Key, v.Fence.Reply, v.Call)
	})
	if err != nil {
		return turns.TakeoverResult{}, err
	}
	return result, nil
}

const tellTakeover = `INSERT INTO reply_takeovers (conversation_key, reply_id, epoch, way, from_worker, from_name, to_worker, to_name,
		create_time)
	VALUES (@key, @reply, @epoch + 1, @way, @owner, COALESCE((SELECT name FROM workers WHERE worker_id = @owner), ''),
		@new_owner, COALESCE((SELECT name FROM workers WHERE worker_id = @new_owner), ''), @now)
	ON CONFLICT (conversation_key, reply_id, epoch) DO NOTHING`

// tell notes in the story of a reply that it came to another owner, from the fence that it had.
func (t *tx) tell(f turns.Fence, owner turns.WorkerID, way turns.TakeoverWay) error {
	_, err := t.exec(tellTakeover, fenceArgs(f, blob("new_owner", owner.UUID), arg("way", string(way)), arg("now", t.now))...)
	return err
}
