package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func quotaSettlements() []promise {
	return []promise{
		{"each outcome leaves what its turn came to, however often it is settled", eachOutcomeLeavesItsCharge},
		{"what is in flight or held keeps its reservation", whatIsNotOverKeepsIt},
		{"a release from a hold gives all back", aReleaseGivesBack},
		{"what is in line keeps its reservation, and gives it back when it leaves", whatLeavesTheLineGivesBack},
		{"a settlement that comes late follows the ledger", aLateSettlementFollowsTheLedger},
		{"a deleted turn is settled, and one in line gives its reservation back", aDeletedTurnIsSettled},
		{"of a turn whose rows are gone the charge stays", whatIsGoneStaysCharged},
		{"an erased conversation leaves no reservation behind, and what it came to", anErasedConversationIsSettled},
		{"what does not exist is passed over", whatIsNotThereIsPassedOver},
		{"what is settled of a quota is what nobody holds any more", whatIsSettledIsNotHeld},
		{"what has ended is found, the oldest first, of a subject, a tenant or all", whatHasEndedIsFound},
		{"old days are forgotten in pieces, and what is open is not", oldDaysAreForgotten},
	}
}

// settleQuota settles a claim's reservation.
func (w *world) settleQuota(c turns.Claim) {
	w.t.Helper()
	require.NoError(w.t, w.Store.SettleReservations(w.ctx, []turns.ReservationKey{reservationOf(c)}))
}

// open is how many reservations are open.
func (w *world) open() int64 { return w.count("SELECT count(*) FROM quota_reservations WHERE open") }

func eachOutcomeLeavesItsCharge(t *testing.T, w *world) {
	var want turns.QuotaUse
	for _, reason := range append([]turns.Reason{""}, turns.Reasons...) {
		claim := w.win(reserving(w.first(newConversation()), bounds()))
		e := completing(claim, 0, whole("a"))
		if reason != "" {
			e = abandoning(claim, 0, turns.ReasonCancelled)
		}
		w.finish(e)
		if reason != "" {
			w.exec("UPDATE turns SET reason = '"+string(reason)+"' WHERE id = %s", claim.Reply.ID.UUID)
		}
		for range 3 {
			w.settleQuota(claim)
		}
		switch reason {
		case turns.ReasonHeldReleased:
		case turns.ReasonProviderError, turns.ReasonProviderRefused, turns.ReasonEmpty:
			want.Tokens += 13
		default:
			want.Tokens += 13
			want.Turns++
		}
		w.used("subject", want)
		require.Zero(t, w.open(), reason)
	}
}

func whatIsNotOverKeepsIt(t *testing.T, w *world) {
	claim := w.win(reserving(w.first(newConversation()), bounds()))
	w.unchanged(func() { w.settleQuota(claim) })
	w.finish(holding(claim, 0))
	w.unchanged(func() { w.settleQuota(claim) })
	n, err := w.Store.SettleOpen(w.ctx, "", "", 10)
	require.NoError(t, err)
	require.Zero(t, n)
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 100})
}

func aReleaseGivesBack(t *testing.T, w *world) {
	c := newConversation()
	claim := w.win(reserving(w.first(c), bounds()))
	w.finish(holding(claim, 0))
	w.exec("UPDATE turns SET status = 'abandoned', reason = 'held_released', next_lookup_at = NULL, end_time = create_time WHERE id = %s", claim.Reply.ID.UUID)
	w.settleQuota(claim)
	w.used("subject", turns.QuotaUse{})
	require.Zero(t, w.open())
	w.win(reserving(w.again(c, claim.Turn), bounds()))
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 100})
	require.EqualValues(t, 1, w.open(), "it is open again")
}

func whatLeavesTheLineGivesBack(t *testing.T, w *world) {
	c, _ := w.fresh()
	e := w.enqueueing(c, 8)
	e.Reserve = &turns.Reservation{Subject: "subject", Tokens: 100, Limits: bounds()}
	r, err := w.Store.Enqueue(w.ctx, e)
	require.NoError(t, err)
	require.True(t, r.Won)
	key := []turns.ReservationKey{{Key: c.key, Turn: e.Turn, Generation: 1}}
	w.unchanged(func() { require.NoError(t, w.Store.SettleReservations(w.ctx, key)) })
	w.depart(c, e.Turn)
	require.NoError(t, w.Store.SettleReservations(w.ctx, key))
	w.used("subject", turns.QuotaUse{})
	require.Zero(t, w.open())
}

