package casetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/limiter"
	"github.com/turnd/turnd/turns/storetest"
)

const (
	qSettled = `SELECT count(*) FROM quota_reservations WHERE NOT open`
	qCharged = `SELECT count(*) FROM quota_reservations`
	qTokens  = `SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM provider_calls`
)

// used is what a subject is charged with today; the tenant if it is empty.
func (w *world) used(subject string) turns.QuotaUse {
	w.t.Helper()
	use, err := w.store().QuotaUsed(w.ctx, "default", subject)
	require.NoError(w.t, err)
	return use
}

// uses waits until nothing more is to be settled, and demands what the default subject is charged with then.
func (w *world) uses(count int64) turns.QuotaUse {
	w.t.Helper()
	store := w.store()
	var use turns.QuotaUse
	w.eventually(func() bool {
		var err error
		use, err = store.QuotaUsed(w.ctx, "default", "default")
		return err == nil && w.number(`SELECT count(*) FROM quota_reservations WHERE open`) == w.number(qInFlight)+w.number(qHeld)
	})
	use, err := store.QuotaUsed(w.ctx, "default", "default")
	require.NoError(w.t, err)
	require.Equal(w.t, count, use.Turns)
	return use
}

// exceeds demands that a quota refused something, and when it says to come again.
func (w *world) exceeds(err error, quota, scope string) map[string]string {
	w.t.Helper()
	meta := w.fails(err, codes.ResourceExhausted, "QUOTA_EXCEEDED", "SAME_ID_AFTER_WAIT")
	require.Equal(w.t, []string{quota, scope}, []string{meta["quota"], meta["scope"]})
	wait := w.after(err)
	require.Positive(w.t, wait)
	require.LessOrEqual(w.t, wait, 24*time.Hour)
	for _, d := range status.Convert(err).Details() {
		if q, ok := d.(*errdetails.QuotaFailure); ok {
			require.Equal(w.t, meta["subject"], q.GetViolations()[0].GetSubject())
			return meta
		}
	}
	require.Fail(w.t, "no QuotaFailure", "%v", err)
	return nil
}

// refusing is a rule by which the provider refuses a request in its own words.
func refusing(times, code int, name string) scripted.Rule {
	return failing(times, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: code, Error: name})
}

// Case C13.
func TestAQuotaIsGivenBackForADefiniteFailureAndSpentOnceForTheRetry(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 1}
		s := w.serve()
		w.script(refusing(w.settings.MaxCalls-1, 529, "overloaded_error"), plain(4))
		w.settings.MaxCalls = 2
		short := w.serve()
		in := ask(newID(), newID(), "hi")
		require.NotNil(t, short.turn(in, nil).end().abandoned)
		w.uses(0)
		got := s.turn(in, nil).completes()
		require.Equal(t, retried, got.result)
		use := w.uses(1)
		require.EqualValues(t, w.number(qTokens), use.Tokens)
		_, err := s.submit(ask(newID(), newID(), "more"))
		meta := w.exceeds(err, "turns_per_day", "subject")
		require.Equal(t, []string{"1", "1", "1", "subject:default"}, []string{meta["limit"], meta["used"], meta["asked"], meta["subject"]})
		for range 3 {
			require.Equal(t, replayed, s.turn(in, nil).completes().result)
		}
		w.uses(1)
	})
}

func TestALostResponseARetryAndADefiniteFailureEndAtTheRightNumber(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 1, PerMinute: 100}
		s := w.serve()
		w.script(gate("hi", "mid", 64, 20), refusing(1, 400, "invalid_request_error"), plain(4))
		in := ask(newID(), newID(), "hi")
		lost := s.turn(in, nil)
		lost.at(1)
		lost.cancel()
		again := s.turn(in, nil)
		require.Equal(t, attached, again.at(1).result)
		require.EqualValues(t, 1, w.used("default").Turns)
		_, err := s.submit(ask(newID(), newID(), "more"))
		w.exceeds(err, "turns_per_day", "subject")
		require.NoError(t, w.provider.OpenGate("mid"))
		again.completes()
		w.uses(1)

		other := s.turns
		failed := ask(newID(), newID(), "fails")
		for range 2 { // and the answer is the same, for nothing
			_, err = other.SubmitTurn(w.subject("ann"), &turnsv1.SubmitTurnRequest{Input: failed})
			require.NoError(t, err)
		}
		w.eventually(func() bool { return w.number(qSettled) == 2 })
		require.Zero(t, w.used("ann").Turns)
		_, err = other.SubmitTurn(w.subject("ann"), &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "more")})
		require.NoError(t, err)
		w.eventually(func() bool { return w.number(qSettled) == 3 })
		require.EqualValues(t, 1, w.used("ann").Turns)
	})
}

