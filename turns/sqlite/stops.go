package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// A generation that has its answer can't be stopped any more.
const stopTurn = `UPDATE turns SET cancelled_generation = generation, stopped_for = @by
	WHERE conversation_key = @key AND id = @turn AND cancelled_generation < generation AND (@generation = 0 OR generation = @generation)
		AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.conversation_key = @key AND r.responds_to = @turn AND r.role = 'assistant'
			AND r.status = 'complete')`

// What is held is run by nobody, so it ends at once. It is not settled: its last owner may still have more of it.
const stopReply = `UPDATE turns SET cancel_requested = 1,
		status = CASE status WHEN 'held' THEN 'abandoned' ELSE status END,
		reason = CASE status WHEN 'held' THEN 'cancelled' ELSE reason END,
		end_time = CASE status WHEN 'held' THEN @now ELSE end_time END, next_lookup_at = NULL,
		input_tokens = input_tokens + @tokens, wasted_tokens = wasted_tokens + @tokens, provider_calls = provider_calls + @calls,
		token_source = CASE WHEN @calls > 0 THEN 'estimated' ELSE token_source END
	WHERE conversation_key = @key AND responds_to = @turn AND role = 'assistant' AND (@generation = 0 OR generation = @generation)
		AND (status = 'held' OR status = 'in_flight' AND cancel_requested = 0)`

// The attempt that was abandoned last is marked too: who reads it learns that its generation goes no further.
const noteStop = `UPDATE turns SET cancel_requested = 1
	WHERE conversation_key = @key AND responds_to = @turn AND role = 'assistant' AND status = 'abandoned'
		AND attempt = (SELECT MAX(attempt) FROM turns WHERE conversation_key = @key AND responds_to = @turn)
		AND NOT EXISTS (SELECT 1 FROM turns WHERE conversation_key = @key AND responds_to = @turn AND status <> 'abandoned')`

// RequestStop implements turns.Stops. Asked again it only stops a reply that was held meanwhile. The reply that it returns
// is chosen before it ends one.
func (s *Store) RequestStop(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, generation int32, by turns.TurnID) (reply turns.Reply, err error) {
	err = s.shareTx(ctx, "", 1, "request stop", func(t *tx) error {
		marked, err := t.won(stopTurn, arg("key", key[:]), blob("turn", turn.UUID), arg("generation", generation), blob("by", by.UUID))
		if err != nil {
			return err
		}
		shown, _, err := t.shown(key, turn)
		if err == nil && shown == nil {
			err = turns.NotFound("turn", "")
		}
		if err != nil {
			return err
		}
		stopped, err := t.stopReply(key, turn, generation)
		if err != nil {
			return err
		}
		if marked && !stopped {
			if _, err := t.exec(noteStop, arg("key", key[:]), blob("turn", turn.UUID)); err != nil {
				return err
			}
		}
		if marked || stopped {
			if err := t.moveVersion(key); err != nil {
				return err
			}
		}
		r, _, err := t.reply(key, shown.ID)
		reply = r.reply
		return err
	})
	if err != nil {
		return turns.Reply{}, err
	}
	return reply, nil
}

// The estimate is that of closeOpenCalls.
const heldCalls = `SELECT r.id,
		(SELECT COUNT(*) FROM provider_calls p
			WHERE p.conversation_key = @key AND p.reply_id = r.id AND p.end_time IS NULL),
		(SELECT COALESCE(SUM((p.request_bytes * 10 + 34) / 35), 0) FROM provider_calls p
			WHERE p.conversation_key = @key AND p.reply_id = r.id AND p.end_time IS NULL)
	FROM turns r WHERE r.conversation_key = @key AND r.responds_to = @turn AND r.role = 'assistant' AND r.status = 'held'
		AND (@generation = 0 OR r.generation = @generation)`

// stopReply marks a reply in flight, or ends one that is held with its calls.
func (t *tx) stopReply(key turns.ConversationKey, turn turns.TurnID, generation int32) (stopped bool, err error) {
	args := []any{arg("key", key[:]), blob("turn", turn.UUID), arg("generation", generation)}
	var calls, tokens int64
	held := turns.Fence{Key: key}
	found, err := t.found(heldCalls, args, &held.Reply.UUID, &calls, &tokens)
	if err != nil {
		return false, err
	}
	if stopped, err = t.won(stopReply, append(args, arg("calls", calls), arg("tokens", tokens), arg("now", t.now))...); err != nil || !found {
		return stopped, err
	}
	return stopped, t.guessOpenCalls(held)
}

const moveVersion = `UPDATE conversations SET version = version + 1 WHERE conversation_key = @key`

// moveVersion makes claims lose that were computed before.
func (t *tx) moveVersion(key turns.ConversationKey) error {
	_, err := t.exec(moveVersion, arg("key", key[:]))
	return err
}