func (w *world) depart(c conversation, turn turns.TurnID) {
	w.t.Helper()
	r, err := w.Store.LeaveLine(w.ctx, turns.Departure{Key: c.key, ExpectVersion: w.lookup(c, turn).Version, Turn: turn,
		Verb: turns.VerbCancel, Reason: turns.ReasonCancelled, Reply: newReplyID(), Owner: w.worker, Model: "demo"})
	require.NoError(w.t, err)
	require.True(w.t, r.Won)
}

func aLateSettlementFollowsTheLedger(_ *testing.T, w *world) {
	claim := w.win(reserving(w.first(newConversation()), bounds()))
	w.finish(completing(claim, 0, whole("a")))
	w.settleQuota(claim)
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 13})
	w.exec("UPDATE provider_calls SET output_tokens = 400 WHERE call_id = %s", claim.Call.ID.UUID)
	w.settleQuota(claim)
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 409})
	w.exec("UPDATE provider_calls SET output_tokens = 0, input_tokens = 0 WHERE call_id = %s", claim.Call.ID.UUID)
	w.settleQuota(claim)
	w.used("subject", turns.QuotaUse{Turns: 1})
}

func aDeletedTurnIsSettled(t *testing.T, w *world) {
	c := newConversation()
	claim := w.win(reserving(w.first(c), bounds()))
	w.finish(completing(claim, 0, whole("a")))
	running := w.win(reserving(w.next(c), bounds()))
	e := w.enqueueing(c, 8)
	e.Reserve = &turns.Reservation{Subject: "subject", Tokens: 100, Limits: bounds()}
	r, err := w.Store.Enqueue(w.ctx, e)
	require.NoError(t, err)
	require.True(t, r.Won)
	w.used("subject", turns.QuotaUse{Turns: 3, Tokens: 300})
	w.deleteTurn(c, e.Turn)
	w.used("subject", turns.QuotaUse{Turns: 2, Tokens: 200})
	w.deleteTurn(c, running.Turn)
	w.used("subject", turns.QuotaUse{Turns: 2, Tokens: 100 + estimatedOf(running)})
	w.deleteTurn(c, claim.Turn)
	w.used("subject", turns.QuotaUse{Turns: 2, Tokens: 13 + estimatedOf(running)})
	require.Zero(t, w.open())
}

// estimatedOf are the tokens that are guessed of a call which was cut off before anything came.
func estimatedOf(c turns.Claim) int64 { return int64(c.Call.RequestBytes*10+34) / 35 }

func whatIsGoneStaysCharged(t *testing.T, w *world) {
	c := newConversation()
	claim := w.win(reserving(w.first(c), bounds()))
	w.finish(completing(claim, 0, whole("a")))
	w.exec("UPDATE turns SET erased = true, content = '' WHERE id = %s", claim.Turn.UUID)
	w.settleQuota(claim)
	require.Zero(t, w.open())
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 100})
}

func anErasedConversationIsSettled(t *testing.T, w *world) {
	c := newConversation()
	for range 3 {
		claim := w.win(reserving(w.next(c), bounds()))
		w.finish(completing(claim, 0, whole("a")))
	}
	more, err := w.Store.EraseConversation(w.ctx, c.key, 2)
	require.NoError(t, err)
	require.False(t, more, "it is not deleted")
	require.EqualValues(t, 3, w.open())
	_, err = w.Store.DeleteConversation(w.ctx, c.key)
	require.NoError(t, err)
	for more = true; more; {
		more, err = w.Store.EraseConversation(w.ctx, c.key, 2)
		require.NoError(t, err)
	}
	require.Zero(t, w.count("SELECT count(*) FROM quota_reservations"))
	w.used("subject", turns.QuotaUse{Turns: 3, Tokens: 39})
}

