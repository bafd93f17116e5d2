package sqlite

import (
	"database/sql"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

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

// cell takes a value that a column holds in another form than the field.
type cell func(value any) error

// Scan implements sql.Scanner.
func (c cell) Scan(value any) error { return c(value) }

// cells are where the columns of an archived type are read into.
func cells(record any) []any {
	_, values := turns.ArchiveColumns(record)
	for i, value := range values {
		switch to := value.(type) {
		case *time.Time:
			values[i] = cell(func(v any) error {
				if us, ok := v.(int64); ok {
					*to = timeOf(us)
				}
				return nil
			})
		case *turns.Status:
			values[i] = cell(func(v any) error {
				text, _ := v.(string)
				*to = turns.Status(text)
				return nil
			})
		case *map[string]string:
			values[i] = cell(func(v any) error {
				text, ok := v.(string)
				if !ok {
					return fmt.Errorf("not a text: %T", v)
				}
				return json.Unmarshal([]byte(text), to)
			})
		}
	}
	return values
}

// cellArgs are the columns of an archived type as they are stored, by name.
func cellArgs(record any) (args []any, err error) {
	names, values := turns.ArchiveColumns(record)
	for i, value := range values {
		stored, err := asStored(value)
		if err != nil {
			return nil, err
		}
		args = append(args, sql.Named(names[i], stored))
	}
	return args, nil
}

func asStored(value any) (any, error) {
	field := reflect.ValueOf(value).Elem()
	switch v := value.(type) {
	case *time.Time:
		if v.IsZero() {
			return nil, nil
		}
		return v.UnixMicro(), nil
	case *turns.Status:
		if *v == "" {
			return nil, nil
		}
	case *map[string]string:
		if *v == nil {
			return "{}", nil
		}
		text, err := json.Marshal(*v)
		return string(text), err
	case *[]byte:
		if *v == nil {
			return nil, nil
		}
	case encoding.BinaryMarshaler: // an id
		if field.IsZero() {
			return nil, nil
		}
		return v.MarshalBinary()
	}
	return field.Interface(), nil
}
