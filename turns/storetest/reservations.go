package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func reservations() []promise {
	return []promise{
		{"a won claim charges its subject and its tenant", aWonClaimCharges},
		{"a claim that nobody bounds charges nothing", anUnboundedClaimChargesNothing},
		{"a claim that is lost charges nothing", aLostClaimChargesNothing},
		{"a claim that meets a limit writes nothing and says which", aMetLimitWritesNothing},
		{"the tenant's quota is met by its other subjects too", aTenantsQuotaIsShared},
		{"a further attempt of a generation is charged with no further turn", aFurtherAttemptIsWithinItsShare},
		{"a further attempt reserves what is on top of what was taken", aFurtherAttemptReservesOnTop},
		{"a refunded turn is charged anew, and under the limits", aRefundedTurnIsChargedAnew},
		{"a regenerated reply is charged as another turn", aRegenerateIsAnother},
		{"an attempt on another day moves its share there, and not what was taken", aShareMovesToItsDay},
		{"a turn in line is charged once, for its line and its start", aTurnInLineIsChargedOnce},
		{"a turn that meets a limit does not come into line", aMetLimitKeepsOutOfLine},
		{"of one batch all charges count", aBatchCountsAll},
		{"items of a batch with a reservation and without are answered each", aMixedBatchIsAnsweredEach},
		{"a minute lets in its submissions at once, and then tells to wait", aMinuteLetsInItsBurst},
		{"a start from the line is no submission", aStartIsNoSubmission},
		{"the minute goes on over midnight", theMinuteGoesOn},
		{"who has no name has a quota like a subject", theNamelessHaveAQuota},
		{"quotas of tenants and subjects are apart", quotasAreApart},
		{"what a subject has used says how far it is ahead of its minute", aUseSaysHowFarItsSubjectIsAhead},
	}
}

// bounds are limits that nothing here meets.
func bounds() turns.SubmissionLimits {
	return turns.SubmissionLimits{SubjectTurns: 1000, SubjectTokens: 1_000_000, TenantTurns: 1000, TenantTokens: 1_000_000}
}

// reserving is a claim with a reservation of 100 tokens.
func reserving(c turns.Claim, limits turns.SubmissionLimits) turns.Claim {
	c.Reserve = &turns.Reservation{Subject: c.Subject, Tokens: 100, Limits: limits, Submission: true}
	return c
}

func reservationOf(c turns.Claim) turns.ReservationKey {
	return turns.ReservationKey{Key: c.Key, Turn: c.Turn, Generation: c.Reply.Generation}
}

// used demands what a subject and the tenant are charged with today.
func (w *world) used(subject string, want turns.QuotaUse) {
	w.t.Helper()
	for _, s := range []string{subject, ""} {
		require.Equal(w.t, want, w.charged("tenant", s), "of %q", s)
	}
}

// charged is what a subject is charged with today, without the times that go with it.
func (w *world) charged(tenant turns.Tenant, subject string) turns.QuotaUse {
	w.t.Helper()
	got, err := w.Store.QuotaUsed(w.ctx, tenant, subject)
	require.NoError(w.t, err)
	require.Greater(w.t, got.Left, time.Duration(0))
	require.LessOrEqual(w.t, got.Left, 24*time.Hour)
	got.Left, got.Ahead = 0, 0
	return got
}

// meets sends a claim that must meet a limit and write nothing.
func (w *world) meets(c turns.Claim, want turns.LimitMet) {
	w.t.Helper()
	w.unchanged(func() {
		w.t.Helper()
		r := w.claim(c)
		require.False(w.t, r.Won)
		w.isMet(r.Met, want)
	})
}

func (w *world) isMet(met *turns.LimitMet, want turns.LimitMet) {
	w.t.Helper()
	require.NotNil(w.t, met)
	equal(w.t, want, *met, cmpopts.IgnoreFields(turns.LimitMet{}, "Wait"))
	most := 24 * time.Hour
	if met.Limit == turns.LimitSubmissions {
		most = time.Minute
	}
	require.Greater(w.t, met.Wait, time.Duration(0))
	require.LessOrEqual(w.t, met.Wait, most)
}

func aWonClaimCharges(t *testing.T, w *world) {
	w.win(reserving(w.first(newConversation()), bounds()))
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 100})
	w.win(reserving(w.first(newConversation()), bounds()))
	w.used("subject", turns.QuotaUse{Turns: 2, Tokens: 200})
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM quota_reservations WHERE open AND turns = 1 AND tokens = 100"))
}