func whatIsNotThereIsPassedOver(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.unchanged(func() {
		w.settleQuota(claim)
		require.NoError(t, w.Store.SettleReservations(w.ctx, nil))
	})
}

func whatIsSettledIsNotHeld(t *testing.T, w *world) {
	settled := func(subject string, turnsOf, tokens int64) {
		t.Helper()
		got, err := w.Store.QuotaSettled(w.ctx, "tenant", subject)
		require.NoError(t, err)
		require.Greater(t, got.Left, time.Duration(0))
		require.LessOrEqual(t, got.Left, 24*time.Hour)
		require.Equal(t, []int64{turnsOf, tokens}, []int64{got.Turns, got.Tokens}, "of %q", subject)
	}
	settled("subject", 0, 0)
	settled("", 0, 0)
	ended := w.win(reserving(w.first(newConversation()), bounds()))
	w.finish(completing(ended, 0, whole("a")))
	settled("subject", 0, 0)
	w.settleQuota(ended)
	running := w.first(newConversation())
	for _, subject := range []string{"", "other"} {
		another := w.first(newConversation())
		another.Subject = subject
		w.win(reserving(another, bounds()))
		settled(turns.CountedAs(subject), 0, 0)
	}
	w.win(reserving(running, turns.SubmissionLimits{SubjectTurns: 1000})) // which its tenant does not count
	settled("subject", 1, 13)
	settled("", 1, 13)
	require.Equal(t, turns.QuotaUse{Turns: 2, Tokens: 113}, w.charged("tenant", "subject"))
	require.Equal(t, turns.QuotaUse{Turns: 3, Tokens: 213}, w.charged("tenant", ""))
	w.exec("UPDATE quota_reservations SET day = '2001-01-01' WHERE open")
	settled("subject", 2, 113) // what is open of another day is none of this one's
	settled("", 3, 213)
}

func whatHasEndedIsFound(t *testing.T, w *world) {
	other := conversationOf("another", uuid.New())
	var ended []turns.Claim
	for _, c := range []conversation{newConversation(), other, newConversation()} {
		claim := w.win(reserving(w.first(c), bounds()))
		w.finish(completing(claim, 0, whole("a")))
		ended = append(ended, claim)
	}
	w.win(reserving(w.first(newConversation()), bounds()))
	isOpen := func(c turns.Claim) bool {
		return w.count("SELECT count(*) FROM quota_reservations WHERE open AND turn_id = %s", c.Turn.UUID) == 1
	}
	n, err := w.Store.SettleOpen(w.ctx, "tenant", "nobody", 10)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = w.Store.SettleOpen(w.ctx, "tenant", "subject", 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.False(t, isOpen(ended[0]))
	require.True(t, isOpen(ended[2]))
	n, err = w.Store.SettleOpen(w.ctx, "tenant", "", 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.True(t, isOpen(ended[1]))
	n, err = w.Store.SettleOpen(w.ctx, "", "", 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.EqualValues(t, 1, w.open(), "one is in flight")
	w.used("subject", turns.QuotaUse{Turns: 3, Tokens: 126})
}

func oldDaysAreForgotten(t *testing.T, w *world) {
	limits := bounds()
	limits.PerMinute = 10
	for range 3 {
		claim := w.win(reserving(w.first(newConversation()), limits))
		w.finish(completing(claim, 0, whole("a")))
		w.settleQuota(claim)
	}
	w.win(reserving(w.first(newConversation()), limits))
	forget := func() bool {
		more, err := w.Store.ForgetQuotas(w.ctx, hour, 2)
		require.NoError(t, err)
		return more
	}
	w.unchanged(func() { require.False(t, forget()) })
	w.aYearLater()
	require.True(t, forget())
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM quota_reservations"))
	require.False(t, forget())
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM quota_reservations"))
	require.EqualValues(t, 1, w.open())
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM quotas"), "the minute's")
	require.NoError(t, w.Store.SettleReservations(w.ctx, nil))
	w.used("subject", turns.QuotaUse{})
}
