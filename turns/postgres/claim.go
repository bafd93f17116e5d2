package postgres

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// An owner's row is locked so that it can't be buried before this commits. The conversation decides next: it is made,
// or locked at the version that the claim was built on. Below it a stored user turn is locked, whose generation must not
// be asked to stop, and the reply to supersede, which must be complete. Only then is anything written: the conversation
// moves, the superseded reply frees the slot, and the new one is inserted from what that returned, so that the unique
// indexes never see two. They have the last word: a conflict with one undoes the statement, so that a conversation never
// moves without its reply. All rows of an item carry one time, taken once its owner is known to live.
const claim = `
WITH item AS (
	SELECT * FROM unnest(@n::int[], @key::uuid[], @tenant::text[], @subject::text[], @conversation::uuid[],
		@expect::bigint[], @next_seq::bigint[], @turn::uuid[], @is_new::bool[], @starts::bool[], @parent::uuid[], @input_hash::bytea[],
		@content::text[], @options::text[], @supersede::uuid[], @reply::uuid[], @reply_options::text[], @attempt::int[], @generation::int[], @epoch::bigint[], @owner::uuid[],
		@endpoint::text[], @provider::text[], @model::text[], @provider_model::text[], @calls::int[], @waited_us::bigint[],
		@request_hash::bytea[], @builder_version::int[], @window_start::uuid[], @deadline_us::bigint[], @grace_us::bigint[],
		@on_ambiguous::text[], @on_partial::text[], @defaults_version::int[], @traceparent::text[],` + callArrays + `)
	AS i (n, conversation_key, tenant, subject, conversation_id, expect, next_seq, turn_id, is_new, starts, parent_id, input_hash,
		content, options, supersede, reply_id, reply_options, attempt, generation, epoch, owner, endpoint, provider, model, provider_model, calls, waited_us,
		request_hash, builder_version, window_start, deadline_us, grace_us,
		on_ambiguous, on_partial, defaults_version, traceparent, ` + callNames + `)
), living AS (
	SELECT w.worker_id FROM workers w
	WHERE w.worker_id = ANY (@owner::uuid[]) AND NOT w.dead ORDER BY w.worker_id FOR KEY SHARE OF w
), eligible AS (
	SELECT i.*, i.next_seq + CASE WHEN i.is_new THEN 2 ELSE 1 END AS seq_after, clock_timestamp() AS at
	FROM item i JOIN living l ON l.worker_id = i.owner
), made AS (
	INSERT INTO conversations (conversation_key, tenant, subject, conversation_id, next_seq, version, leaf_id, last_turn_id,
		create_time, update_time)
	SELECT e.conversation_key, e.tenant, e.subject, e.conversation_id, e.seq_after, 1, e.reply_id,
		CASE WHEN e.is_new THEN e.turn_id END, e.at, e.at
	FROM eligible e WHERE e.expect = 0 ORDER BY e.conversation_key
	ON CONFLICT (conversation_key) DO NOTHING
	RETURNING conversation_key
), locked AS (
	SELECT c.conversation_key FROM eligible e JOIN conversations c ON c.conversation_key = e.conversation_key
	WHERE e.expect > 0 AND c.version = e.expect AND c.deleted_at IS NULL
	ORDER BY c.conversation_key FOR NO KEY UPDATE OF c
), asked AS (
	SELECT u.conversation_key, u.cancelled_generation < e.generation
		AND e.generation BETWEEN u.generation AND u.generation + 1 AND CASE WHEN e.starts THEN u.waiting <> '' OR NOT EXISTS (
			SELECT 1 FROM turns r WHERE r.conversation_key = u.conversation_key AND r.responds_to = u.id AND r.calls > 0)
			ELSE u.waiting = '' END AS open
	FROM locked l JOIN eligible e ON e.conversation_key = l.conversation_key
	JOIN turns u ON u.conversation_key = l.conversation_key AND u.id = e.turn_id
	WHERE NOT e.is_new AND u.role = 'user' ORDER BY u.conversation_key FOR NO KEY UPDATE OF u
), complete AS (
	SELECT r.conversation_key FROM asked a JOIN eligible e ON e.conversation_key = a.conversation_key
	JOIN turns r ON r.conversation_key = a.conversation_key AND r.id = e.supersede
	WHERE a.open AND r.responds_to = e.turn_id AND r.status = 'complete'
	ORDER BY r.conversation_key FOR NO KEY UPDATE OF r
), free AS (
	SELECT l.conversation_key FROM locked l JOIN eligible e ON e.conversation_key = l.conversation_key
	LEFT JOIN asked a ON a.conversation_key = l.conversation_key
	LEFT JOIN complete r ON r.conversation_key = l.conversation_key
	WHERE COALESCE(a.open, true) AND (e.supersede IS NULL OR r.conversation_key IS NOT NULL)
), moved AS (
	UPDATE conversations c SET version = c.version + 1, next_seq = e.seq_after, leaf_id = e.reply_id,
		last_turn_id = CASE WHEN e.is_new OR e.starts THEN e.turn_id ELSE c.last_turn_id END, update_time = e.at
	FROM free f JOIN eligible e ON e.conversation_key = f.conversation_key
	WHERE c.conversation_key = f.conversation_key AND c.version = e.expect AND c.deleted_at IS NULL
	RETURNING c.conversation_key
), decided AS (
	SELECT e.* FROM eligible e
	WHERE e.conversation_key IN (SELECT conversation_key FROM made UNION ALL SELECT conversation_key FROM moved)
), superseded AS (
	UPDATE turns t SET status = 'abandoned', reason = 'superseded', replaced_by = d.reply_id
	FROM decided d WHERE t.conversation_key = d.conversation_key AND t.id = d.supersede AND t.status = 'complete'
	RETURNING t.conversation_key
), reply AS (
	INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, options, generation, status, attempt, epoch, owner,
		endpoint, provider, model, provider_model, request_hash, builder_version, window_start, calls, waited_us,
		create_time, deadline_at, disconnect_grace_us, on_ambiguous, on_partial, defaults_version, traceparent)
	SELECT d.conversation_key, d.reply_id, 'assistant', d.turn_id, d.turn_id, d.seq_after - 1, d.reply_options,
		d.generation, 'in_flight', d.attempt, d.epoch, d.owner, d.endpoint, d.provider, d.model, d.provider_model, d.request_hash, d.builder_version,
		d.window_start, d.calls, d.waited_us, d.at, d.at + NULLIF(d.deadline_us, 0) * interval '1 microsecond', d.grace_us,
		d.on_ambiguous, d.on_partial, d.defaults_version, d.traceparent
	FROM decided d LEFT JOIN superseded s ON s.conversation_key = d.conversation_key
	WHERE d.supersede IS NULL OR s.conversation_key IS NOT NULL
	RETURNING conversation_key
), won AS (
	SELECT d.* FROM reply r JOIN decided d ON d.conversation_key = r.conversation_key
), user_turn AS (
	INSERT INTO turns (conversation_key, id, role, parent_id, seq, content, options, input_hash, generation, create_time)
	SELECT w.conversation_key, w.turn_id, 'user', w.parent_id, w.next_seq, w.content, w.options, w.input_hash,
		w.generation, w.at
	FROM won w WHERE w.is_new
), newer AS (
	UPDATE turns u SET generation = w.generation, slot_version = u.slot_version + CASE WHEN w.generation > u.generation OR w.supersede IS NOT NULL THEN 1 ELSE 0 END,
		waiting = '', parent_id = CASE WHEN w.starts THEN w.parent_id ELSE u.parent_id END
	FROM won w
	WHERE NOT w.is_new AND u.conversation_key = w.conversation_key AND u.id = w.turn_id AND u.role = 'user'
		AND (u.generation < w.generation OR w.supersede IS NOT NULL OR w.starts)
), call AS (
	INSERT INTO provider_calls (` + openColumns + `)
	SELECT i.conversation_key, i.tenant, i.conversation_id, i.turn_id, i.generation, i.reply_id, i.epoch, i.at,` + fromCall + `
	FROM won i
)
SELECT n, at AS create_time FROM won`