func anUnboundedClaimChargesNothing(t *testing.T, w *world) {
	w.fresh()
	require.Zero(t, w.count("SELECT (SELECT count(*) FROM quotas) + (SELECT count(*) FROM quota_reservations)"))
	w.win(reserving(w.first(newConversation()), turns.SubmissionLimits{SubjectTurns: 5}))
	require.Zero(t, w.count("SELECT count(*) FROM quotas WHERE subject = ''"), "nobody bounds the tenant")
}

func aLostClaimChargesNothing(_ *testing.T, w *world) {
	limits := bounds()
	limits.PerMinute = 10
	c, _ := w.fresh()
	w.lose(reserving(w.first(c), limits))
	w.lose(reserving(w.next(c), limits))
	won := w.win(reserving(w.first(newConversation()), limits))
	w.lose(won)
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 100})
}

func aMetLimitWritesNothing(_ *testing.T, w *world) {
	w.win(reserving(w.first(newConversation()), bounds()))
	limits := bounds()
	limits.SubjectTurns = 1
	w.meets(reserving(w.first(newConversation()), limits), turns.LimitMet{Limit: turns.LimitTurns, Max: 1, Used: 1, Asked: 1})
	limits = bounds()
	limits.SubjectTokens = 199
	w.meets(reserving(w.first(newConversation()), limits), turns.LimitMet{Limit: turns.LimitTokens, Max: 199, Used: 100, Asked: 100})
	limits.SubjectTokens = 200
	w.win(reserving(w.first(newConversation()), limits))
}

func aTenantsQuotaIsShared(t *testing.T, w *world) {
	w.win(reserving(w.first(newConversation()), bounds()))
	other := w.first(newConversation())
	other.Subject = "other"
	limits := bounds()
	limits.TenantTurns = 1
	w.meets(reserving(other, limits), turns.LimitMet{Limit: turns.LimitTurns, OfTenant: true, Max: 1, Used: 1, Asked: 1})
	limits = bounds()
	limits.TenantTokens = 150
	w.meets(reserving(other, limits), turns.LimitMet{Limit: turns.LimitTokens, OfTenant: true, Max: 150, Used: 100, Asked: 100})
	limits = bounds()
	limits.SubjectTurns = 1
	w.win(reserving(other, limits))
	require.Equal(t, turns.QuotaUse{Turns: 1, Tokens: 100}, w.charged("tenant", "other"))
}

func aFurtherAttemptIsWithinItsShare(t *testing.T, w *world) {
	limits := bounds()
	limits.SubjectTurns, limits.TenantTurns = 1, 1
	c := newConversation()
	claim := w.win(reserving(w.first(c), limits))
	for _, reason := range []turns.Reason{turns.ReasonShutdown, turns.ReasonDeadline, turns.ReasonAmbiguous, turns.ReasonProviderError} {
		w.finish(abandoning(claim, 0, reason))
		claim = w.win(reserving(w.again(c, claim.Turn), limits))
	}
	got, err := w.Store.QuotaUsed(w.ctx, "tenant", "subject")
	require.NoError(t, err)
	require.EqualValues(t, 1, got.Turns)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM quota_reservations"))
}

func aFurtherAttemptReservesOnTop(_ *testing.T, w *world) {
	c := newConversation()
	claim := w.win(reserving(w.first(c), bounds()))
	w.finish(abandoning(claim, 0, turns.ReasonShutdown)) // took 13 tokens
	limits := bounds()
	limits.SubjectTokens = 112
	w.meets(reserving(w.again(c, claim.Turn), limits), turns.LimitMet{Limit: turns.LimitTokens, Max: 112, Used: 100, Asked: 13})
	limits.SubjectTokens = 113
	w.win(reserving(w.again(c, claim.Turn), limits))
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 113})
}

