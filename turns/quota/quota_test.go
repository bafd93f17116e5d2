package quota_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/quota"
)

const today = "2026-03-01"

var now = time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)

// ask is a reservation of 100 tokens for a new turn of a subject.
func ask(subject string, limits turns.SubmissionLimits) quota.Ask {
	return quota.Ask{ReservationKey: turns.ReservationKey{Turn: turns.TurnID{UUID: uuid.New()}, Generation: 1}, Tenant: "t",
		Reserve: turns.Reservation{Subject: subject, Tokens: 100, Limits: limits, Submission: true}}
}

func row(subject string, turns, tokens int64) quota.Row {
	return quota.Row{Name: quota.Name{Tenant: "t", Subject: subject, Day: today}, Turns: turns, Tokens: tokens}
}

func move(subject, day string, turns, tokens int64) quota.Move {
	return quota.Move{Name: quota.Name{Tenant: "t", Subject: subject, Day: day}, Turns: turns, Tokens: tokens}
}

var both = turns.SubmissionLimits{SubjectTurns: 3, TenantTokens: 1000}

func TestRowsAreLockedInOneOrderTheTenantsOwnFirst(t *testing.T) {
	a, b := ask("b", both), ask("a", both)
	b.Tenant = "s"
	b.Reserve.Limits.PerMinute = 5
	names := quota.Plan([]quota.Ask{a, b}, today).Names()
	require.Equal(t, []quota.Name{{"s", "", today}, {"s", "a", quota.BucketDay}, {"s", "a", today}, {"t", "", today}, {"t", "b", today}}, names)
}

func TestEachItemOfABatchCountsBesideThoseBefore(t *testing.T) {
	asks := []quota.Ask{ask("a", both), ask("a", both), ask("b", both)}
	w, refused := quota.Plan(asks, today).Admit([]quota.Row{row("a", 2, 0)}, now)
	require.Len(t, refused, 1)
	require.Equal(t, quota.Refusal{N: 1, Met: turns.LimitMet{Limit: turns.LimitTurns, Max: 3, Used: 3, Asked: 1, Wait: 6 * time.Hour}}, refused[0])
	require.Len(t, w.Shares, 2)
	require.Equal(t, []quota.Move{move("", today, 2, 200), move("a", today, 1, 100), move("b", today, 1, 100)}, w.Moves)

	_, refused = quota.Plan(asks[:1], today).Admit([]quota.Row{row("a", 3, 0)}, now)
	require.True(t, refused[0].Alone, "no other item is to blame")
}

func TestAFurtherAttemptWithinItsShareIsNeverRefused(t *testing.T) {
	a := ask("a", both)
	a.Reserve.Submission = false
	share := quota.Share{ReservationKey: a.ReservationKey, Tenant: "t", Subject: "a", Day: today, OfSubject: true, OfTenant: true, Turns: 1, Tokens: 100, Open: true}
	a.Old = &share
	plan := quota.Plan([]quota.Ask{a}, today)
	require.Empty(t, plan.Names(), "no row is looked at")
	w, refused := plan.Admit(nil, now)
	require.Empty(t, refused)
	require.Equal(t, quota.Writes{Shares: []quota.Share{share}}, w)
}

func TestAShareMovesToTheDayOfItsAttempt(t *testing.T) {
	a := ask("a", both)
	a.Old = &quota.Share{ReservationKey: a.ReservationKey, Tenant: "t", Subject: "a", Day: "2026-02-28", OfSubject: true, OfTenant: true,
		Turns: 1, Tokens: 100, Before: 5, Open: true}
	a.Spent = 45
	w, refused := quota.Plan([]quota.Ask{a}, today).Admit(nil, now)
	require.Empty(t, refused)
	require.Equal(t, []quota.Move{move("", "2026-02-28", -1, -60), move("", today, 1, 100), move("a", "2026-02-28", -1, -60), move("a", today, 1, 100)}, w.Moves,
		"40 tokens stay where they were taken")
	require.EqualValues(t, 45, w.Shares[0].Before, "and are not charged here")
	require.Equal(t, []quota.Name{{"t", "", today}, {"t", "a", today}}, quota.Plan([]quota.Ask{a}, today).Made(), "a former day is not made again")
}

