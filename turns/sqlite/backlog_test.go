package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns/sqlite"
)

func TestAGuardThatIsMissingAndATurnThatIsAnsweredTwiceForWantOfItAreCounted(t *testing.T) {
	path := file(t)
	store := mustOpen(t, sqlite.Config{Path: path, Migrate: up})
	backlog := func() []int {
		b, err := store.Backlog(t.Context(), 10)
		require.NoError(t, err)
		return []int{b.Doubled, b.GuardsBroken}
	}
	reply := func(id, status, end string) string {
		return `INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, status, attempt, epoch, owner, create_time, end_time)
			VALUES (x'01', ` + id + `, 'assistant', x'02', x'02', (SELECT max(seq) + 1 FROM turns), '` + status +
			`', (SELECT count(*) FROM turns), 1, x'09', 1, ` + end + `)`
	}
	statement(t, path,
		`INSERT INTO conversations (conversation_key, tenant, conversation_id, create_time, update_time) VALUES (x'01', 't', x'01', 1, 1)`,
		`INSERT INTO turns (conversation_key, id, role, seq, input_hash, create_time) VALUES (x'01', x'02', 'user', 1, x'01', 1)`,
		reply(`x'03'`, "in_flight", "NULL"))
	require.Equal(t, []int{0, 0}, backlog())
	statement(t, path, `DROP INDEX one_live_reply_per_user_turn`, reply(`x'04'`, "complete", "1"))
	require.Equal(t, []int{1, 1}, backlog())
	statement(t, path, `UPDATE turns SET status = 'abandoned', reason = 'superseded' WHERE id = x'04'`)
	require.Equal(t, []int{0, 1}, backlog())
}