func aRefundedTurnIsChargedAnew(_ *testing.T, w *world) {
	c := newConversation()
	claim := w.win(reserving(w.first(c), bounds()))
	w.finish(abandoning(claim, 0, turns.ReasonProviderError))
	w.settleQuota(claim)
	w.used("subject", turns.QuotaUse{Tokens: 13})
	limits := bounds()
	limits.SubjectTurns = 1
	w.win(reserving(w.first(newConversation()), bounds()))
	w.meets(reserving(w.again(c, claim.Turn), limits), turns.LimitMet{Limit: turns.LimitTurns, Max: 1, Used: 1, Asked: 1})
	w.win(reserving(w.again(c, claim.Turn), bounds()))
	w.used("subject", turns.QuotaUse{Turns: 2, Tokens: 213})
}

func aRegenerateIsAnother(_ *testing.T, w *world) {
	c := newConversation()
	claim := w.win(reserving(w.first(c), bounds()))
	w.finish(completing(claim, 0, whole("a")))
	w.win(reserving(w.regenerate(c, claim.Turn), bounds()))
	w.used("subject", turns.QuotaUse{Turns: 2, Tokens: 200})
}

// aYearLater moves all that is charged to a day of the past.
func (w *world) aYearLater() {
	w.t.Helper()
	w.exec("UPDATE quotas SET day = '2001-01-01' WHERE next_at IS NULL")
	w.exec("UPDATE quota_reservations SET day = '2001-01-01'")
}

func aShareMovesToItsDay(t *testing.T, w *world) {
	c := newConversation()
	claim := w.win(reserving(w.first(c), bounds()))
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	w.aYearLater()
	claim = w.win(reserving(w.again(c, claim.Turn), bounds()))
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 100})
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM quotas WHERE day = '2001-01-01' AND turns = 0 AND tokens = 13"))
	w.finish(completing(claim, 0, whole("a")))
	w.settleQuota(claim)
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 13})
	w.aYearLaterAgain()
	w.win(reserving(w.regenerate(c, claim.Turn), bounds()))
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM quotas WHERE day = '2002-01-01' AND turns = 1 AND tokens = 13"))
}

func (w *world) aYearLaterAgain() {
	w.exec("UPDATE quotas SET day = '2002-01-01' WHERE next_at IS NULL AND day > '2002-01-01'")
	w.exec("UPDATE quota_reservations SET day = '2002-01-01'")
}

func aTurnInLineIsChargedOnce(t *testing.T, w *world) {
	c, running := w.fresh()
	e := w.enqueueing(c, 8)
	limits := bounds()
	limits.SubjectTurns = 1
	e.Reserve = &turns.Reservation{Subject: "subject", Tokens: 100, Limits: limits, Submission: true}
	r, err := w.Store.Enqueue(w.ctx, e)
	require.NoError(t, err)
	require.True(t, r.Won)
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 100})
	w.finish(completing(running, 0, whole("a")))
	claim := w.again(c, e.Turn)
	claim.Start = &turns.Start{Parent: running.Reply.ID.Row()}
	w.win(reserving(claim, limits))
	w.used("subject", turns.QuotaUse{Turns: 1, Tokens: 100})
}

func aMetLimitKeepsOutOfLine(t *testing.T, w *world) {
	c, _ := w.fresh()
	w.win(reserving(w.first(newConversation()), bounds()))
	e := w.enqueueing(c, 8)
	e.Reserve = &turns.Reservation{Subject: "subject", Tokens: 100, Limits: turns.SubmissionLimits{SubjectTurns: 1}}
	r := w.notEnqueued(e)
	require.False(t, r.Full)
	w.isMet(r.Met, turns.LimitMet{Limit: turns.LimitTurns, Max: 1, Used: 1, Asked: 1})
	e.Max = 0
	require.True(t, w.notEnqueued(e).Full)
}

func aBatchCountsAll(t *testing.T, w *world) {
	limits := bounds()
	limits.SubjectTurns, limits.PerMinute = 2, 100
	var batch []turns.Claim
	for range 4 {
		batch = append(batch, reserving(w.first(newConversation()), limits))
	}
	batch[0].Reply.Owner = turns.WorkerID{UUID: uuid.New()} // lost, so that it takes no place
	results, err := w.Store.Claim(w.ctx, batch)
	require.NoError(t, err)
	require.False(t, results[0].Won)
	require.Nil(t, results[0].Met)
	won := 0
	for _, r := range results[1:] {
		if r.Won {
			require.Nil(t, r.Met)
			won++
			continue
		}
		w.isMet(r.Met, turns.LimitMet{Limit: turns.LimitTurns, Max: 2, Used: 2, Asked: 1})
	}
	require.Equal(t, 2, won)
	w.used("subject", turns.QuotaUse{Turns: 2, Tokens: 200})
}

