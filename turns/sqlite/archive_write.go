package sqlite

import (
	"context"
	"errors"
	"iter"

	"github.com/turnd/turnd/turns"
)

const (
	writeArchivedConversation = `INSERT INTO conversations (conversation_key, ` + archivedConversation + `)
	VALUES (@key, @tenant, @subject, @conversation_id, @title, @labels, @defaults, @defaults_version, @next_seq, @version, @leaf_id,
		@last_turn_id, @spent_turns, @spent_tokens, @spent_micros, @spent_us, @spent_through, @deleted_at, @erased_at,
		@create_time, @update_time)
	ON CONFLICT (conversation_key) DO NOTHING`

	writeArchivedDefaults = `INSERT INTO conversation_defaults (conversation_key, ` + archivedDefaults + `)
	VALUES (@key, @version, @defaults, @create_time)`

	writeArchivedRow = `INSERT INTO turns (conversation_key, ` + archivedRow + `)
	VALUES (@key, @role, @id, @parent_id, @seq, @content, @options, @input_hash, @generation, @cancelled_generation, @slot_version,
		@responds_to, @status, @reason, @attempt, @epoch, @owner, @endpoint, @provider, @model, @provider_model,
		@request_hash, @builder_version, @window_start, @calls, @waited_us, @log_len, @stop_reason, @input_tokens,
		@cache_read_tokens, @cache_write_tokens, @output_tokens, @reasoning_tokens, @token_source, @wasted_tokens,
		@cost_micros, @provider_calls, @provider_response_id, @provider_code, @retry_after_us, @cancel_requested,
		@disconnect_grace_us, @replaced_by, @defaults_version, @waiting, @stopped_for, @erased, @on_ambiguous, @on_partial,
		@settled_at, @create_time, @end_time)`

	writeArchivedCall = `INSERT INTO provider_calls (conversation_key, tenant, conversation_id, ` + archivedCall + `)
	VALUES (@key, @tenant, @conversation, @call_id, @turn_id, @generation, @reply_id, @epoch, @number, @first, @layer, @endpoint, @provider, @model, @provider_model,
		@credential, @class, @phase, @http_status, @idempotency_key, @request_hash, @builder_version, @request_bytes,
		@session, @submitted_at, @provider_request_id, @provider_response_id, @input_tokens, @cache_read_tokens,
		@cache_write_tokens, @output_tokens, @reasoning_tokens, @token_source, @waste_cause, @wasted_tokens, @cost_micros,
		@extra_requests, @output_low, @output_high, @create_time, @end_time)`

	writeArchivedTakeover = `INSERT INTO reply_takeovers (conversation_key, ` + archivedTakeover + `)
	VALUES (@key, @reply_id, @epoch, @way, @from_worker, @from_name, @to_worker, @to_name, @create_time)`

	writeArchivedRepeats = `INSERT INTO turn_repeats (conversation_key, tenant, conversation_id, ` + archivedRepeats + `)
	VALUES (@key, @tenant, @conversation, @turn_id, @layer, @count, @first_time, @last_time)`
)

// errDry undoes what was only to be tried.
var errDry = errors.New("tried only")

// WriteArchived implements turns.Archive. Other writers wait until it is done.
func (s *Store) WriteArchived(ctx context.Context, c turns.ArchivedConversation, records iter.Seq2[turns.ArchivedRecord, error],
	dry bool) (written bool, err error) {
	key := c.Key()
	args, err := cellArgs(&c)
	if err != nil {
		return false, err
	}
	err = s.writeTx(ctx, "write an archived conversation", func(t *tx) error {
		if written, err = t.won(writeArchivedConversation, append(args, arg("key", key[:]))...); err != nil || !written {
			return err
		}
		for record, err := range records {
			if err != nil {
				return err
			}
			if err := t.writeArchived(key, &c, record); err != nil {
				return err
			}
		}
		if dry {
			return errDry
		}
		return nil
	})
	if errors.Is(err, errDry) {
		return true, nil
	}
	return written && err == nil, err
}

func (t *tx) writeArchived(key turns.ConversationKey, c *turns.ArchivedConversation, r turns.ArchivedRecord) error {
	args, text := []any{arg("key", key[:])}, writeArchivedDefaults
	record := any(r.Defaults)
	switch {
	case r.Row != nil:
		text, record = writeArchivedRow, r.Row
	case r.Call != nil:
		text, record = writeArchivedCall, r.Call
		args = append(args, arg("tenant", string(c.Tenant)), blob("conversation", c.ID.UUID))
	case r.Takeover != nil:
		text, record = writeArchivedTakeover, r.Takeover
	case r.Repeats != nil:
		text, record = writeArchivedRepeats, r.Repeats
		args = append(args, arg("tenant", string(c.Tenant)), blob("conversation", c.ID.UUID))
	}
	more, err := cellArgs(record)
	if err != nil {
		return err
	}
	if _, err := t.exec(text, append(args, more...)...); err != nil {
		if isConstraint(err) {
			return turns.RefuseRecord(r.Line, err)
		}
		return err
	}
	return nil
}