func TestWhatMayHaveBeenBilledKeepsItsTurnAndItsRetrySpendsNoOther(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 1}
		s := w.serve()
		w.script(failing(2, scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoClose}), plain(4))
		in := ask(newID(), newID(), "hi")
		for range 2 {
			s.turn(in, nil).abandons(ambiguous)
			w.uses(1)
		}
		s.turn(in, nil).completes()
		require.EqualValues(t, w.number(qTokens), w.uses(1).Tokens)
		w.stands(map[string]int{qCharged: 1, qReplies: 3})
	})
}

func TestFallingBackAndTryingAgainWithinAGenerationCostOneTurn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 2}
		s := w.serve()
		w.script(ofOne(refusing(1, 529, "overloaded_error")), plain(4))
		s.turn(askOf("either"), nil).completes()
		w.uses(1)
		w.script(failing(2, scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoReset}), plain(4))
		in := ask(newID(), newID(), "hi")
		in.OnAmbiguous = turnsv1.OnAmbiguous_ON_AMBIGUOUS_RETRY
		s.turn(in, nil).completes()
		require.EqualValues(t, w.number(qTokens), w.uses(2).Tokens)
		w.stands(map[string]int{qCharged: 2, qReplies: 4})
	})
}

func TestARegenerateIsAnotherReservation(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 2}
		s := w.serve()
		in := ask(newID(), newID(), "hi")
		first := s.turn(in, nil).completes().reply
		var second string
		for range 3 {
			got, err := s.regenerate(in.GetConversationId(), first, 1)
			require.NoError(t, err)
			second = got.GetReply().GetReplyId()
			s.follow(in.GetConversationId(), second, 0).completes()
		}
		w.uses(2)
		_, err := s.regenerate(in.GetConversationId(), second, 2)
		w.exceeds(err, "turns_per_day", "subject")
		require.Equal(t, second, s.cancelTurn(in).GetReplyId(), "what could not be replaced is live still")
	})
}

func TestAQuotaOfOneIsExactWithThreeWorkersAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		limits  turns.SubmissionLimits
		quota   string
		scope   string
		subject func(i int) string
		lets    int
	}{
		"turns of a subject": {turns.SubmissionLimits{SubjectTurns: 1}, "turns_per_day", "subject", func(int) string { return "ann" }, 1},
		"turns of a tenant":  {turns.SubmissionLimits{TenantTurns: 1}, "turns_per_day", "tenant", func(i int) string { return fmt.Sprint(i) }, 1},
		"tokens of a subject": {turns.SubmissionLimits{SubjectTokens: 150}, "tokens_per_day", "subject",
			func(int) string { return "ann" }, 1}, // a turn asks for a hundred and some
		"tokens of a tenant": {turns.SubmissionLimits{TenantTokens: 150}, "tokens_per_day", "tenant", func(i int) string { return fmt.Sprint(i) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := postgresWorld(t)
			w.settings.Submissions, w.limits.MaxOutputTokens = c.limits, 100
			w.script(gate("", "mid", 4, 2))
			workers := []*worker{w.serve(), w.serve(), w.serve()}
			var won atomic.Int64
			var all sync.WaitGroup
			for i := range 30 {
				all.Go(func() {
					_, err := workers[i%3].turns.SubmitTurn(w.subject(c.subject(i)), &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hi")})
					if err == nil {
						won.Add(1)
						return
					}
					w.exceeds(err, c.quota, c.scope)
				})
			}
			all.Wait()
			require.EqualValues(t, c.lets, won.Load())
			w.stands(map[string]int{qUsers: c.lets, qConvs: c.lets, qCharged: c.lets, qInFlight: c.lets})
			require.NoError(t, w.provider.OpenGate("mid"))
			w.eventually(func() bool { return w.number(qSettled) == c.lets })
			w.paid(c.lets, c.lets)
		})
	}
}

func TestTheMinuteIsExactAcrossWorkers(t *testing.T) {
	w := postgresWorld(t)
	w.settings.Submissions = turns.SubmissionLimits{PerMinute: 5}
	w.lets = limiter.Config{Submissions: 5}
	workers := []*worker{w.serve(), w.serve(), w.serve()}
	begun := time.Now()
	var won atomic.Int64
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			_, err := workers[i%3].submit(ask(newID(), newID(), "hi"))
			if err == nil {
				won.Add(1)
				return
			}
			require.LessOrEqual(t, w.limited(err, "submissions_per_minute"), time.Minute)
		})
	}
	all.Wait()
	more := int64(time.Since(begun) / (12 * time.Second)) // what came in time meanwhile
	require.GreaterOrEqual(t, won.Load(), int64(5))
	require.LessOrEqual(t, won.Load(), 5+more)
	w.stands(map[string]int{qUsers: int(won.Load())})
}