type claimRow struct {
	N          int
	CreateTime time.Time
}

// Claim implements turns.Claims. After an error of an item's own, CodeNotFound for a parent that is missing included, the
// results say what was won of the others; after any other nothing of the batch was written, unless its outcome is unknown.
func (s *Store) Claim(ctx context.Context, claims []turns.Claim) ([]turns.ClaimResult, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	plain := func(items []turns.Claim) ([]turns.ClaimResult, error) { return s.claim(ctx, items) }
	if !slices.ContainsFunc(claims, reserves) {
		return each("claim", claims, isUniqueViolation, plain)
	}
	results := make([]turns.ClaimResult, len(claims))
	var failed []error
	for _, reserving := range []bool{false, true} {
		run, at := plain, []int(nil)
		if reserving {
			run = func(items []turns.Claim) ([]turns.ClaimResult, error) { return s.claimReserving(ctx, items) }
		}
		for i := range claims {
			if reserves(claims[i]) == reserving {
				at = append(at, i)
			}
		}
		if len(at) == 0 {
			continue
		}
		some, err := each("claim", column(at, func(i *int) turns.Claim { return claims[*i] }), isUniqueViolation, run)
		for i := range some {
			results[at[i]] = some[i]
		}
		failed = append(failed, err)
	}
	return results, errors.Join(failed...)
}

