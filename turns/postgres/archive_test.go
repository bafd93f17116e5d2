package postgres

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// useArchive copies a conversation under another tenant.
func (d database) useArchive(ctx context.Context, key turns.ConversationKey) error {
	if _, err := d.store.ArchiveNames(ctx, turns.ConversationKey{}, 50); err != nil {
		return err
	}
	if _, err := d.store.DeleteUnused(ctx, key, time.Hour, true); err != nil {
		return err
	}
	var head turns.ArchivedConversation
	records := append(storyRecords(), turns.ArchivedRecord{Defaults: &turns.ArchivedDefaults{Version: 1, CreateTime: time.Now()}})
	err := d.store.ReadArchived(ctx, key, func(c turns.ArchivedConversation) error {
		head = c
		return nil
	}, func(r turns.ArchivedRecord) error {
		if r.Row == nil || r.Row.Role == turns.RoleUser {
			records = append(records, r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	head.ID = turns.ConversationID{UUID: uuid.New()}
	_, err = d.store.WriteArchived(ctx, head, func(yield func(turns.ArchivedRecord, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}, true)
	return err
}

// momentary are the columns that say what a worker is doing right now, what follows from the conversation, and what it was
// created with: a repeat of that is not to be waited for across a move.
var momentary = map[string]string{
	"conversations":         `conversation_key|create_hash`,
	"conversation_defaults": `conversation_key`,
	"turns":                 `conversation_key|followed_until|next_lookup_at|lookups|deadline_at|traceparent`,
	"provider_calls":        `conversation_key|tenant|conversation_id|request_body`,
	"reply_takeovers":       `conversation_key`,
	"turn_repeats":          `conversation_key|tenant|conversation_id`,
}

func TestEveryColumnThatOutlivesAWorkerIsInTheArchive(t *testing.T) {
	d := openOwn(t)
	for table, record := range map[string]struct {
		columns string
		fields  any
	}{
		"conversations":         {archivedConversation, &turns.ArchivedConversation{}},
		"conversation_defaults": {archivedDefaults, &turns.ArchivedDefaults{}},
		"turns":                 {archivedRow, &turns.ArchivedRow{}},
		"provider_calls":        {archivedCall, &turns.ArchivedCall{}},
		"reply_takeovers":       {archivedTakeover, &turns.ArchivedTakeover{}},
		"turn_repeats":          {archivedRepeats, &turns.ArchivedRepeats{}},
	} {
		names, _ := turns.ArchiveColumns(record.fields)
		require.Equal(t, names, regexp.MustCompile(`,\s+`).Split(record.columns, -1), table)
		rows, err := d.rows.Query(t.Context(), "SELECT * FROM "+table+" LIMIT 0")
		require.NoError(t, err)
		for _, column := range rows.FieldDescriptions() {
			if !regexp.MustCompile("^(" + momentary[table] + ")$").MatchString(column.Name) {
				require.Contains(t, names, column.Name, "%s: an archive would lose it", table)
			}
		}
		rows.Close()
	}
}
