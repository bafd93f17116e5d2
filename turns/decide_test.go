package turns_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
)

func failed(class turns.CallClass) turns.Outcome {
	return turns.Outcome{Err: &turns.CallError{Class: class, Phase: turns.PhaseHeaders}}
}

func with(class turns.CallClass, change func(*turns.Outcome)) turns.Outcome {
	o := failed(class)
	change(&o)
	return o
}

func freshBudget() turns.Budget {
	return turns.Budget{Calls: 1, MaxCalls: 5, MaxWait: 30 * time.Second, Base: time.Second, Left: time.Hour}
}

func half() float64 { return 0.5 }

func TestWhatComesAfterACall(t *testing.T) {
	retry := turns.Next{Action: turns.ActionRetry, Wait: 500 * time.Millisecond}
	gaveUp := turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonProviderError}
	for name, c := range map[string]struct {
		outcome turns.Outcome
		budget  func(*turns.Budget)
		want    turns.Next
	}{
		"whole":                  {outcome: turns.Outcome{Content: true, Used: true}, want: turns.Next{Action: turns.ActionComplete}},
		"whole but empty":        {outcome: turns.Outcome{}, want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonEmpty}},
		"refused without a word": {outcome: turns.Outcome{StopReason: turns.StopRefusal}, want: turns.Next{Action: turns.ActionComplete}},
		"ended without a word":   {outcome: turns.Outcome{StopReason: turns.StopEndTurn}, want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonEmpty}},
		"not sent":               {outcome: failed(turns.ClassNotSent), want: retry},
		"transient":              {outcome: failed(turns.ClassTransient), want: retry},
		"throttled":              {outcome: failed(turns.ClassThrottled), want: retry},
		"ambiguous":              {outcome: failed(turns.ClassAmbiguous), want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonAmbiguous}},
		"done elsewhere":         {outcome: failed(turns.ClassAlreadyDone), want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonAmbiguous}},
		"runs elsewhere":         {outcome: failed(turns.ClassInFlightElsewhere), want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonAmbiguous}},
		"terminal":               {outcome: failed(turns.ClassTerminal), want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonProviderRefused}},
		"last call":              {outcome: failed(turns.ClassTransient), budget: func(b *turns.Budget) { b.Calls = 5 }, want: gaveUp},
		"patience spent":         {outcome: failed(turns.ClassTransient), budget: func(b *turns.Budget) { b.Waited = 30 * time.Second }, want: gaveUp},
		"past deadline":          {outcome: failed(turns.ClassTransient), budget: func(b *turns.Budget) { b.Left = 100 * time.Millisecond }, want: gaveUp},
		"may be asked": {outcome: with(turns.ClassAmbiguous, func(o *turns.Outcome) { o.Askable, o.Enforced = true, true }),
			want: turns.Next{Action: turns.ActionAsk}},
		"may be asked of what is done": {outcome: with(turns.ClassAlreadyDone, func(o *turns.Outcome) { o.Askable = true }),
			want: turns.Next{Action: turns.ActionAsk}},
		"enforced": {outcome: with(turns.ClassAmbiguous, func(o *turns.Outcome) { o.Enforced = true }),
			want: turns.Next{Action: turns.ActionRepeat, Wait: 500 * time.Millisecond}},
		"enforced and done with other bytes": {outcome: with(turns.ClassAlreadyDone, func(o *turns.Outcome) { o.Enforced = true }),
			want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonAmbiguous}},
		"enforced, last call": {outcome: with(turns.ClassAmbiguous, func(o *turns.Outcome) { o.Enforced = true }),
			budget: func(b *turns.Budget) { b.Calls = 5 }, want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonAmbiguous}},
		"policy retry": {outcome: with(turns.ClassAmbiguous, func(o *turns.Outcome) { o.OnAmbiguous = turns.OnAmbiguousRetry }),
			want: turns.Next{Action: turns.ActionReplace, Reason: turns.ReasonAmbiguous, Wait: 500 * time.Millisecond}},
		"policy retry, budget spent": {outcome: with(turns.ClassAmbiguous, func(o *turns.Outcome) { o.OnAmbiguous = turns.OnAmbiguousRetry }),
			budget: func(b *turns.Budget) { b.Calls = 5 }, want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonAmbiguous}},
		"policy retry of what is done": {outcome: with(turns.ClassAlreadyDone, func(o *turns.Outcome) { o.OnAmbiguous = turns.OnAmbiguousRetry }),
			want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonAmbiguous}},
		"policy hold": {outcome: with(turns.ClassAmbiguous, func(o *turns.Outcome) { o.OnAmbiguous = turns.OnAmbiguousHold }),
			want: turns.Next{Action: turns.ActionHold}},
		"policy hold of a known failure": {outcome: with(turns.ClassTransient, func(o *turns.Outcome) { o.OnAmbiguous = turns.OnAmbiguousHold }), want: retry},
		"another entry": {outcome: with(turns.ClassTransient, func(o *turns.Outcome) { o.Fallback = true }),
			want: turns.Next{Action: turns.ActionRetry, Fallback: true}},
		"another entry after some bytes": {outcome: with(turns.ClassTransient, func(o *turns.Outcome) { o.Fallback, o.Used, o.Content = true, true, true }), want: gaveUp},
		"another entry after an unknown outcome": {outcome: with(turns.ClassAmbiguous, func(o *turns.Outcome) { o.Fallback = true }),
			want: turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonAmbiguous}},
		"a known failure after some text, to be continued": {outcome: with(turns.ClassTransient, func(o *turns.Outcome) {
			o.Used, o.Content, o.OnPartial = true, true, turns.OnPartialContinue
		}), want: turns.Next{Action: turns.ActionReplace, Reason: turns.ReasonProviderError, Wait: 500 * time.Millisecond, Continue: true}},
		"after some bytes": {outcome: turns.Outcome{Err: failed(turns.ClassTransient).Err, Used: true, Content: true}, want: gaveUp},
	} {
		t.Run(name, func(t *testing.T) {
			b := freshBudget()
			if c.budget != nil {
				c.budget(&b)
			}
			require.Equal(t, c.want, turns.Decide(c.outcome, b, half))
		})
	}
}

