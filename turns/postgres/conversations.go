package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

const conversationColumns = `
	c.conversation_key, c.conversation_id, c.tenant, c.subject, c.title, c.defaults, c.defaults_version, c.labels, c.create_hash, c.leaf_id, c.version,
	c.deleted_at IS NOT NULL AS deleted, c.create_time, c.update_time,
	(SELECT t.id FROM turns t WHERE t.conversation_key = c.conversation_key AND t.role = 'assistant'
		AND t.status = 'in_flight') AS running`

type conversationRow struct {
	ConversationKey [16]byte
	ConversationID  [16]byte
	Tenant          string
	Subject         string
	Title           string
	Defaults        string
	DefaultsVersion int32
	Labels          map[string]string
	CreateHash      []byte
	LeafID          zeronull.UUID
	Version         int64
	Deleted         bool
	CreateTime      time.Time
	UpdateTime      time.Time
	Running         zeronull.UUID
}

func (r *conversationRow) conversation() (turns.Conversation, error) {
	defaults, err := turns.DecodeOptions([]byte(r.Defaults))
	if err != nil {
		return turns.Conversation{}, err
	}
	labels := r.Labels
	if len(labels) == 0 {
		labels = nil
	}
	return turns.Conversation{
		Key:             r.ConversationKey,
		ID:              turns.ConversationID{UUID: r.ConversationID},
		Tenant:          turns.Tenant(r.Tenant),
		Subject:         r.Subject,
		Title:           r.Title,
		Defaults:        defaults,
		DefaultsVersion: r.DefaultsVersion,
		Labels:          labels,
		CreateHash:      r.CreateHash,
		Leaf:            turns.RowID{UUID: uuid.UUID(r.LeafID)},
		Running:         turns.ReplyID{UUID: uuid.UUID(r.Running)},
		Version:         r.Version,
		Deleted:         r.Deleted,
		CreateTime:      r.CreateTime.UTC(),
		UpdateTime:      r.UpdateTime.UTC(),
	}, nil
}

const createConversation = `
WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at
), stored AS (
	INSERT INTO conversations (conversation_key, tenant, subject, conversation_id, title, defaults, labels, create_hash,
		create_time, update_time)
	SELECT @key, @tenant, @subject, @conversation, @title, @defaults, @labels::jsonb, @create_hash::bytea, m.at, m.at FROM moment m
	ON CONFLICT (conversation_key) DO NOTHING
	RETURNING conversation_key, defaults_version, create_time
), kept AS (` + keepDefaults + `)
SELECT conversation_key FROM stored`

// CreateConversation implements turns.Conversations.
func (s *Store) CreateConversation(ctx context.Context, c turns.Conversation) (turns.Conversation, bool, error) {
	defaults, err := turns.EncodeOptions(c.Defaults)
	if err != nil {
		return turns.Conversation{}, false, fmt.Errorf("create conversation: encode defaults: %w", err)
	}
	kept, err := replyOptions(c.Defaults)
	if err != nil {
		return turns.Conversation{}, false, fmt.Errorf("create conversation: %w", err)
	}
	_, created, err := one(ctx, s.pool, createConversation, pgx.NamedArgs{
		"key": zeronull.UUID(c.Key), "tenant": string(c.Tenant), "subject": c.Subject, "kept": kept,
		"conversation": zeronull.UUID(c.ID.UUID), "title": c.Title, "defaults": string(defaults), "labels": labelsOf(c.Labels), "create_hash": c.CreateHash,
	}, pgx.RowTo[[16]byte])
	if err != nil {
		return turns.Conversation{}, false, mapWrite("create conversation", err)
	}
	stored, err := s.ReadConversation(ctx, c.Key)
	return stored, created, err
}