func reserves(c turns.Claim) bool { return c.Reserve != nil }

func (s *Store) claim(ctx context.Context, claims []turns.Claim) ([]turns.ClaimResult, error) {
	args, err := claimArgs(claims)
	if err != nil {
		return nil, notSent{err}
	}
	rows, err := collect(ctx, s.pool, claim, args, pgx.RowToStructByName[claimRow])
	if err != nil {
		return nil, err
	}
	results := make([]turns.ClaimResult, len(claims))
	for _, r := range rows {
		results[r.N] = turns.ClaimResult{Won: true, CreateTime: r.CreateTime.UTC()}
	}
	return results, nil
}

func claimArgs(claims []turns.Claim) (pgx.NamedArgs, error) {
	args := pgx.NamedArgs{
		"n":            places(claims),
		"key":          column(claims, func(c *turns.Claim) zeronull.UUID { return zeronull.UUID(c.Key) }),
		"tenant":       column(claims, func(c *turns.Claim) string { return string(c.Tenant) }),
		"subject":      column(claims, func(c *turns.Claim) string { return c.Subject }),
		"conversation": column(claims, func(c *turns.Claim) zeronull.UUID { return zeronull.UUID(c.Conversation.UUID) }),
		"expect":       column(claims, func(c *turns.Claim) int64 { return c.ExpectVersion }),
		"next_seq":     column(claims, func(c *turns.Claim) int64 { return c.NextSeq }),
		"turn":         column(claims, func(c *turns.Claim) zeronull.UUID { return zeronull.UUID(c.Turn.UUID) }),
		"is_new":       column(claims, func(c *turns.Claim) bool { return c.NewTurn != nil }),
		"starts":       column(claims, func(c *turns.Claim) bool { return c.Start != nil }),
		"supersede":    column(claims, func(c *turns.Claim) zeronull.UUID { return zeronull.UUID(c.Supersede.UUID) }),
	}
	addReplies(args, column(claims, func(c *turns.Claim) turns.NewReply { return c.Reply }))
	addCalls(args, column(claims, func(c *turns.Claim) turns.NewCall { return c.Call }))
	if err := addReplyOptions(args, claims); err != nil {
		return nil, err
	}
	return args, addNewTurns(args, claims)
}

// addReplyOptions adds what the replies were built with.
func addReplyOptions(args pgx.NamedArgs, claims []turns.Claim) (err error) {
	options := make([]string, len(claims))
	for i := range claims {
		if options[i], err = replyOptions(claims[i].Reply.Options); err != nil {
			return err
		}
	}
	args["reply_options"] = options
	return nil
}

