package storetest

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// The unique indexes are the last guard, under every statement of the store. So they are tried by SQL that asks nobody.
func indexes() []promise {
	return []promise{
		{"one_live_reply_per_user_turn refuses a second live reply by itself", theIndexRefusesASecondLive},
		{"one_running_reply_per_conversation refuses a second running reply by itself", theIndexRefusesASecondRunning},
		{"an abandoned reply takes no slot", anAbandonedReplyTakesNoSlot},
		{"no status, reason or role outside the table can be stored", onlyWhatTheTableHasIsStored},
	}
}

// plant copies a reply's row under a new id with a status of its own, as an answer to a turn.
func (w *world) plant(of turns.Claim, turn turns.TurnID, status, reason, endTime string) error {
	return w.Exec(w.ctx, w.sql(`INSERT INTO turns (conversation_key, id, role, parent_id, seq, responds_to, status, reason,
		attempt, epoch, owner, create_time, end_time)
		SELECT conversation_key, %s, role, %s, seq + 100, %s, '`+status+`', '`+reason+`', attempt + 100, epoch, owner,
		create_time, `+endTime+` FROM turns WHERE id = %s`, uuid.New(), turn.UUID, turn.UUID, of.Reply.ID.UUID))
}

func theIndexRefusesASecondLive(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	w.unchanged(func() {
		require.Error(t, w.plant(claim, claim.Turn, "complete", "", "create_time"))
		require.Error(t, w.plant(claim, claim.Turn, "held", "", "NULL"))
		require.Error(t, w.plant(claim, claim.Turn, "in_flight", "", "NULL"))
	})
}

func theIndexRefusesASecondRunning(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.win(w.next(c))
	w.unchanged(func() { require.Error(t, w.plant(second, claim.Turn, "in_flight", "", "NULL")) })
	require.NoError(t, w.plant(second, claim.Turn, "held", "", "NULL"), "held does not block the conversation")
}

func anAbandonedReplyTakesNoSlot(t *testing.T, w *world) {
	_, claim := w.fresh()
	require.NoError(t, w.plant(claim, claim.Turn, "abandoned", "shutdown", "create_time"))
}

func onlyWhatTheTableHasIsStored(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.win(w.next(c))
	w.unchanged(func() {
		require.Error(t, w.plant(second, claim.Turn, "queued", "", "NULL"))
		require.Error(t, w.plant(second, claim.Turn, "abandoned", "", "create_time"))
		require.Error(t, w.plant(second, claim.Turn, "abandoned", "bored", "create_time"))
		require.Error(t, w.plant(second, claim.Turn, "held", "shutdown", "NULL"))
		require.Error(t, w.plant(second, claim.Turn, "complete", "", "NULL"), "an end has a time")
	})
	for _, reason := range turns.Reasons {
		w.exec("UPDATE turns SET reason = '"+string(reason)+"' WHERE id = %s", claim.Reply.ID.UUID)
	}
}