func TestAHoldKeepsItsReservationAndItsReleaseGivesItBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour // who ends a reply settles it
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 1}
		s := w.serve()
		_, r := s.hold()
		refused := func() {
			t.Helper()
			_, err := s.submit(ask(newID(), newID(), "more"))
			w.exceeds(err, "turns_per_day", "subject")
		}
		refused()
		require.Positive(t, w.uses(1).Tokens)
		_, err := s.release(r, r.GetEpoch())
		require.NoError(t, err)
		require.Zero(t, w.uses(0).Tokens)
		s.turn(ask(newID(), newID(), "more"), nil).completes()
		refused()
	})
}

func TestAHeldReplyThatIsCompletedHasUsedItsTurn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 1}
		s := w.serve()
		_, r := s.hold()
		for range 2 {
			_, err := s.complete(r, stored(r)+" and the rest")
			require.NoError(t, err)
		}
		require.EqualValues(t, w.number(qTokens), w.uses(1).Tokens)
		_, err := s.submit(ask(newID(), newID(), "more"))
		w.exceeds(err, "turns_per_day", "subject")
	})
}

func TestATurnTakenOutOfLineGivesItsReservationBack(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 2}
		s := w.serve()
		w.script(gate("first", "mid", 64, 20), plain(4))
		in, running := s.busyAt()
		waits := enqueuing(in.GetConversationId(), "two")
		for range 2 {
			_, err := s.submit(waits)
			require.NoError(t, err)
		}
		require.EqualValues(t, 2, w.used("default").Turns)
		_, err := s.submit(enqueuing(in.GetConversationId(), "three"))
		w.exceeds(err, "turns_per_day", "subject")
		w.stands(map[string]int{qUsers: 2})
		s.cancelTurn(waits)
		w.eventually(func() bool { return w.used("default").Turns == 1 })
		next := enqueuing(in.GetConversationId(), "four")
		_, err = s.submit(next)
		require.NoError(t, err)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		s.turn(next, nil).completes()
		require.EqualValues(t, w.number(qTokens), w.uses(2).Tokens, "a start from the line charges nothing more")
	})
}

func TestAnInterruptThatMeetsAQuotaStopsNothingAndOneThatDoesNotLeavesTheStoppedTurnCharged(t *testing.T) {
	for name, busy := range map[string]turnsv1.OnBusy{"interrupt": turnsv1.OnBusy_ON_BUSY_INTERRUPT, "supersede": turnsv1.OnBusy_ON_BUSY_SUPERSEDE} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 2}
				s := w.serve()
				w.script(gate("first", "mid", 64, 20), plain(4))
				in, running := s.busyAt()
				other := s.turns
				stops := interrupting(in.GetConversationId())
				stops.OnBusy = busy
				s.turn(ask(newID(), newID(), "elsewhere"), nil).completes()
				_, err := s.submit(stops)
				w.exceeds(err, "turns_per_day", "subject")
				w.stands(map[string]int{qInFlight: 1, qUsers: 2})

				_, err = other.SubmitTurn(w.subject("ann"), &turnsv1.SubmitTurnRequest{Input: stops})
				require.NoError(t, err)
				running.abandons(cancelled)
				require.NoError(t, w.provider.OpenGate("mid"))
				w.eventually(func() bool { return w.number(qSettled) == 3 })
				require.EqualValues(t, 2, w.used("default").Turns)
				require.EqualValues(t, 1, w.used("ann").Turns)
			})
		})
	}
}

func TestAFurtherAttemptThatIsChargedAlreadyInterruptsAlthoughTheQuotaIsUsedUp(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 2}
		s := w.serve()
		first := ask(newID(), newID(), "one")
		reply := s.turn(first, nil).completes().reply
		w.script(failing(1, scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoClose}), gate("one", "mid", 64, 20), plain(4))
		second := interrupting(first.GetConversationId())
		s.turn(second, nil).abandons(ambiguous)
		w.uses(2)
		_, err := s.submit(ask(newID(), newID(), "more"))
		w.exceeds(err, "turns_per_day", "subject")
		_, err = s.turns.RegenerateReply(w.subject("ann"), &turnsv1.RegenerateReplyRequest{ConversationId: first.GetConversationId(), ReplyId: reply})
		require.NoError(t, err)
		w.stands(map[string]int{qInFlight: 1})
		require.Equal(t, retried, s.turn(second, nil).completes().result)
		w.uses(2)
	})
}

