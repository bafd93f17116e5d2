package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// keepDefaults keeps the defaults of a conversation that was just stored under their version. What is kept under a version
// is never written again; defaults that set nothing need no row.
const keepDefaults = `
	INSERT INTO conversation_defaults (conversation_key, version, defaults, create_time)
	SELECT c.conversation_key, c.defaults_version, @kept::text, c.create_time FROM stored c WHERE @kept::text <> ''
	ON CONFLICT (conversation_key, version) DO NOTHING`

const readDefaults = `SELECT defaults FROM conversation_defaults WHERE conversation_key = @key AND version = @version`

// ReadDefaults implements turns.Conversations.
func (s *Store) ReadDefaults(ctx context.Context, key turns.ConversationKey, version int32) (turns.Options, error) {
	defaults, _, err := one(ctx, s.pool, readDefaults, pgx.NamedArgs{"key": zeronull.UUID(key), "version": version}, pgx.RowTo[string])
	if err != nil {
		return turns.Options{}, mapRead("read defaults", err)
	}
	options, err := turns.DecodeOptions([]byte(defaults))
	if err != nil {
		return turns.Options{}, fmt.Errorf("read defaults: %w", err)
	}
	return options, nil
}
