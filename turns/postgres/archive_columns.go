package postgres

import (
	"encoding"
	"reflect"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// The columns of the archived types, in the order of their fields. Each table has further ones, which say what a worker is
// doing right now.
const (
	archivedConversation = `tenant, subject, conversation_id, title, labels, defaults, defaults_version, next_seq, version, leaf_id,
	last_turn_id, spent_turns, spent_tokens, spent_micros, spent_us, spent_through, deleted_at, erased_at, create_time, update_time`

	archivedDefaults = `version, defaults, create_time`

	archivedRow = `role, id, parent_id, seq, content, options, input_hash, generation, cancelled_generation, slot_version, responds_to,
	status, reason, attempt, epoch, owner, endpoint, provider, model, provider_model, request_hash, builder_version, window_start,
	calls, waited_us, log_len, stop_reason, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens,
	token_source, wasted_tokens, cost_micros, provider_calls, provider_response_id, provider_code, retry_after_us,
	cancel_requested, disconnect_grace_us, replaced_by, defaults_version, waiting, stopped_for, erased, on_ambiguous, on_partial,
	settled_at, create_time, end_time`

	archivedCall = `call_id, turn_id, generation, reply_id, epoch, number, first, layer, endpoint, provider, model, provider_model, credential,
	class, phase, http_status, idempotency_key, request_hash, builder_version, request_bytes, session, submitted_at,
	provider_request_id, provider_response_id, input_tokens, cache_read_tokens, cache_write_tokens, output_tokens,
	reasoning_tokens, token_source, waste_cause, wasted_tokens, cost_micros, extra_requests, output_low, output_high,
	create_time, end_time`

	archivedTakeover = `reply_id, epoch, way, from_worker, from_name, to_worker, to_name, create_time`

	archivedRepeats = `turn_id, layer, count, first_time, last_time`
)

// cells are where the columns of an archived type are read into.
func cells(record any) []any {
	_, values := turns.ArchiveColumns(record)
	for i, value := range values {
		switch to := value.(type) {
		case *time.Time:
			values[i] = (*zeronull.Timestamptz)(to)
		case *turns.Status:
			values[i] = (*zeronull.Text)(to)
		}
	}
	return values
}

// scanArchived scans a row of an archived type. Moments lose the process's zone.
func scanArchived[T any](row pgx.CollectableRow) (T, error) {
	var record T
	err := row.Scan(cells(&record)...)
	_, values := turns.ArchiveColumns(&record)
	for _, value := range values {
		if at, ok := value.(*time.Time); ok {
			*at = at.UTC()
		}
	}
	return record, err
}

// cellArgs adds the columns of an archived type as they are stored, by name.
func cellArgs(args pgx.NamedArgs, record any) pgx.NamedArgs {
	names, values := turns.ArchiveColumns(record)
	for i, value := range values {
		args[names[i]] = asStored(value)
	}
	return args
}

func asStored(value any) any {
	field := reflect.ValueOf(value).Elem()
	switch v := value.(type) {
	case *time.Time:
		return zeronull.Timestamptz(*v)
	case *turns.Status:
		return zeronull.Text(*v)
	case *map[string]string:
		return labelsOf(*v)
	case encoding.BinaryMarshaler: // an id
		return zeronull.UUID(field.Field(0).Interface().(uuid.UUID))
	}
	if field.Kind() == reflect.String {
		return field.String()
	}
	return field.Interface()
}
