package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

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

// errDry undoes what was only to be tried, and errThere a write of what is stored already.
var (
	errDry   = errors.New("tried only")
	errThere = errors.New("there already")
)

// WriteArchived implements turns.Archive. A claim of the same conversation waits until it is done.
func (s *Store) WriteArchived(ctx context.Context, c turns.ArchivedConversation, records iter.Seq2[turns.ArchivedRecord, error],
	dry bool) (written bool, err error) {
	w := archiveWriter{key: zeronull.UUID(c.Key()), head: &c}
	err = s.archiveTx(ctx, "write an archived conversation", pgx.TxOptions{}, func(t archiveTx) error {
		w.t = t
		if err := w.begin(ctx); err != nil {
			return err
		}
		for record, err := range records {
			if err != nil {
				return theirs{err}
			}
			if err := w.add(ctx, record); err != nil {
				return err
			}
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
		if dry {
			return theirs{errDry}
		}
		return nil
	})
	switch {
	case errors.Is(err, errThere):
		return false, nil
	case errors.Is(err, errDry):
		return true, nil
	}
	return err == nil, err
}

// archiveWriter sends the records of one conversation in batches.
type archiveWriter struct {
	t     archiveTx
	key   zeronull.UUID
	head  *turns.ArchivedConversation
	batch pgx.Batch
	lines []int // of the records in the batch
	bytes int
}

func (w *archiveWriter) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.t.limits.statement)
	defer cancel()
	tag, err := w.t.Exec(ctx, writeArchivedConversation, cellArgs(pgx.NamedArgs{"key": w.key}, w.head))
	if isOfItem(err) {
		return theirs{turns.RefuseRecord(0, mapWrite("write a conversation", err))}
	}
	if err == nil && tag.RowsAffected() == 0 {
		return theirs{errThere}
	}
	return err
}

func (w *archiveWriter) add(ctx context.Context, r turns.ArchivedRecord) error {
	args := pgx.NamedArgs{"key": w.key}
	switch {
	case r.Row != nil:
		w.batch.Queue(writeArchivedRow, cellArgs(args, r.Row))
		w.bytes += len(r.Row.Content)
	case r.Call != nil:
		args["tenant"], args["conversation"] = string(w.head.Tenant), zeronull.UUID(w.head.ID.UUID)
		w.batch.Queue(writeArchivedCall, cellArgs(args, r.Call))
	case r.Takeover != nil:
		w.batch.Queue(writeArchivedTakeover, cellArgs(args, r.Takeover))
	case r.Repeats != nil:
		args["tenant"], args["conversation"] = string(w.head.Tenant), zeronull.UUID(w.head.ID.UUID)
		w.batch.Queue(writeArchivedRepeats, cellArgs(args, r.Repeats))
	default:
		w.batch.Queue(writeArchivedDefaults, cellArgs(args, r.Defaults))
		w.bytes += len(r.Defaults.Defaults)
	}
	w.lines = append(w.lines, r.Line)
	if len(w.lines) < archivePage && w.bytes < archiveBytes {
		return nil
	}
	return w.flush(ctx)
}

// flush sends what was added. The answers come in its order, so the first error is that of the record it stands at.
func (w *archiveWriter) flush(ctx context.Context) error {
	if len(w.lines) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.t.limits.statement)
	defer cancel()
	results := w.t.SendBatch(ctx, &w.batch)
	for _, line := range w.lines {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // it says the same again
			if isOfItem(err) {
				return theirs{turns.RefuseRecord(line, mapWrite("write a record", err))}
			}
			return err
		}
	}
	w.batch, w.lines, w.bytes = pgx.Batch{}, w.lines[:0], 0
	return results.Close()
}
