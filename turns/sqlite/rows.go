package sqlite

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// rowColumns is a row of turns, of either kind, as rows.scan takes it. It reads from rowTables; a statement adds the
// content or an empty text as the last column.
const rowColumns = `r.id, r.role, r.parent_id, r.seq, r.options, r.generation, r.responds_to, COALESCE(r.status, ''), r.reason,
	r.attempt, r.epoch, r.owner, r.endpoint, r.provider, r.model, r.request_hash, r.window_start, r.calls, r.waited_us,
	r.log_len, r.stop_reason, r.input_tokens, r.cache_read_tokens, r.cache_write_tokens, r.output_tokens,
	r.reasoning_tokens, r.token_source, r.wasted_tokens, r.cost_micros, r.provider_calls, r.provider_code,
	r.retry_after_us, r.builder_version, r.provider_model, r.provider_response_id, r.on_ambiguous, r.on_partial, r.traceparent, r.replaced_by,
	r.settled_at IS NOT NULL, r.cancel_requested, r.defaults_version,
	r.erased, COALESCE(c.last_turn_id <> r.responds_to, 0), r.disconnect_grace_us, r.followed_until, r.create_time, r.end_time, c.conversation_id,
	w.lease_until, w.dead, `

// rowTables joins a row with its conversation and with the worker that owns it.
const rowTables = ` FROM turns r JOIN conversations c ON c.conversation_key = r.conversation_key
	LEFT JOIN workers w ON w.worker_id = r.owner `

// row is a row of turns.
type row struct {
	reply         turns.Reply
	user          bool
	erased        bool
	id            turns.RowID
	parent        turns.RowID
	seq           int64
	options       []byte
	waitedUS      int64
	retryUS       int64
	graceUS       int64
	followedUntil sql.NullInt64
	createTime    int64
	endTime       sql.NullInt64
	leaseUntil    sql.NullInt64
	dead          sql.NullBool
	content       []byte
}

// scanRow reads a row that was selected as rowColumns and content, and any further columns of the statement.
func scanRow(scan func(...any) error, now int64, more ...any) (row, error) {
	var r row
	var role string
	a, u := &r.reply, &r.reply.Usage
	dest := []any{&r.id.UUID, &role, &r.parent.UUID, &r.seq, &r.options, &a.Generation, &a.Turn.UUID, &a.Status, &a.Reason,
		&a.Attempt, &a.Epoch, &a.Owner.UUID, &a.Endpoint, &a.Provider, &a.Model, &a.RequestHash, &a.WindowStart.UUID, &a.Calls,
		&r.waitedUS, &a.Length, &a.StopReason, &u.Input, &u.CacheRead, &u.CacheWrite, &u.Output, &u.Reasoning, &u.Source,
		&u.Wasted, &u.CostMicros, &u.Calls, &a.ProviderCode, &r.retryUS, &a.BuilderVersion, &a.ProviderModel, &a.ResponseID,
		&a.OnAmbiguous, &a.OnPartial, &a.Traceparent, &a.ReplacedBy.UUID, &a.Settled, &a.CancelRequested, &a.DefaultsVersion, &r.erased, &a.LaterTurn, &r.graceUS, &r.followedUntil, &r.createTime,
		&r.endTime, &a.Conversation.UUID, &r.leaseUntil, &r.dead, &r.content}
	err := scan(append(dest, more...)...)
	if err != nil {
		return r, err
	}
	r.user = role == "user"
	r.derive(now)
	if !r.user {
		a.Options, err = turns.DecodeOptions(r.options)
	}
	return r, asUnreadable(err)
}

// unreadable marks an error that is one row's own: what it holds makes no sense, where the engine did its work.
type unreadable struct{ error }

func (e unreadable) Unwrap() error { return e.error }

func asUnreadable(err error) error {
	if err == nil {
		return nil
	}
	return unreadable{err}
}

func isUnreadable(err error) bool { return errors.As(err, new(unreadable)) }

// derive fills the fields of the reply that are not columns.
func (r *row) derive(now int64) {
	a := &r.reply
	a.ID = turns.ReplyID(r.id)
	a.Waited, a.RetryAfter, a.DisconnectGrace = micros(r.waitedUS), micros(r.retryUS), micros(r.graceUS)
	if r.followedUntil.Valid {
		a.FollowedLeft = micros(r.followedUntil.Int64 - now)
	}
	a.CreateTime, a.Age = timeOf(r.createTime), micros(now-r.createTime)
	if r.endTime.Valid {
		a.EndTime = timeOf(r.endTime.Int64)
	}
	if a.Status != turns.StatusInFlight {
		return
	}
	a.OwnerDead = !r.dead.Valid || r.dead.Bool
	if r.leaseUntil.Valid {
		a.LeaseLeft = micros(r.leaseUntil.Int64 - now)
	}
}

