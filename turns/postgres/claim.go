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
//
// Items are in the order of their conversations, and each locks all that it needs before the next one does, from the
// conversation down. Conversations that are there come before those that are made, whichever item is the first: decided
// looks at moved for each item, and only then at made. Two statements would else lock each other out.
const claim = `
WITH living AS (
	SELECT w.worker_id FROM workers w
	WHERE w.worker_id = ANY (@owner::uuid[]) AND NOT w.dead ORDER BY w.worker_id FOR KEY SHARE OF w
), eligible AS (
	SELECT i - 1 AS n, clock_timestamp() AS at,
		(@key::uuid[])[i] AS conversation_key, (@tenant::text[])[i] AS tenant, (@subject::text[])[i] AS subject,
		(@conversation::uuid[])[i] AS conversation_id, (@expect::bigint[])[i] AS expect,
		(@next_seq::bigint[])[i] AS next_seq, (@turn::uuid[])[i] AS turn_id, (@is_new::bool[])[i] AS is_new,
		(@starts::bool[])[i] AS starts, (@parent::uuid[])[i] AS parent_id, (@input_hash::bytea[])[i] AS input_hash,
		(@content::text[])[i] AS content, (@options::text[])[i] AS options, (@supersede::uuid[])[i] AS supersede,
		(@reply::uuid[])[i] AS reply_id, (@reply_options::text[])[i] AS reply_options, (@attempt::int[])[i] AS attempt,
		(@generation::int[])[i] AS generation, (@epoch::bigint[])[i] AS epoch, (@owner::uuid[])[i] AS owner,
		(@endpoint::text[])[i] AS endpoint, (@provider::text[])[i] AS provider, (@model::text[])[i] AS model,
		(@provider_model::text[])[i] AS provider_model, (@calls::int[])[i] AS calls,
		(@waited_us::bigint[])[i] AS waited_us, (@request_hash::bytea[])[i] AS request_hash,
		(@builder_version::int[])[i] AS builder_version, (@window_start::uuid[])[i] AS window_start,
		(@deadline_us::bigint[])[i] AS deadline_us, (@grace_us::bigint[])[i] AS grace_us,
		(@on_ambiguous::text[])[i] AS on_ambiguous, (@on_partial::text[])[i] AS on_partial,
		(@defaults_version::int[])[i] AS defaults_version, (@traceparent::text[])[i] AS traceparent,` + callOfItem + `
	FROM (SELECT n + 1 AS i FROM unnest(@n::int[]) AS p (n)) p JOIN living l ON l.worker_id = (@owner::uuid[])[i]
	ORDER BY conversation_key
), made AS (
	INSERT INTO conversations (conversation_key, tenant, subject, conversation_id, next_seq, version, leaf_id, last_turn_id,
		create_time, update_time)
	SELECT e.conversation_key, e.tenant, e.subject, e.conversation_id, e.next_seq + e.is_new::int + 1, 1, e.reply_id,
		CASE WHEN e.is_new THEN e.turn_id END, e.at, e.at
	FROM eligible e WHERE e.expect = 0
	ON CONFLICT (conversation_key) DO NOTHING
	RETURNING conversation_key
), free AS (
	SELECT e.n, e.conversation_key, e.expect, e.next_seq + e.is_new::int + 1 AS next_seq, e.reply_id, e.at,
		CASE WHEN e.is_new OR e.starts THEN e.turn_id END AS started
	FROM eligible e
	CROSS JOIN LATERAL (
		SELECT c.conversation_key FROM conversations c
		WHERE c.conversation_key = e.conversation_key AND c.version = e.expect AND c.deleted_at IS NULL FOR NO KEY UPDATE) c
	LEFT JOIN LATERAL (
		SELECT u.cancelled_generation < e.generation AND e.generation BETWEEN u.generation AND u.generation + 1
			AND CASE WHEN e.starts THEN u.waiting <> '' OR (
				SELECT true FROM turns r
				WHERE r.conversation_key = e.conversation_key AND r.responds_to = e.turn_id AND r.calls > 0 LIMIT 1) IS NULL
			ELSE u.waiting = '' END AS open
		FROM turns u
		WHERE NOT e.is_new AND u.conversation_key = c.conversation_key AND u.id = e.turn_id AND u.role = 'user'
		FOR NO KEY UPDATE) a ON true
	LEFT JOIN LATERAL (
		SELECT true AS complete FROM turns r
		WHERE a.open AND r.conversation_key = e.conversation_key AND r.id = e.supersede AND r.responds_to = e.turn_id
			AND r.status = 'complete'
		FOR NO KEY UPDATE) s ON true
	WHERE e.expect > 0 AND COALESCE(a.open, true) AND (e.supersede IS NULL OR s.complete)
), moved AS (
	UPDATE conversations c SET version = c.version + 1, next_seq = f.next_seq, leaf_id = f.reply_id,
		last_turn_id = COALESCE(f.started, c.last_turn_id), update_time = f.at
	FROM free f
	WHERE c.conversation_key = f.conversation_key AND c.version = f.expect AND c.deleted_at IS NULL
	RETURNING f.n
), decided AS (
	SELECT e.* FROM eligible e
	WHERE e.n IN (SELECT n FROM moved) OR e.expect = 0 AND e.conversation_key IN (SELECT conversation_key FROM made)
), superseded AS (
	UPDATE turns t SET status = 'abandoned', reason = 'superseded', replaced_by = d.reply_id
	FROM decided d WHERE t.conversation_key = d.conversation_key AND t.id = d.supersede AND t.status = 'complete'
	RETURNING d.n
), won AS (
	SELECT d.* FROM decided d WHERE d.supersede IS NULL OR d.n IN (SELECT n FROM superseded)
), stored AS (
	INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, content, options, input_hash, generation, status,
		attempt, epoch, owner, endpoint, provider, model, provider_model, request_hash, builder_version, window_start, calls,
		waited_us, create_time, deadline_at, disconnect_grace_us, on_ambiguous, on_partial, defaults_version, traceparent)
	SELECT w.conversation_key, w.turn_id, 'user', w.parent_id, NULL, w.next_seq, w.content, w.options, w.input_hash,
		w.generation, NULL, 0, 0, NULL, '', '', '', '', NULL, 0, NULL, 0, 0, w.at, NULL, 0, '', '', 0, ''
	FROM won w WHERE w.is_new
	UNION ALL
	SELECT w.conversation_key, w.reply_id, 'assistant', w.turn_id, w.turn_id, w.next_seq + w.is_new::int, '', w.reply_options,
		NULL, w.generation, 'in_flight', w.attempt, w.epoch, w.owner, w.endpoint, w.provider, w.model, w.provider_model,
		w.request_hash, w.builder_version, w.window_start, w.calls, w.waited_us, w.at,
		w.at + NULLIF(w.deadline_us, 0) * interval '1 microsecond', w.grace_us, w.on_ambiguous, w.on_partial, w.defaults_version,
		w.traceparent
	FROM won w
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
	if !slices.ContainsFunc(claims, reserves) {
		return s.groups.claims.write(ctx, claims)
	}
	results := make([]turns.ClaimResult, len(claims))
	var failed []error
	for _, reserving := range []bool{false, true} {
		write, at := s.groups.claims.write, []int(nil)
		if reserving {
			write = kind[turns.Claim, turns.ClaimResult]{op: "claim", lost: isUniqueViolation, run: s.claimReserving}.each
		}
		for i := range claims {
			if reserves(claims[i]) == reserving {
				at = append(at, i)
			}
		}
		if len(at) == 0 {
			continue
		}
		some, err := write(ctx, column(at, func(i *int) turns.Claim { return claims[*i] }))
		for i := range some {
			results[at[i]] = some[i]
		}
		failed = append(failed, err)
	}
	return results, errors.Join(failed...)
}

func reserves(c turns.Claim) bool { return c.Reserve != nil }

// claims are those without a reservation.
func (s *Store) claims() kind[turns.Claim, turns.ClaimResult] {
	return kind[turns.Claim, turns.ClaimResult]{op: "claim", lost: isUniqueViolation, run: s.claim}
}

func (s *Store) claim(ctx context.Context, claims []turns.Claim) ([]turns.ClaimResult, error) {
	args, err := claimArgs(claims)
	if err != nil {
		return nil, unfit{err}
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