func TestALimitThatCameDuringTheDayCountsWhatWasChargedBeside(t *testing.T) {
	a := ask("a", turns.SubmissionLimits{SubjectTurns: 3, TenantTurns: 3})
	a.Old = &quota.Share{ReservationKey: a.ReservationKey, Tenant: "t", Subject: "a", Day: today, OfSubject: true, Turns: 1, Tokens: 100, Open: true}
	w, refused := quota.Plan([]quota.Ask{a}, today).Admit([]quota.Row{row("a", 1, 100)}, now)
	require.Empty(t, refused)
	require.Equal(t, []quota.Move{move("", today, 1, 100)}, w.Moves)
}

func TestAMinuteLetsInItsBurstAndThenOneAfterTheOther(t *testing.T) {
	limits := turns.SubmissionLimits{PerMinute: 3}
	bucket := quota.Row{Name: quota.Name{Tenant: "t", Subject: "a", Day: quota.BucketDay}}
	at := now
	submit := func() (waits time.Duration) {
		w, refused := quota.Plan([]quota.Ask{ask("a", limits)}, today).Admit([]quota.Row{bucket}, at)
		if len(refused) > 0 {
			require.Equal(t, turns.LimitSubmissions, refused[0].Met.Limit)
			return refused[0].Met.Wait
		}
		bucket.NextAt = w.Moves[0].NextAt
		return 0
	}
	for range 3 {
		require.Zero(t, submit())
	}
	wait := submit()
	require.Equal(t, 20*time.Second, wait)
	at = at.Add(wait - time.Microsecond)
	require.NotZero(t, submit())
	at = at.Add(time.Microsecond)
	require.Zero(t, submit())
	require.Equal(t, 20*time.Second, submit())
	at = at.Add(time.Hour)
	for range 3 {
		require.Zero(t, submit())
	}
	require.NotZero(t, submit(), "silence saves up no more than a minute")
}

func TestABatchOfOneSubjectTakesItsMinuteTogether(t *testing.T) {
	limits := turns.SubmissionLimits{PerMinute: 2}
	asks := []quota.Ask{ask("a", limits), ask("a", limits), ask("a", limits)}
	w, refused := quota.Plan(asks, today).Admit(nil, now)
	require.Len(t, refused, 1)
	require.False(t, refused[0].Alone)
	require.Equal(t, now.Add(time.Minute), w.Moves[0].NextAt)
}

func TestASettlementFollowsTheOutcome(t *testing.T) {
	share := quota.Share{Tenant: "t", Subject: "a", Day: today, OfSubject: true, Turns: 1, Tokens: 100, Before: 10, Open: true}
	ended := func(status turns.Status, reason turns.Reason) quota.Outcome {
		return quota.Outcome{Stored: true, Status: status, Reason: reason, Called: true, Spent: 50}
	}
	waiting := quota.Outcome{Stored: true, Waiting: true}
	for _, c := range []struct {
		outcome quota.Outcome
		turns   int64
		tokens  int64
		open    bool
	}{
		{waiting, 1, 100, true},
		{ended(turns.StatusInFlight, ""), 1, 100, true},
		{ended(turns.StatusHeld, ""), 1, 100, true},
		{ended(turns.StatusComplete, ""), 1, 40, false},
		{ended(turns.StatusAbandoned, turns.ReasonAmbiguous), 1, 40, false},
		{ended(turns.StatusAbandoned, turns.ReasonProviderError), 0, 40, false},
		{ended(turns.StatusAbandoned, turns.ReasonHeldReleased), 0, 0, false},
		{quota.Outcome{Stored: true, Status: turns.StatusAbandoned, Reason: turns.ReasonCancelled}, 0, 0, false},
		{quota.Outcome{Stored: true}, 0, 0, false},
		{quota.Outcome{}, 1, 100, false},
	} {
		w, closed := quota.Settle([]quota.Settled{{Share: share, Outcome: c.outcome}})
		require.Equal(t, !c.open, closed == 1, c.outcome)
		after := share
		if c.open {
			require.Empty(t, w.Shares, c.outcome)
		} else {
			require.Len(t, w.Shares, 1, c.outcome)
			after = w.Shares[0]
		}
		require.Equal(t, []any{c.turns, c.tokens, c.open}, []any{after.Turns, after.Tokens, after.Open}, c.outcome)
		again, _ := quota.Settle([]quota.Settled{{Share: after, Outcome: c.outcome}})
		require.Empty(t, again, "settled again")
	}
}