func TestAnInterruptOfACallerWithoutASubjectMeetsItsOwnQuotaBeforeItStopsAnything(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 1}
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		nobody := turns.Caller{Tenant: "default"}
		deliver := func(in *turnsv1.TurnInput, busy turns.OnBusy) error {
			id := func(text string) uuid.UUID { return uuid.MustParse(text) }
			_, err := s.service.Submit(w.ctx, nobody, turns.Delivery{OnBusy: busy, Input: turns.Input{
				Conversation: turns.ConversationID{UUID: id(in.GetConversationId())}, Turn: turns.TurnID{UUID: id(in.GetTurnId())},
				Content: []turns.Block{turns.Text{Text: "hi"}}}})
			return err
		}
		in := ask(newID(), newID(), "hi")
		require.NoError(t, deliver(in, ""))
		require.Equal(t, turns.CodeQuotaExceeded, turns.CodeOf(deliver(interrupting(in.GetConversationId()), turns.OnBusyInterrupt)))
		w.stands(map[string]int{qInFlight: 1, qUsers: 1})
		require.NoError(t, w.provider.OpenGate("mid"))
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
	})
}

func TestAnInterruptThatComesTooSoonForTheMinuteStopsNothing(t *testing.T) {
	w := postgresWorld(t)
	w.settings.Submissions = turns.SubmissionLimits{PerMinute: 1}
	one, two := w.serve(), w.serve() // neither has a limit of its own
	w.script(gate("", "mid", 64, 20))
	in, running := one.busyAt()
	_, err := two.submit(interrupting(in.GetConversationId()))
	w.limited(err, "submissions_per_minute")
	require.NoError(t, w.provider.OpenGate("mid"))
	running.completes()
}

func TestATurnThatIsOverAWholeDaysTokensIsToldThatWaitingDoesNotHelp(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTokens: 1000}
		s := w.serve()
		in := ask(newID(), newID(), "hi")
		in.Options = &turnsv1.GenerationOptions{MaxOutputTokens: 2000}
		_, err := s.submit(in)
		w.fails(err, codes.ResourceExhausted, "QUOTA_EXCEEDED", "DO_NOT_RETRY")
		for _, d := range status.Convert(err).Details() {
			_, waits := d.(*errdetails.RetryInfo)
			require.False(t, waits)
		}
		w.stands(map[string]int{qUsers: 0, qConvs: 0, qCharged: 0})
		in.Options.MaxOutputTokens = 900
		s.turn(in, nil).completes()
	})
}

func TestWhatIsRefusedWroteNothingAndCalledNobodyAndReplaysGoOn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		book := &suspended{all: map[string]bool{}}
		w.settings.Submissions = turns.SubmissionLimits{PerMinute: 1, SubjectTurns: 1}
		w.lets, w.suspensions = limiter.Config{Submissions: 1}, book
		s := w.serve()
		in := ask(newID(), newID(), "hi")
		first := s.turn(in, nil).completes()
		w.uses(1)
		stands := map[string]int{qUsers: 1, qConvs: 1, qReplies: 1, qCharged: 1, qLedger: 1}
		for range 20 {
			_, err := s.submit(ask(newID(), newID(), "more"))
			w.limited(err, "submissions_per_minute")
		}
		book.set("default/default", true)
		for range 3 {
			require.Equal(t, replayed, s.turn(in, nil).completes().result)
			got, err := s.regenerate(in.GetConversationId(), first.reply, 1)
			w.fails(err, codes.PermissionDenied, "SUSPENDED", "DO_NOT_RETRY")
			require.Nil(t, got)
		}
		w.stands(stands)
		w.paid(1, 1)
		w.uses(1)
	})
}

func TestWhatHasEndedUnsettledNeverBlocks(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour
		w.settings.Submissions = turns.SubmissionLimits{TenantTokens: 150}
		w.limits.MaxOutputTokens = 100
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		for i := range 3 {
			w.script(gate("", fmt.Sprint(i), 4, 2))
			running := s.turn(ask(newID(), newID(), "hi"), nil)
			running.at(1)
			settles := faults.Calls("SettleReservations")
			faults.FailNext("SettleReservations", turns.Unavailable(context.DeadlineExceeded))
			require.NoError(t, w.provider.OpenGate(fmt.Sprint(i)))
			running.completes()
			w.eventually(func() bool { return faults.Calls("SettleReservations") > settles })
			require.GreaterOrEqual(t, w.used("").Tokens, int64(100), "it counts in full still")
		}
	})
}

