package postgres

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestAGuardThatIsMissingAndATurnThatIsAnsweredTwiceForWantOfItAreCounted(t *testing.T) {
	d := openOwn(t)
	claim := d.win(t, newClaim(d.worker(t)))
	d.win(t, newClaim(d.worker(t)))
	backlog := func() []int {
		b, err := d.store.Backlog(t.Context(), 10)
		require.NoError(t, err)
		return []int{b.Doubled, b.GuardsBroken}
	}
	require.Equal(t, []int{0, 0}, backlog())
	require.NoError(t, d.exec(t.Context(), "DROP INDEX one_live_reply_per_user_turn"))
	const same = "conversation_key, role, parent_id, generation, responds_to, epoch, owner, window_start, create_time"
	_, err := d.rows.Exec(t.Context(), "INSERT INTO turns (id, seq, attempt, status, content, end_time, "+same+
		") SELECT $1, 90, 9, 'complete', '[]', create_time, "+same+" FROM turns WHERE id = $2", uuid.New(), claim.Reply.ID.UUID)
	require.NoError(t, err)
	require.Equal(t, []int{1, 1}, backlog())
	require.NoError(t, d.exec(t.Context(), "UPDATE turns SET status = 'abandoned', reason = 'superseded' WHERE attempt = 9"))
	require.Equal(t, []int{0, 1}, backlog())
}
