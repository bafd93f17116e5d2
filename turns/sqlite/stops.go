package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

// A generation that has its answer can't be stopped any more.
const stopTurn = `UPDATE turns SET cancelled_generation = generation
	WHERE conversation_key = @key AND id = @turn AND cancelled_generation < generation AND (@generation = 0 OR generation = @generation)
		AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.conversation_key = @key AND r.responds_to = @turn AND r.role = 'assistant'
			AND r.status = 'complete')`

// What is held is run by nobody, so it ends at once. It is not settled: its last owner may still have more of it.
const stopReply = `UPDATE turns SET cancel_requested = 1,
		status = CASE status WHEN 'held' THEN 'abandoned' ELSE status END,
		reason = CASE status WHEN 'held' THEN 'cancelled' ELSE reason END,
		end_time = CASE status WHEN 'held' THEN @now ELSE end_time END
	WHERE conversation_key = @key AND responds_to = @turn AND role = 'assistant' AND (@generation = 0 OR generation = @generation)
		AND (status = 'held' OR status = 'in_flight' AND cancel_requested = 0)`

// The attempt that was abandoned last is marked too: who reads it learns that its generation goes no further.
const noteStop = `UPDATE turns SET cancel_requested = 1
	WHERE conversation_key = @key AND responds_to = @turn AND role = 'assistant' AND status = 'abandoned'
		AND attempt = (SELECT MAX(attempt) FROM turns WHERE conversation_key = @key AND responds_to = @turn)
		AND NOT EXISTS (SELECT 1 FROM turns WHERE conversation_key = @key AND responds_to = @turn AND status <> 'abandoned')`

// RequestStop implements turns.Stops. Asked again it only stops a reply that was held meanwhile.
func (s *Store) RequestStop(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, generation int32) (reply turns.Reply, err error) {
	err = s.writeTx(ctx, "request stop", func(t *tx) error {
		marked, err := t.won(stopTurn, arg("key", key[:]), blob("turn", turn.UUID), arg("generation", generation))
		if err != nil {
			return err
		}
		stopped, err := t.won(stopReply, arg("key", key[:]), blob("turn", turn.UUID), arg("generation", generation), arg("now", t.now))
		if err != nil {
			return err
		}
		if marked {
			if _, err := t.exec(noteStop, arg("key", key[:]), blob("turn", turn.UUID)); err != nil {
				return err
			}
		}
		if marked || stopped {
			if err := t.moveVersion(key); err != nil {
				return err
			}
		}
		shown, _, err := t.shown(key, turn)
		if err == nil && shown == nil {
			err = turns.NotFound("turn", "")
		}
		if err == nil {
			reply = *shown
		}
		return err
	})
	if err != nil {
		return turns.Reply{}, err
	}
	return reply, nil
}

const moveVersion = `UPDATE conversations SET version = version + 1 WHERE conversation_key = @key`

// moveVersion makes claims lose that were computed before.
func (t *tx) moveVersion(key turns.ConversationKey) error {
	_, err := t.exec(moveVersion, arg("key", key[:]))
	return err
}