// userTurn is the row as a user turn.
func (r *row) userTurn() (*turns.UserTurn, error) {
	var content []turns.Block
	var err error
	if !r.erased {
		content, err = turns.DecodeContent(r.content)
	}
	if err != nil {
		return nil, err
	}
	turn, err := r.userTurnHead()
	if err == nil {
		turn.Content = content
	}
	return turn, err
}

// userTurnHead is the row as a user turn that was read without its content.
func (r *row) userTurnHead() (*turns.UserTurn, error) {
	options, err := turns.DecodeOptions(r.options)
	if err != nil {
		return nil, err
	}
	return &turns.UserTurn{Conversation: r.reply.Conversation, ID: turns.TurnID(r.id), Parent: r.parent, Seq: r.seq,
		Options: options, Generation: r.reply.Generation, Erased: r.erased, CreateTime: r.reply.CreateTime}, nil
}

// fill reads the stored log into replies that were selected with content: from the row of one that has ended, from the
// chunks of one that has not.
func (t *tx) fill(key turns.ConversationKey, r *row) (err error) {
	if r.reply.Status == turns.StatusInFlight {
		_, r.reply.Content, err = t.chunks(turns.LogPosition{Key: key, Reply: r.reply.ID})
		return err
	}
	r.reply.Content, err = turns.DecodePieces(r.content)
	return asUnreadable(err)
}

func arg(name string, value any) sql.NamedArg { return sql.Named(name, value) }

// blob is an id as it is stored: 16 bytes, NULL for none.
func blob(name string, id uuid.UUID) sql.NamedArg {
	if id == uuid.Nil {
		return sql.Named(name, nil)
	}
	return sql.Named(name, id[:])
}

// bytesArg is bytes as they are stored; none at all are NULL.
func bytesArg(name string, data []byte) sql.NamedArg {
	if data == nil {
		return sql.Named(name, nil)
	}
	return sql.Named(name, data)
}

// textArg is encoded JSON as it is stored; the tables are strict about text and blobs.
func textArg(name string, data []byte) sql.NamedArg { return sql.Named(name, string(data)) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func timeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

// inKeyOrder is the order in which the items of a batch are written: the same whatever order they came in.
func inKeyOrder[T any](items []T, key func(T) turns.ConversationKey) []int {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		ka, kb := key(items[a]), key(items[b])
		return bytes.Compare(ka[:], kb[:])
	})
	return order
}

// fenceArgs names the fence's fields for a guard.
func fenceArgs(f turns.Fence, more ...any) []any {
	return append([]any{arg("key", f.Key[:]), blob("reply", f.Reply.UUID), arg("epoch", f.Epoch), blob("owner", f.Owner.UUID)}, more...)
}

// usageArgs names the fields of a usage for a statement that stores it.
func usageArgs(u turns.Usage) []any {
	return []any{arg("input", u.Input), arg("cache_read", u.CacheRead), arg("cache_write", u.CacheWrite), arg("output", u.Output),
		arg("reasoning", u.Reasoning), arg("source", string(u.Source)), arg("wasted", u.Wasted), arg("cost", u.CostMicros)}
}

// optionsArg is options as they are stored; none set are no text at all.
func optionsArg(name string, o turns.Options) (sql.NamedArg, error) {
	if reflect.ValueOf(o).IsZero() {
		return sql.Named(name, ""), nil
	}
	options, err := turns.EncodeOptions(o)
	return textArg(name, options), err
}

// wrongState refuses what the table of transitions does not have.
func wrongState(verb turns.Verb, to turns.Status, reason turns.Reason) error {
	return &turns.Error{Code: turns.CodeWrongState, Problem: fmt.Sprintf("no reply can become %s %s by %s here", to, reason, verb)}
}

// allowed reports whether a reply in flight may become this by one of the verbs that a method serves.
func allowed(verbs []turns.Verb, verb turns.Verb, to turns.Status, reason turns.Reason) bool {
	return allowedFrom(turns.StatusInFlight, verbs, verb, to, reason)
}

func allowedFrom(from turns.Status, verbs []turns.Verb, verb turns.Verb, to turns.Status, reason turns.Reason) bool {
	_, ok := turns.Allowed(from, "", verb, to, reason)
	return ok && slices.Contains(verbs, verb) && (reason != "") == (to == turns.StatusAbandoned)
}