func aMixedBatchIsAnsweredEach(t *testing.T, w *world) {
	one := turns.SubmissionLimits{TenantTurns: 1}
	w.win(reserving(w.first(newConversation()), one))
	batch := []turns.Claim{reserving(w.first(newConversation()), one), w.first(newConversation()), reserving(w.first(newConversation()), turns.SubmissionLimits{TenantTurns: 2})}
	results, err := w.Store.Claim(w.ctx, batch)
	require.NoError(t, err)
	require.NotNil(t, results[0].Met)
	w.isMet(results[0].Met, turns.LimitMet{Limit: turns.LimitTurns, OfTenant: true, Max: 1, Used: results[0].Met.Used, Asked: 1})
	require.True(t, results[1].Won)
	require.True(t, results[2].Won)
	require.False(t, results[2].CreateTime.IsZero())
	require.EqualValues(t, 3, w.count("SELECT count(*) FROM conversations"))
}

func aMinuteLetsInItsBurst(_ *testing.T, w *world) {
	limits := turns.SubmissionLimits{PerMinute: 2}
	w.win(reserving(w.first(newConversation()), limits))
	w.win(reserving(w.first(newConversation()), limits))
	w.meets(reserving(w.first(newConversation()), limits), turns.LimitMet{Limit: turns.LimitSubmissions, Max: 2, Used: 2, Asked: 1})
	other := w.first(newConversation())
	other.Subject = "other"
	w.win(reserving(other, limits))
}

func aStartIsNoSubmission(_ *testing.T, w *world) {
	limits := turns.SubmissionLimits{PerMinute: 1}
	w.win(reserving(w.first(newConversation()), limits))
	start := reserving(w.first(newConversation()), limits)
	start.Reserve.Submission = false
	w.win(start)
	w.meets(reserving(w.first(newConversation()), limits), turns.LimitMet{Limit: turns.LimitSubmissions, Max: 1, Used: 1, Asked: 1})
}

func theMinuteGoesOn(_ *testing.T, w *world) {
	limits := bounds()
	limits.PerMinute = 1
	w.win(reserving(w.first(newConversation()), limits))
	w.aYearLater()
	w.meets(reserving(w.first(newConversation()), limits), turns.LimitMet{Limit: turns.LimitSubmissions, Max: 1, Used: 1, Asked: 1})
}

func theNamelessHaveAQuota(t *testing.T, w *world) {
	limits := turns.SubmissionLimits{SubjectTurns: 1, TenantTurns: 5, PerMinute: 10}
	nameless := w.first(newConversation())
	nameless.Subject = ""
	w.win(reserving(nameless, limits))
	nameless = w.first(newConversation())
	nameless.Subject = ""
	w.meets(reserving(nameless, limits), turns.LimitMet{Limit: turns.LimitTurns, Max: 1, Used: 1, Asked: 1})
	w.win(reserving(w.first(newConversation()), limits))
	require.Equal(t, turns.QuotaUse{Turns: 2, Tokens: 200}, w.charged("tenant", ""), "of the tenant as a whole")
}

func quotasAreApart(t *testing.T, w *world) {
	limits := turns.SubmissionLimits{SubjectTurns: 1, TenantTurns: 1, PerMinute: 1}
	w.win(reserving(w.first(newConversation()), limits))
	w.win(reserving(w.first(conversationOf("another", uuid.New())), limits))
	require.Zero(t, w.charged("nobody", "subject"))
}

func aUseSaysHowFarItsSubjectIsAhead(t *testing.T, w *world) {
	limits := turns.SubmissionLimits{PerMinute: 6}
	ahead := func() time.Duration {
		use, err := w.Store.QuotaUsed(w.ctx, "tenant", "subject")
		require.NoError(t, err)
		return use.Ahead
	}
	require.Zero(t, ahead())
	begun := time.Now()
	for range 6 {
		w.win(reserving(w.first(newConversation()), limits))
	}
	r := w.claim(reserving(w.first(newConversation()), limits))
	require.NotNil(t, r.Met)
	took := time.Since(begun)
	require.InDelta(t, time.Minute, ahead(), float64(took+time.Second))
	require.InDelta(t, r.Met.Wait+50*time.Second, ahead(), float64(took+time.Second))
}