func TestASweepSettlesWhatNobodySettled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = 50 * time.Millisecond
		w.settings.Submissions = turns.SubmissionLimits{SubjectTokens: 10_000}
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		faults.FailNext("SettleReservations", turns.Unavailable(context.DeadlineExceeded))
		s.turn(ask(newID(), newID(), "hi"), nil).completes()
		require.EqualValues(t, w.number(qTokens), w.uses(1).Tokens)
	})
}

func TestWhatCouldNotBeSettledIsSettledWithWhatEndsNext(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 10}
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		faults.FailNext("SettleReservations", turns.Unavailable(context.DeadlineExceeded))
		s.turn(ask(newID(), newID(), "hi"), nil).completes()
		w.eventually(func() bool { return faults.Calls("SettleReservations") == 1 })
		s.turn(ask(newID(), newID(), "hi"), nil).completes()
		w.eventually(func() bool { return w.number(qSettled) == 2 })
	})
}

func TestTheReservationOfARevivedReplyIsOpenAgain(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.settings.Submissions = turns.SubmissionLimits{SubjectTokens: 10_000}
		paused, down, up := w.wakes()
		w.serve() // which sweeps
		w.script(gate("", "mid", 64, 20))
		running := paused.turn(ask(newID(), newID(), "hi"), nil)
		running.at(1)
		down()
		w.eventually(func() bool { return w.number(qSettled) == 1 })
		up()
		w.eventually(func() bool { return w.number(qInFlight) == 1 && w.number(qSettled) == 0 })
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		require.EqualValues(t, w.number(qTokens), w.uses(1).Tokens)
	})
}

func TestADrainLeavesNothingUnsettled(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 10}
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		for range 3 {
			s.turn(ask(newID(), newID(), "hi"), nil).at(1)
		}
		ended, cancel := context.WithCancel(w.ctx)
		cancel()
		require.NoError(t, s.service.Drain(ended, patience))
		w.stands(map[string]int{qCharged: 3, qSettled: 3, qInFlight: 0})
	})
}

func TestATurnInLineThatMeetsAQuotaWhenItIsToStartWaits(t *testing.T) {
	w := postgresWorld(t)
	w.settings.Sweep = 20 * time.Millisecond
	free := w.serve() // keeps no quota, so that the line is charged with nothing
	w.script(gate("first", "mid", 64, 20), plain(4))
	in, running := free.busyAt()
	waits := enqueuing(in.GetConversationId(), "two")
	_, err := free.submit(waits)
	require.NoError(t, err)
	w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 1}
	faults := storetest.NewFaults(w.store())
	bound := w.serveOn(faults)
	bound.turn(ask(newID(), newID(), "elsewhere"), nil).completes()
	w.quit(free)
	running.end()
	claims := faults.Calls("Claim")
	w.eventually(func() bool { return faults.Calls("Claim") > claims })
	before := faults.Calls("IdleLines")
	w.eventually(func() bool { return faults.Calls("IdleLines") > before+10 })
	require.LessOrEqual(t, faults.Calls("Claim"), claims+2, "it is left alone for a while")
	got := bound.read(in.GetConversationId(), waits.GetTurnId())
	require.Empty(t, got.GetReplies(), "it waits and is not refused")
	w.stands(map[string]int{`SELECT count(*) FROM turns WHERE waiting <> ''`: 1})
}

func TestAnotherTenantHasAnotherQuota(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{TenantTurns: 1, SubjectTurns: 1}
		s := w.serve()
		s.turn(ask(newID(), newID(), "hi"), nil).completes()
		_, err := s.turns.SubmitTurn(w.subject("ann"), &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hi")})
		meta := w.exceeds(err, "turns_per_day", "tenant")
		require.Equal(t, "tenant", meta["subject"])
		elsewhere := metadata.AppendToOutgoingContext(w.ctx, "x-turnd-tenant", "another")
		_, err = s.turns.SubmitTurn(elsewhere, &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hi")})
		require.NoError(t, err)
	})
}

func TestATurnInLineIsCountedWhenItIsSentAndNotWhenItStarts(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour // what would be too early is not looked at again
		w.settings.Submissions = turns.SubmissionLimits{PerMinute: 2, SubjectTurns: 2}
		w.lets = limiter.Config{Submissions: 2}
		s := w.serve()
		w.script(gate("first", "mid", 64, 20), plain(4))
		in, running := s.busyAt()
		waits := enqueuing(in.GetConversationId(), "two")
		_, err := s.submit(waits)
		require.NoError(t, err)
		_, err = s.submit(enqueuing(in.GetConversationId(), "three"))
		w.limited(err, "submissions_per_minute")
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		s.turn(waits, nil).completes()
		w.uses(2)
	})
}