func TestAProvidersRetryAfterIsHonouredOrTheTurnFailsAtOnce(t *testing.T) {
	o := failed(turns.ClassThrottled)
	o.Err.HasRetryAfter, o.Err.RetryAfter = true, 30*time.Second
	require.Equal(t, turns.Next{Action: turns.ActionRetry, Wait: 30 * time.Second}, turns.Decide(o, freshBudget(), half))
	o.Err.RetryAfter = time.Hour
	require.Equal(t, turns.Next{Action: turns.ActionAbandon, Reason: turns.ReasonProviderError, RetryAfter: time.Hour},
		turns.Decide(o, freshBudget(), half), "the time is passed on to the client")
}

func TestNoDecisionRepeatsAnUnknownOutcomeOrBreaksTheBudget(t *testing.T) {
	classes := []turns.CallClass{turns.ClassNotSent, turns.ClassTransient, turns.ClassThrottled, turns.ClassInFlightElsewhere,
		turns.ClassAlreadyDone, turns.ClassAmbiguous, turns.ClassTerminal, turns.ClassCancelled}
	rapid.Check(t, func(t *rapid.T) {
		o := failed(rapid.SampledFrom(classes).Draw(t, "class"))
		o.Used = rapid.Bool().Draw(t, "used")
		o.Err.HasRetryAfter = rapid.Bool().Draw(t, "hinted")
		if o.Err.HasRetryAfter {
			o.Err.RetryAfter = time.Duration(rapid.IntRange(0, 100).Draw(t, "hint")) * time.Second
		}
		b := turns.Budget{Calls: rapid.IntRange(1, 9).Draw(t, "calls"), MaxCalls: 5, MaxWait: 30 * time.Second, Base: time.Second,
			Waited: time.Duration(rapid.IntRange(0, 40).Draw(t, "waited")) * time.Second,
			Left:   time.Duration(rapid.IntRange(0, 60).Draw(t, "left")) * time.Second}
		next := turns.Decide(o, b, func() float64 { return rapid.Float64Range(0, 0.999).Draw(t, "jitter") })
		if next.Action != turns.ActionRetry {
			require.Equal(t, turns.ActionAbandon, next.Action)
			require.NotEmpty(t, next.Reason)
			return
		}
		require.Contains(t, []turns.CallClass{turns.ClassNotSent, turns.ClassTransient, turns.ClassThrottled}, o.Err.Class)
		require.False(t, o.Used)
		require.Less(t, b.Calls, b.MaxCalls)
		require.LessOrEqual(t, b.Waited+next.Wait, b.MaxWait)
		require.Less(t, next.Wait, b.Left)
		require.GreaterOrEqual(t, next.Wait, o.Err.RetryAfter)
	})
}
