package casetest

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

// aMoment is the longest wait for what running turns hold.
const aMoment = 10 * time.Second

// waitsForMidnight demands that a refusal for a quota names the rest of the day.
func (w *world) waitsForMidnight(err error) {
	w.t.Helper()
	require.InDelta(w.t, w.used("").Left.Seconds(), w.after(err).Seconds(), 60)
	require.Contains(w.t, err.Error(), "once the day has turned")
}

// waitsForOthers demands that a refusal for a quota names a moment, and that what is held makes up for what is missing.
func (w *world) waitsForOthers(err error, meta map[string]string) {
	w.t.Helper()
	require.LessOrEqual(w.t, w.after(err), aMoment)
	require.Contains(w.t, err.Error(), "in a moment")
	n := map[string]int64{}
	for _, name := range []string{"limit", "used", "asked", "held"} {
		var bad error
		n[name], bad = strconv.ParseInt(meta[name], 10, 64)
		require.NoError(w.t, bad, name)
	}
	require.Greater(w.t, n["used"]+n["asked"], n["limit"])
	require.LessOrEqual(w.t, n["used"]+n["asked"]-n["held"], n["limit"])
}

func TestATurnThatOnlyRunningTurnsKeepOutIsToldToComeBackInAMoment(t *testing.T) {
	refuses := failing(1, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoWait, Gate: "mid"},
		scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 400, Error: "invalid_request_error"})
	refuses.Name = "mid"
	for _, c := range []struct {
		quota, scope string
		limits       turns.SubmissionLimits
		running      scripted.Rule
		other        string
	}{
		{"tokens_per_day", "subject", turns.SubmissionLimits{SubjectTokens: 150}, gate("first", "mid", 4, 2), "ann"},
		{"tokens_per_day", "tenant", turns.SubmissionLimits{TenantTokens: 150}, gate("first", "mid", 4, 2), "ben"},
		{"turns_per_day", "subject", turns.SubmissionLimits{SubjectTurns: 1}, refuses, "ann"},
		{"turns_per_day", "tenant", turns.SubmissionLimits{TenantTurns: 1}, refuses, "ben"},
	} {
		t.Run(c.quota+" of a "+c.scope, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				w.settings.Sweep = time.Hour
				w.settings.Submissions, w.limits.MaxOutputTokens = c.limits, 100
				s := w.serve()
				w.script(c.running, plain(4))
				submit := func(subject string, in *turnsv1.TurnInput) error {
					_, err := s.turns.SubmitTurn(w.subject(subject), &turnsv1.SubmitTurnRequest{Input: in})
					return err
				}
				require.NoError(t, submit("ann", ask(newID(), newID(), "first")))
				next := ask(newID(), newID(), "next")
				for range 2 {
					err := submit(c.other, next)
					w.waitsForOthers(err, w.exceeds(err, c.quota, c.scope))
				}
				require.NoError(t, w.provider.OpenGate("mid"))
				w.eventually(func() bool { return w.number(qSettled) == 1 })
				require.NoError(t, submit(c.other, next), "the same turn once the other is over")
			})
		})
	}
}

func TestARunningTurnThatTookItsShareLeavesTheRestOfTheDayToWaitFor(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 2}
		s := w.serve()
		w.script(gate("second", "mid", 4, 2), plain(4))
		s.turn(ask(newID(), newID(), "first"), nil).completes()
		running := s.turn(ask(newID(), newID(), "second"), nil)
		running.at(1)
		w.eventually(func() bool { return w.number(qSettled) == 1 })
		_, err := s.submit(ask(newID(), newID(), "more"))
		meta := w.exceeds(err, "turns_per_day", "subject")
		w.waitsForOthers(err, meta)
		require.Equal(t, []string{"2", "1"}, []string{meta["used"], meta["held"]})

		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		w.eventually(func() bool { return w.number(qSettled) == 2 })
		_, err = s.submit(ask(newID(), newID(), "more"))
		require.Equal(t, "0", w.exceeds(err, "turns_per_day", "subject")["held"])
		w.waitsForMidnight(err)
	})
}

