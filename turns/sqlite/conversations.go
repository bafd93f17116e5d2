package sqlite

import (
	"context"
	"encoding/json"
	"math"

	"github.com/turnd/turnd/turns"
)

const conversationColumns = `SELECT c.conversation_key, c.conversation_id, c.tenant, c.subject, c.title, c.defaults, c.defaults_version, c.labels, c.create_hash,
		c.leaf_id, (SELECT id FROM turns r INDEXED BY one_running_reply_per_conversation
			WHERE r.conversation_key = c.conversation_key AND r.role = 'assistant' AND r.status = 'in_flight'),
		c.version, c.deleted_at IS NOT NULL, c.create_time, c.update_time
	FROM conversations c `

func scanConversation(scan func(...any) error) (c turns.Conversation, err error) {
	var key, defaults, labels []byte
	var created, updated int64
	if err := scan(&key, &c.ID.UUID, &c.Tenant, &c.Subject, &c.Title, &defaults, &c.DefaultsVersion, &labels, &c.CreateHash, &c.Leaf.UUID, &c.Running.UUID,
		&c.Version, &c.Deleted, &created, &updated); err != nil {
		return c, err
	}
	copy(c.Key[:], key)
	c.CreateTime, c.UpdateTime = timeOf(created), timeOf(updated)
	if c.Defaults, err = turns.DecodeOptions(defaults); err != nil {
		return c, err
	}
	return c, json.Unmarshal(labels, &c.Labels)
}

const createConversation = `INSERT INTO conversations (conversation_key, tenant, subject, conversation_id, title, defaults, labels,
		create_hash, create_time, update_time)
	VALUES (@key, @tenant, @subject, @conversation, @title, @defaults, @labels, @create_hash, @now, @now)
	ON CONFLICT (conversation_key) DO NOTHING`

// CreateConversation implements turns.Conversations.
func (s *Store) CreateConversation(ctx context.Context, c turns.Conversation) (stored turns.Conversation, created bool, err error) {
	args, err := shownArgs(c)
	if err != nil {
		return turns.Conversation{}, false, err
	}
	err = s.writeTx(ctx, "create conversation", func(t *tx) error {
		created, err = t.won(createConversation, append(args, arg("tenant", string(c.Tenant)), arg("subject", c.Subject),
			blob("conversation", c.ID.UUID), bytesArg("create_hash", c.CreateHash), arg("now", t.now))...)
		if err != nil {
			return err
		}
		if created {
			if err := t.keepDefaults(c, 1); err != nil {
				return err
			}
		}
		stored, err = t.conversation(c.Key)
		return err
	})
	if err != nil {
		return turns.Conversation{}, false, err
	}
	return stored, created, nil
}

// shownArgs names the key and the fields that a client may change.
func shownArgs(c turns.Conversation) ([]any, error) {
	defaults, err := turns.EncodeOptions(c.Defaults)
	if err != nil {
		return nil, err
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	labels, err := json.Marshal(c.Labels)
	if err != nil {
		return nil, err
	}
	return []any{arg("key", c.Key[:]), arg("title", c.Title), textArg("defaults", defaults), textArg("labels", labels)}, nil
}

const readConversation = conversationColumns + `WHERE c.conversation_key = @key`

// ReadConversation implements turns.Conversations.
func (s *Store) ReadConversation(ctx context.Context, key turns.ConversationKey) (c turns.Conversation, err error) {
	err = s.readTx(ctx, "read conversation", func(t *tx) error {
		c, err = t.conversation(key)
		return err
	})
	return c, err
}

func (t *tx) conversation(key turns.ConversationKey) (c turns.Conversation, err error) {
	found := false
	err = t.query(func(scan func(...any) error) error {
		found = true
		c, err = scanConversation(scan)
		return err
	}, readConversation, arg("key", key[:]))
	if err == nil && !found {
		err = turns.NotFound("conversation", "conversation_id")
	}
	return c, err
}

// lookedUpTo is the last conversation that a list may look at. It comes with the others, since the next page begins there.
const lookedUpTo = `SELECT update_time, conversation_key FROM conversations
	WHERE tenant = @tenant AND subject = @subject AND deleted_at IS NULL
		AND (update_time, conversation_key) < (@before_time, @before_key)
	ORDER BY update_time DESC, conversation_key DESC LIMIT 1 OFFSET @look - 1`

const listConversations = conversationColumns + `
	WHERE c.tenant = @tenant AND c.subject = @subject AND c.deleted_at IS NULL
		AND (c.update_time, c.conversation_key) < (@before_time, @before_key)
		AND c.update_time >= @last_time AND (c.update_time > @last_time OR c.conversation_key >= @last_key)
		AND (c.conversation_key = @last_key OR NOT EXISTS (SELECT 1 FROM json_each(@labels) q WHERE NOT EXISTS (
			SELECT 1 FROM json_each(c.labels) l WHERE l.key = q.key AND l.value = q.value)))
	ORDER BY c.update_time DESC, c.conversation_key DESC LIMIT @limit`

// ListConversations implements turns.Conversations.
func (s *Store) ListConversations(ctx context.Context, q turns.ConversationQuery) (page turns.ConversationPage, err error) {
	before := int64(math.MaxInt64)
	if !q.BeforeTime.IsZero() {
		before = q.BeforeTime.UnixMicro()
	}
	labels := []byte("{}")
	if len(q.Labels) > 0 {
		if labels, err = json.Marshal(q.Labels); err != nil {
			return page, err
		}
	}
	place := []any{arg("tenant", string(q.Tenant)), arg("subject", q.Subject), arg("before_time", before),
		arg("before_key", q.BeforeKey[:])}
	var rows []turns.Conversation
	lastTime, lastKey := int64(math.MinInt64), []byte{}
	err = s.readTx(ctx, "list conversations", func(t *tx) error {
		if _, err := t.found(lookedUpTo, append(place, arg("look", max(q.Look, 1))), &lastTime, &lastKey); err != nil {
			return err
		}
		return t.query(func(scan func(...any) error) error {
			c, err := scanConversation(scan)
			rows = append(rows, c)
			return err
		}, listConversations, append(place, textArg("labels", labels), arg("limit", q.Limit), arg("last_time", lastTime), arg("last_key", lastKey))...)
	})
	if err != nil {
		return turns.ConversationPage{}, err
	}
	var last turns.ConversationKey
	copy(last[:], lastKey)
	return turns.PageOf(q, rows, last), nil
}

const updateConversation = `UPDATE conversations SET title = @title, defaults = @defaults, defaults_version = @defaults_version,
		labels = @labels, version = version + 1, update_time = @now
	WHERE conversation_key = @key AND version = @version AND deleted_at IS NULL`

// UpdateConversation implements turns.Conversations.
func (s *Store) UpdateConversation(ctx context.Context, c turns.Conversation, expectVersion int64) (updated bool, err error) {
	args, err := shownArgs(c)
	if err != nil {
		return false, err
	}
	err = s.writeTx(ctx, "update conversation", func(t *tx) error {
		updated, err = t.won(updateConversation, append(args, arg("version", expectVersion),
			arg("defaults_version", c.DefaultsVersion), arg("now", t.now))...)
		if err != nil || !updated {
			return err
		}
		return t.keepDefaults(c, c.DefaultsVersion)
	})
	return updated && err == nil, err
}