// replyOptions is what a reply was built with, as it is stored. Most say nothing of their own, and store nothing.
func replyOptions(o turns.Options) (string, error) {
	if reflect.ValueOf(o).IsZero() {
		return "", nil
	}
	encoded, err := turns.EncodeOptions(o)
	if err != nil {
		return "", fmt.Errorf("encode a reply's options: %w", err)
	}
	return string(encoded), nil
}

// addNewTurns adds the user turns; an item without one gets empty values that the statement passes over.
func addNewTurns(args pgx.NamedArgs, claims []turns.Claim) error {
	content, options := make([]string, len(claims)), make([]string, len(claims))
	parents, hashes := make([]zeronull.UUID, len(claims)), make([][]byte, len(claims))
	for i := range claims {
		if start := claims[i].Start; start != nil {
			parents[i] = zeronull.UUID(start.Parent.UUID)
		}
		turn := claims[i].NewTurn
		if turn == nil {
			continue
		}
		encoded, err := turns.EncodeContent(turn.Content)
		if err != nil {
			return fmt.Errorf("encode a turn's content: %w", err)
		}
		sent, err := turns.EncodeOptions(turn.Options)
		if err != nil {
			return fmt.Errorf("encode a turn's options: %w", err)
		}
		content[i], options[i] = string(encoded), string(sent)
		parents[i], hashes[i] = zeronull.UUID(turn.Parent.UUID), turn.InputHash
	}
	args["content"], args["options"], args["parent"], args["input_hash"] = content, options, parents, hashes
	return nil
}

func addReplies(args pgx.NamedArgs, replies []turns.NewReply) {
	args["reply"] = column(replies, func(r *turns.NewReply) zeronull.UUID { return zeronull.UUID(r.ID.UUID) })
	args["attempt"] = column(replies, func(r *turns.NewReply) int32 { return r.Attempt })
	args["generation"] = column(replies, func(r *turns.NewReply) int32 { return r.Generation })
	args["epoch"] = column(replies, func(r *turns.NewReply) int64 { return max(r.Epoch, 1) })
	args["owner"] = column(replies, func(r *turns.NewReply) zeronull.UUID { return zeronull.UUID(r.Owner.UUID) })
	args["endpoint"] = column(replies, func(r *turns.NewReply) string { return r.Route.Endpoint })
	args["provider"] = column(replies, func(r *turns.NewReply) string { return r.Route.Provider })
	args["model"] = column(replies, func(r *turns.NewReply) string { return r.Route.Model })
	args["provider_model"] = column(replies, func(r *turns.NewReply) string { return r.Route.ProviderModel })
	args["calls"] = column(replies, func(r *turns.NewReply) int { return r.Calls })
	args["waited_us"] = column(replies, func(r *turns.NewReply) int64 { return r.Waited.Microseconds() })
	args["request_hash"] = column(replies, func(r *turns.NewReply) []byte { return r.RequestHash })
	args["builder_version"] = column(replies, func(r *turns.NewReply) int { return r.BuilderVersion })
	args["window_start"] = column(replies, func(r *turns.NewReply) zeronull.UUID { return zeronull.UUID(r.WindowStart.UUID) })
	args["grace_us"] = column(replies, func(r *turns.NewReply) int64 { return r.DisconnectGrace.Microseconds() })
	args["on_ambiguous"] = column(replies, func(r *turns.NewReply) string { return string(r.OnAmbiguous) })
	args["on_partial"] = column(replies, func(r *turns.NewReply) string { return string(r.OnPartial) })
	args["defaults_version"] = column(replies, func(r *turns.NewReply) int32 { return r.DefaultsVersion })
	args["traceparent"] = column(replies, func(r *turns.NewReply) string { return r.Traceparent })
	args["deadline_us"] = column(replies, func(r *turns.NewReply) int64 { return r.Deadline.Microseconds() })
}

// places numbers the items of a batch, by which their rows come back.
func places[I any](items []I) []int {
	n := make([]int, len(items))
	for i := range n {
		n[i] = i
	}
	return n
}