func TestATurnThatWhatIsHeldIsTooLittleForWaitsForTheNextDay(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Submissions, w.limits.MaxOutputTokens = turns.SubmissionLimits{SubjectTokens: 1000}, 960
		s := w.serve()
		w.script(gate("second", "mid", 4, 2), plain(100))
		s.turn(ask(newID(), newID(), "first"), nil).completes()
		w.uses(1)
		second := ask(newID(), newID(), "second")
		second.Options = &turnsv1.GenerationOptions{MaxOutputTokens: 100}
		running := s.turn(second, nil)
		running.at(1)
		_, err := s.submit(ask(newID(), newID(), "more"))
		meta := w.exceeds(err, "tokens_per_day", "subject")
		require.NotEqual(t, "0", meta["held"])
		w.waitsForMidnight(err)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
	})
}

// atMostOnceASecond demands that a method was called no more often than once a second since then.
func atMostOnceASecond(t *testing.T, faults *storetest.Faults, method string, since time.Time) {
	t.Helper()
	require.LessOrEqual(t, faults.Calls(method), 1+int(time.Since(since)/time.Second), method)
}

func TestRefusalsForASpentQuotaGoThroughItsReservationsOnceASecond(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour
		w.settings.Submissions = turns.SubmissionLimits{TenantTurns: 1}
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		s.turn(ask(newID(), newID(), "hi"), nil).completes()
		w.eventually(func() bool { return w.number(qSettled) == 1 })
		begun := time.Now()
		for i := range 40 {
			_, err := s.turns.SubmitTurn(w.subject(fmt.Sprint(i)), &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hi")})
			w.exceeds(err, "turns_per_day", "tenant")
			w.waitsForMidnight(err)
		}
		atMostOnceASecond(t, faults, "SettleOpen", begun)
		atMostOnceASecond(t, faults, "QuotaSettled", begun)
	})
}

func TestWhatHasEndedElsewhereUnsettledNeverBlocks(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.Sweep = time.Hour
		w.settings.Submissions, w.limits.MaxOutputTokens = turns.SubmissionLimits{TenantTokens: 150}, 100
		faults := storetest.NewFaults(w.store())
		w.script(plain(4))
		faults.FailNext("SettleReservations", turns.Unavailable(context.DeadlineExceeded))
		w.serveOn(faults).turn(ask(newID(), newID(), "hi"), nil).completes()
		w.eventually(func() bool { return faults.Calls("SettleReservations") == 1 })
		require.GreaterOrEqual(t, w.used("").Tokens, int64(100), "it counts in full still")
		w.serve().turn(ask(newID(), newID(), "hi"), nil).completes()
	})
}

func TestReplaysAreAnsweredWhileTheTurnsOfOneSubjectWaitForItsQuota(t *testing.T) {
	w := postgresWorld(t)
	w.settings.Submissions = turns.SubmissionLimits{SubjectTurns: 1000}
	faults := storetest.NewFaults(w.store())
	s := w.serveOn(faults)
	submit := func(subject string, in *turnsv1.TurnInput) error {
		_, err := s.turns.SubmitTurn(w.subject(subject), &turnsv1.SubmitTurnRequest{Input: in})
		return err
	}
	known := ask(newID(), newID(), "hi")
	require.NoError(t, submit("ann", known))
	require.NoError(t, submit("ben", ask(newID(), newID(), "hi")))
	w.eventually(func() bool { return w.number(qSettled) == 2 })

	elsewhere, err := w.db.BeginTx(w.ctx, nil)
	require.NoError(t, err)
	defer func() { _ = elsewhere.Rollback() }()
	_, err = elsewhere.ExecContext(w.ctx, `UPDATE quotas SET turns = turns WHERE subject = 'ben'`)
	require.NoError(t, err)
	const many = 40 // and the pool has fewer than ten connections
	looked, came := faults.Calls("Lookup"), make(chan error, many)
	for range many {
		go func() { came <- submit("ben", ask(newID(), newID(), "hi")) }()
	}
	w.eventually(func() bool { return faults.Calls("Lookup") >= looked+many })
	w.eventually(func() bool {
		return w.number(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) > 0
	})
	for range 30 {
		require.NoError(t, submit("ann", known))
	}
	require.NoError(t, submit("ann", ask(newID(), newID(), "new")), "and so is a new turn of another subject")
	require.Empty(t, came, "the others wait still")
	require.NoError(t, elsewhere.Rollback())
	for range many {
		require.NoError(t, <-came)
	}
}