// labelsOf makes no labels an empty object, since JSON's null would match no query.
func labelsOf(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

const readConversation = `SELECT` + conversationColumns + ` FROM conversations c WHERE c.conversation_key = @key`

// ReadConversation implements turns.Conversations.
func (s *Store) ReadConversation(ctx context.Context, key turns.ConversationKey) (turns.Conversation, error) {
	row, found, err := one(ctx, s.pool, readConversation, pgx.NamedArgs{"key": zeronull.UUID(key)},
		pgx.RowToStructByName[conversationRow])
	if err != nil {
		return turns.Conversation{}, mapRead("read conversation", err)
	}
	if !found {
		return turns.Conversation{}, turns.NotFound("conversation", "conversation_id")
	}
	c, err := row.conversation()
	if err != nil {
		return turns.Conversation{}, fmt.Errorf("read conversation: %w", err)
	}
	return c, nil
}

// The last conversation that a list may look at comes with the others, since the next page begins there.
const listConversations = `
WITH looked AS MATERIALIZED (
	SELECT update_time, conversation_key FROM conversations
	WHERE tenant = @tenant AND subject = @subject AND deleted_at IS NULL
		AND (update_time, conversation_key) < (@before_time::timestamptz, @before_key::uuid)
	ORDER BY update_time DESC, conversation_key DESC LIMIT 1 OFFSET @look - 1
)
SELECT` + conversationColumns + `, COALESCE(c.conversation_key = (SELECT l.conversation_key FROM looked l), false) AS last
FROM conversations c
WHERE c.tenant = @tenant AND c.subject = @subject AND c.deleted_at IS NULL
	AND (c.update_time, c.conversation_key) < (@before_time::timestamptz, @before_key::uuid)
	AND (c.update_time, c.conversation_key) >= (COALESCE((SELECT l.update_time FROM looked l), '-infinity'),
		COALESCE((SELECT l.conversation_key FROM looked l), '00000000-0000-0000-0000-000000000000'))
	AND (c.labels @> @labels::jsonb OR c.conversation_key = (SELECT l.conversation_key FROM looked l))
ORDER BY c.update_time DESC, c.conversation_key DESC LIMIT @limit`

type listedConversation struct {
	conversationRow
	Last bool
}

// endOfTime is past every update, for a first page.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// ListConversations implements turns.Conversations.
func (s *Store) ListConversations(ctx context.Context, q turns.ConversationQuery) (turns.ConversationPage, error) {
	if q.BeforeTime.IsZero() {
		q.BeforeTime = endOfTime
	}
	rows, err := collect(ctx, s.pool, listConversations, pgx.NamedArgs{
		"tenant": string(q.Tenant), "subject": q.Subject, "before_time": q.BeforeTime, "before_key": [16]byte(q.BeforeKey),
		"labels": labelsOf(q.Labels), "limit": q.Limit, "look": int64(max(q.Look, 1)),
	}, pgx.RowToStructByName[listedConversation])
	if err != nil {
		return turns.ConversationPage{}, mapRead("list conversations", err)
	}
	list := make([]turns.Conversation, 0, len(rows))
	var last turns.ConversationKey
	for i := range rows {
		c, err := rows[i].conversation()
		if err != nil {
			return turns.ConversationPage{}, fmt.Errorf("list conversations: %w", err)
		}
		if rows[i].Last {
			last = c.Key
		}
		list = append(list, c)
	}
	return turns.PageOf(q, list, last), nil
}

const updateConversation = `
WITH stored AS (
	UPDATE conversations SET title = @title, defaults = @defaults, defaults_version = @defaults_version, labels = @labels,
		version = version + 1, update_time = clock_timestamp()
	WHERE conversation_key = @key AND version = @expect AND deleted_at IS NULL
	RETURNING conversation_key, defaults_version, update_time AS create_time
), kept AS (` + keepDefaults + `)
SELECT conversation_key FROM stored`

// UpdateConversation implements turns.Conversations.
func (s *Store) UpdateConversation(ctx context.Context, c turns.Conversation, expectVersion int64) (bool, error) {
	defaults, err := turns.EncodeOptions(c.Defaults)
	if err != nil {
		return false, fmt.Errorf("update conversation: encode defaults: %w", err)
	}
	kept, err := replyOptions(c.Defaults)
	if err != nil {
		return false, fmt.Errorf("update conversation: %w", err)
	}
	_, updated, err := one(ctx, s.pool, updateConversation, pgx.NamedArgs{
		"key": zeronull.UUID(c.Key), "title": c.Title, "defaults": string(defaults), "labels": labelsOf(c.Labels), "kept": kept,
		"defaults_version": c.DefaultsVersion, "expect": expectVersion,
	}, pgx.RowTo[[16]byte])
	return updated && err == nil, mapWrite("update conversation", err)
}
