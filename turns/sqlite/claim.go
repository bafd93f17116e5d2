package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/turnd/turnd/turns"
)

// Claim implements turns.Claims. The reply goes first, under all that can make the claim lose; what follows is written
// only beside a won one. A parent that is not in the conversation shows at the commit and undoes the whole batch, which
// then runs again one by one: the error comes beside the results of the others.
func (s *Store) Claim(ctx context.Context, claims []turns.Claim) ([]turns.ClaimResult, error) {
	results, err := s.claim(ctx, claims)
	if len(claims) < 2 || turns.CodeOf(err) != turns.CodeNotFound {
		return results, err
	}
	results = make([]turns.ClaimResult, len(claims))
	var failed []error
	for i := range claims {
		if alone, err := s.claim(ctx, claims[i:i+1]); err != nil {
			failed = append(failed, err)
		} else {
			results[i] = alone[0]
		}
	}
	return results, errors.Join(failed...)
}

func (s *Store) claim(ctx context.Context, claims []turns.Claim) ([]turns.ClaimResult, error) {
	results := make([]turns.ClaimResult, len(claims))
	err := s.shareTx(ctx, tenantOf(claims, func(c *turns.Claim) turns.Tenant { return c.Tenant }), len(claims), "claim", func(t *tx) error {
		clear(results)
		for _, i := range inKeyOrder(claims, func(c turns.Claim) turns.ConversationKey { return c.Key }) {
			won, met, err := t.claimAndCharge(&claims[i])
			if err != nil {
				return err
			}
			results[i].Met = met
			if won {
				results[i] = turns.ClaimResult{Won: true, CreateTime: timeOf(t.now)}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// claimAndCharge undoes a claim that its reservation does not let in.
func (t *tx) claimAndCharge(c *turns.Claim) (won bool, met *turns.LimitMet, err error) {
	if c.Reserve == nil {
		won, err = t.claim(c)
		return won, nil, err
	}
	won, err = t.whole(func() (bool, error) {
		won, err := t.claim(c)
		if err != nil || !won {
			return false, err
		}
		met, err = t.charge(turns.ReservationKey{Key: c.Key, Turn: c.Turn, Generation: c.Reply.Generation}, c.Tenant, c.Reserve)
		return met == nil, err
	})
	return won, met, err
}

// claim puts a reply in the place of the one that it supersedes; if it can't be, that one keeps it.
func (t *tx) claim(c *turns.Claim) (won bool, err error) {
	if c.Supersede == (turns.ReplyID{}) {
		return t.claimFree(c)
	}
	return t.whole(func() (bool, error) {
		won, err := t.supersede(c.Key, c.Turn, c.Supersede, c.Reply.ID)
		if err != nil || !won {
			return false, err
		}
		return t.claimFree(c)
	})
}

// claimFree claims for a turn without a live reply.
func (t *tx) claimFree(c *turns.Claim) (won bool, err error) {
	won, err = t.claimReply(c)
	if err != nil || !won {
		return false, err
	}
	if err := t.claimConversation(c); err != nil {
		return false, err
	}
	if err := t.claimTurn(c); err != nil {
		return false, err
	}
	return true, t.claimCall(c)
}

// The conversation's version is 0 where there is none, and -1, which nobody expects, where only its mark is left.
const claimReply = `INSERT INTO turns (conversation_key, id, role, parent_id, seq, options, responds_to, status, attempt,
		generation, epoch, owner, endpoint, provider, model, provider_model, request_hash, builder_version, window_start, calls,
		waited_us, deadline_at, create_time, disconnect_grace_us, on_ambiguous, on_partial, defaults_version, traceparent)
	SELECT @key, @reply, 'assistant', @turn, @seq, @options, @turn, 'in_flight', @attempt, @generation, @epoch, @owner, @endpoint,
		@provider, @model, @provider_model, @request_hash, @builder, @window, @calls, @waited, @now + @deadline, @now, @grace,
		@on_ambiguous, @on_partial, @defaults_version, @traceparent
	WHERE COALESCE((SELECT CASE WHEN deleted_at IS NULL THEN version ELSE -1 END FROM conversations
			WHERE conversation_key = @key), 0) = @version
		AND EXISTS (SELECT 1 FROM workers WHERE worker_id = @owner AND dead = 0)
		AND NOT EXISTS (SELECT 1 FROM turns WHERE conversation_key = @key AND id = @turn
			AND (@new OR cancelled_generation >= @generation OR CASE WHEN @starts THEN waiting = '' AND EXISTS (
				SELECT 1 FROM turns r WHERE r.conversation_key = @key AND r.responds_to = @turn AND r.calls > 0)
				ELSE waiting <> '' END))
	ON CONFLICT (conversation_key, id) DO NOTHING
	ON CONFLICT (conversation_key, responds_to, attempt) DO NOTHING
	ON CONFLICT (conversation_key, responds_to) WHERE role = 'assistant' AND status <> 'abandoned' DO NOTHING
	ON CONFLICT (conversation_key) WHERE role = 'assistant' AND status = 'in_flight' DO NOTHING`

func (t *tx) claimReply(c *turns.Claim) (bool, error) {
	r, seq := &c.Reply, c.NextSeq
	if c.NewTurn != nil {
		seq++
	}
	options, err := optionsArg("options", r.Options)
	if err != nil {
		return false, err
	}
	return t.won(claimReply, options, arg("key", c.Key[:]), blob("reply", r.ID.UUID), blob("turn", c.Turn.UUID), arg("seq", seq),
		arg("attempt", r.Attempt), arg("generation", r.Generation), arg("epoch", max(r.Epoch, 1)), blob("owner", r.Owner.UUID), arg("endpoint", r.Route.Endpoint),
		arg("provider", r.Route.Provider), arg("model", r.Route.Model), arg("provider_model", r.Route.ProviderModel),
		arg("request_hash", r.RequestHash), arg("builder", r.BuilderVersion), blob("window", r.WindowStart.UUID),
		arg("calls", r.Calls), arg("waited", r.Waited.Microseconds()), arg("deadline", r.Deadline.Microseconds()), arg("grace", r.DisconnectGrace.Microseconds()),
		arg("on_ambiguous", string(r.OnAmbiguous)), arg("on_partial", string(r.OnPartial)), arg("defaults_version", r.DefaultsVersion),
		arg("traceparent", r.Traceparent),
		arg("version", c.ExpectVersion), arg("new", c.NewTurn != nil), arg("starts", c.Start != nil), arg("now", t.now))
}

const claimConversation = `INSERT INTO conversations (conversation_key, tenant, subject, conversation_id, next_seq, leaf_id,
		last_turn_id, create_time, update_time)
	VALUES (@key, @tenant, @subject, @conversation, @next_seq, @reply, @new_turn, @now, @now)
	ON CONFLICT (conversation_key) DO UPDATE SET version = version + 1, next_seq = excluded.next_seq, leaf_id = excluded.leaf_id,
		last_turn_id = COALESCE(excluded.last_turn_id, last_turn_id), update_time = excluded.update_time`

func (t *tx) claimConversation(c *turns.Claim) error {
	next, newTurn := c.NextSeq+1, sql.Named("new_turn", nil)
	if c.NewTurn != nil {
		next++
	}
	if c.NewTurn != nil || c.Start != nil {
		newTurn = blob("new_turn", c.Turn.UUID)
	}
	_, err := t.exec(claimConversation, arg("key", c.Key[:]), arg("tenant", string(c.Tenant)), arg("subject", c.Subject),
		blob("conversation", c.Conversation.UUID), arg("next_seq", next), blob("reply", c.Reply.ID.UUID), newTurn, arg("now", t.now))
	return err
}

const claimNewTurn = `INSERT INTO turns (conversation_key, id, role, parent_id, seq, content, options, input_hash, generation,
		create_time)
	VALUES (@key, @turn, 'user', @parent, @seq, @content, @options, @hash, @generation, @now)`

// All right sides see the row as it was.
const claimOldTurn = `UPDATE turns SET generation = MAX(generation, @generation),
		slot_version = slot_version + (@generation > generation),
		waiting = '', parent_id = CASE WHEN @starts THEN @parent ELSE parent_id END
	WHERE conversation_key = @key AND id = @turn AND role = 'user'`

func (t *tx) claimTurn(c *turns.Claim) error {
	common := []any{arg("key", c.Key[:]), blob("turn", c.Turn.UUID), arg("generation", c.Reply.Generation)}
	if c.NewTurn == nil {
		var parent turns.RowID
		if c.Start != nil {
			parent = c.Start.Parent
		}
		found, err := t.won(claimOldTurn, append(common, arg("starts", c.Start != nil), blob("parent", parent.UUID))...)
		if err == nil && !found {
			err = turns.NotFound("turn", "")
		}
		return err
	}
	stored, err := newTurnArgs(c.NewTurn)
	if err != nil {
		return err
	}
	_, err = t.exec(claimNewTurn, append(append(common, stored...), arg("seq", c.NextSeq), arg("now", t.now))...)
	return err
}

// newTurnArgs are what is stored of a new user turn.
func newTurnArgs(n *turns.NewTurn) ([]any, error) {
	content, err := turns.EncodeContent(n.Content)
	if err != nil {
		return nil, err
	}
	options, err := turns.EncodeOptions(n.Options)
	if err != nil {
		return nil, err
	}
	return []any{blob("parent", n.Parent.UUID), textArg("content", content), textArg("options", options), arg("hash", n.InputHash)}, nil
}

// The ledger row takes from its reply's own row whose it is, for the first call as for later ones.
const insertCall = `INSERT INTO provider_calls (conversation_key, call_id, tenant, conversation_id, turn_id, generation,
		reply_id, epoch, number, first, layer, endpoint, provider, model, provider_model, credential, idempotency_key, request_hash,
		builder_version, request_bytes, request_body, submitted_at, create_time)
	SELECT r.conversation_key, @call, c.tenant, c.conversation_id, r.responds_to, r.generation, r.id, r.epoch, @number,
		@first, @layer, @endpoint, @provider, @model, @provider_model, @credential, @idempotency_key, @request_hash, @builder, @bytes,
		@body, CASE WHEN @unsent THEN NULL ELSE @now END, @now
	FROM turns r JOIN conversations c ON c.conversation_key = r.conversation_key
	WHERE r.conversation_key = @key AND r.id = @reply`

func (t *tx) claimCall(c *turns.Claim) error { return t.insertCall(c.Key, c.Reply.ID, c.Call) }

func (t *tx) insertCall(key turns.ConversationKey, reply turns.ReplyID, call turns.NewCall) error {
	_, err := t.exec(insertCall, t.callArgs(key, reply, call, bytesArg("body", call.Body))...)
	return err
}
