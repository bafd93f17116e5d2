package sqlite

import (
	"context"

	"github.com/turnd/turnd/turns"
)

const insertDefaults = `INSERT INTO conversation_defaults (conversation_key, version, defaults, create_time)
	VALUES (@key, @version, @defaults, @now)
	ON CONFLICT (conversation_key, version) DO NOTHING`

// keepDefaults keeps a version of a conversation's defaults. What is kept under a version is never written again; defaults
// that set nothing need no row.
func (t *tx) keepDefaults(c turns.Conversation, version int32) error {
	defaults, err := optionsArg("defaults", c.Defaults)
	if err != nil || defaults.Value == "" {
		return err
	}
	_, err = t.exec(insertDefaults, arg("key", c.Key[:]), arg("version", version), defaults, arg("now", t.now))
	return err
}

const readDefaults = `SELECT defaults FROM conversation_defaults WHERE conversation_key = @key AND version = @version`

// ReadDefaults implements turns.Conversations.
func (s *Store) ReadDefaults(ctx context.Context, key turns.ConversationKey, version int32) (options turns.Options, err error) {
	err = s.readTx(ctx, "read defaults", func(t *tx) error {
		var defaults []byte
		if _, err := t.found(readDefaults, []any{arg("key", key[:]), arg("version", version)}, &defaults); err != nil {
			return err
		}
		options, err = turns.DecodeOptions(defaults)
		return asUnreadable(err)
	})
	return options, err
}
