package turns_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func TestEveryTransitionIsFoundAndNothingElseIs(t *testing.T) {
	statuses := []turns.Status{"", turns.StatusInFlight, turns.StatusComplete, turns.StatusHeld, turns.StatusAbandoned}
	verbs := map[turns.Verb]bool{}
	for _, row := range turns.Transitions {
		verbs[row.Verb] = true
		reason, from := turns.Reason(""), turns.Reason("")
		if len(row.Reasons) > 0 {
			reason = row.Reasons[0]
		}
		if len(row.FromReasons) > 0 {
			from = row.FromReasons[0]
		}
		_, ok := turns.Allowed(row.From, from, row.Verb, row.To, reason)
		require.True(t, ok, "%s from %q", row.Verb, row.From)
		require.NotEmpty(t, row.When)
		require.NotEmpty(t, row.Actor)
	}
	pairs := 0
	for _, from := range statuses {
		for verb := range verbs {
			allowed := false
			for _, row := range turns.Transitions {
				allowed = allowed || row.From == from && row.Verb == verb
			}
			for _, to := range statuses[1:] {
				if _, ok := turns.Allowed(from, turns.ReasonDeleted, verb, to, turns.ReasonDeleted); ok {
					require.True(t, allowed)
				}
			}
			pairs++
		}
	}
	require.Equal(t, len(statuses)*len(verbs), pairs)
}

func TestNoArrowLeavesAnEndThatIsFinal(t *testing.T) {
	for _, reason := range []turns.Reason{turns.ReasonCancelled, turns.ReasonProviderRefused, turns.ReasonDeleted, turns.ReasonEmpty} {
		for _, row := range turns.Transitions {
			if row.From != turns.StatusAbandoned || row.Verb == turns.VerbSettle {
				continue
			}
			_, ok := turns.Allowed(turns.StatusAbandoned, reason, row.Verb, row.To, "")
			require.False(t, ok, "%s must not leave abandoned(%s)", row.Verb, reason)
		}
	}
}

func TestAdviceTellsWhatTryingAgainDoes(t *testing.T) {
	for reason, want := range map[turns.Reason]turns.Advice{
		turns.ReasonLeaseExpired:    turns.AdviceSameIDNow,
		turns.ReasonAmbiguous:       turns.AdviceSameIDNow,
		turns.ReasonShutdown:        turns.AdviceSameIDNow,
		turns.ReasonDeadline:        turns.AdviceSameIDNow,
		turns.ReasonHeldReleased:    turns.AdviceSameIDNow,
		turns.ReasonProviderError:   turns.AdviceSameIDAfter,
		turns.ReasonProviderRefused: turns.AdviceRegenerate,
		turns.ReasonEmpty:           turns.AdviceRegenerate,
		turns.ReasonCancelled:       turns.AdviceRegenerate,
		turns.ReasonDisconnected:    turns.AdviceRegenerate,
		turns.ReasonSuperseded:      turns.AdviceDoNotRetry,
		turns.ReasonDeleted:         turns.AdviceDoNotRetry,
	} {
		r := turns.Reply{Status: turns.StatusAbandoned, Reason: reason, Calls: 1}
		got, _ := turns.AdviceFor(r, 5)
		require.Equal(t, want, got, "%s", reason)
		r.Calls = 5
		if got, _ = turns.AdviceFor(r, 5); reason.Curable() {
			require.Equal(t, turns.AdviceRegenerate, got, "%s with the budget spent", reason)
		}
		r.Calls, r.CancelRequested = 1, true
		if got, _ = turns.AdviceFor(r, 5); reason.Curable() {
			require.Equal(t, turns.AdviceRegenerate, got, "%s of a generation that was asked to stop", reason)
		}
		r.CancelRequested, r.LaterTurn = false, true
		if got, _ = turns.AdviceFor(r, 5); reason.Curable() {
			require.Equal(t, turns.AdviceRegenerate, got, "%s below a later turn", reason)
		} else {
			require.Equal(t, want, got, "%s, which is no matter of turns", reason)
		}
	}
	require.Len(t, turns.Reasons, 12)
	none, _ := turns.AdviceFor(turns.Reply{Status: turns.StatusComplete}, 5)
	require.Equal(t, turns.AdviceNone, none)
}
