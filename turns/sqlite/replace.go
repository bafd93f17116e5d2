package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

const isAttempt = `SELECT 1 FROM turns WHERE conversation_key = @key AND id = @reply AND responds_to = @turn AND generation = @generation`

var replacingVerbs = []turns.Verb{turns.VerbReplace}

// Replace implements turns.Held.
func (s *Store) Replace(ctx context.Context, r turns.Replacement) (result turns.ClaimResult, err error) {
	e, c := &r.Ending, &r.Claim
	if !allowed(replacingVerbs, e.Verb, e.Status, e.Reason) {
		return turns.ClaimResult{}, wrongState(e.Verb, e.Status, e.Reason)
	}
	if c.Key != e.Fence.Key || c.NewTurn != nil || c.Supersede != (turns.ReplyID{}) {
		return turns.ClaimResult{}, &turns.Error{Code: turns.CodeWrongState, Problem: "a reply is replaced by another of its own turn"}
	}
	var at int64
	won, err := s.winTx(ctx, "replace a reply", func(t *tx) (bool, error) {
		at = t.now
		var one int
		attempt, err := t.found(isAttempt, []any{arg("key", c.Key[:]), blob("reply", e.Fence.Reply.UUID), blob("turn", c.Turn.UUID),
			arg("generation", c.Reply.Generation)}, &one)
		if err != nil || !attempt {
			return false, err
		}
		if ended, err := t.end(e, c.Reply.ID); err != nil || !ended {
			return false, err
		}
		return t.claimFree(c)
	})
	if err != nil || !won {
		return turns.ClaimResult{}, err
	}
	return turns.ClaimResult{Won: true, CreateTime: timeOf(at)}, nil
}
