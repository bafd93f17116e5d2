package llmtest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// runResume checks an endpoint whose responses go on without their client, and are read again by their ids.
func runResume(t *testing.T, a llm.Adapter, r Recovery) {
	runGoingOn(t, a, r)
	t.Run("an answer that broke off twice", func(t *testing.T) {
		script := replies(cutAt(scripted.AfterDelta(2)))
		script.Rules = append(script.Rules, scripted.Rule{
			Match: scripted.Match{Ask: scripted.AskResume}, Times: 1, Plan: scripted.Plan{Steps: []scripted.Step{cutAt(scripted.AfterDelta(5))}},
		})
		s := ask(t, a, r, script)
		first, lost := s.generate(t)
		second := s.goOn(t, first, lost)
		require.Equal(t, turns.ClassAmbiguous, second.Err.Class)
		require.NotNil(t, second.Err.Continuation)
		require.Greater(t, len(second.Text), len(first.Text))
		lost.Continuation = second.Err.Continuation
		s.requireRecovered(t, s.goOn(t, second, lost))
	})
	t.Run("an asking that never got an answer", func(t *testing.T) {
		script := replies(cutAt(scripted.AfterDelta(2)))
		script.Rules = append(script.Rules, scripted.Rule{
			Match: scripted.Match{Ask: scripted.AskResume}, Times: 1, Plan: scripted.Plan{Steps: []scripted.Step{cutAt(scripted.AtRequestRead)}},
		})
		s := ask(t, a, r, script)
		first, lost := s.generate(t)
		second := s.goOn(t, first, lost)
		require.Equal(t, turns.ClassAmbiguous, second.Err.Class)
		lost.Continuation = second.Err.Continuation
		s.requireRecovered(t, s.goOn(t, second, lost))
	})
	t.Run("an answer that is still made", func(t *testing.T) {
		s := ask(t, a, r, replies(cutAt(scripted.AfterDelta(2)), scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoWait, Gate: "mid"}))
		_, lost := s.generate(t)
		s.reachedGate(t, "mid")
		lost.Continuation = nil
		opened := false
		s.requireRecovered(t, Collect(t, func(yield func(turns.Delta, error) bool) {
			for d, err := range s.caller.(llm.Recoverer).Recover(t.Context(), lost) {
				if _, text := d.(turns.BlockDelta); text && !opened {
					opened = true
					require.NoError(t, s.provider.OpenGate("mid"))
				}
				if !yield(d, err) {
					return
				}
			}
		}))
		require.True(t, opened, "what was made so far came before the rest was")
	})
	t.Run("a call that failed", func(t *testing.T) {
		s := ask(t, a, r, replies(cutAt(scripted.AfterDelta(2)), scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoErrorEvent}))
		first, lost := s.generate(t)
		s.over(t)
		require.NotEqual(t, turns.ClassTerminal, requireOutcome(t, s.goOn(t, first, lost)).Class)
		require.NotEqual(t, turns.ClassTerminal, requireOutcome(t, s.recover(t, lost)).Class)
		require.Equal(t, 1, s.provider.Counts().Generations)
	})
	t.Run("a response that nobody knows", func(t *testing.T) {
		s := ask(t, a, r, replies())
		requireUnknown(t, s.recover(t, turns.LostCall{Request: s.request(t), ResponseID: "resp_0", Origin: s.origin}))
	})
	t.Run("a response without an id", func(t *testing.T) {
		s := ask(t, a, r, replies())
		require.Equal(t, turns.ClassTerminal, s.recover(t, turns.LostCall{Request: s.request(t), Origin: s.origin}).Err.Class)
		require.Zero(t, s.provider.Counts().Asked)
	})
}

// runGoingOn cuts an answer at each of its deltas, and goes on there and from the beginning.
func runGoingOn(t *testing.T, a llm.Adapter, r Recovery) {
	points := []scripted.Point{scripted.AtBeforeTerminal}
	for n := range recoveredDeltas + 1 {
		points = append(points, scripted.AfterDelta(n))
	}
	for _, at := range points {
		t.Run("cut at "+string(at), func(t *testing.T) {
			s := ask(t, a, r, replies(cutAt(at)))
			first, lost := s.generate(t)
			require.Equal(t, turns.ClassAmbiguous, first.Err.Class)
			require.NotEmpty(t, lost.ResponseID)
			require.NotNil(t, lost.Continuation)
			s.requireRecovered(t, s.goOn(t, first, lost))
			s.requireRecovered(t, s.recover(t, lost))
			require.Equal(t, 2, s.provider.Counts().Asked)
		})
	}
	t.Run("an answer that nobody read the end of is read again", func(t *testing.T) {
		s := ask(t, a, r, replies())
		whole, lost := s.generate(t)
		require.Nil(t, whole.Err)
		s.requireRecovered(t, s.recover(t, lost))
	})
	t.Run("an answer of all kinds is the same again", func(t *testing.T) {
		s := ask(t, a, r, planned(scripted.Plan{Blocks: mixed}))
		whole, lost := s.generate(t)
		again := s.recover(t, lost)
		require.Equal(t, whole.Blocks, again.Blocks)
		require.Equal(t, whole.Finished, again.Finished)
		require.Equal(t, whole.Usage, again.Usage)
	})
}

// runStop checks that a response is stopped, once and for all.
func runStop(t *testing.T, a llm.Adapter, r Recovery) {
	t.Run("a response that is made", func(t *testing.T) {
		s := ask(t, a, r, replies(cutAt(scripted.AfterDelta(2)), scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoWait, Gate: "mid"}))
		_, lost := s.generate(t)
		s.reachedGate(t, "mid")
		require.NoError(t, s.stop(t, lost))
		require.NoError(t, s.stop(t, lost), "it may be asked again")
		counts := s.provider.Counts()
		require.Zero(t, counts.Running)
		require.Equal(t, 4, counts.OutputTokens, "nothing is made any more")
		requireOutcome(t, s.recover(t, lost))
	})
	t.Run("a response that is over", func(t *testing.T) {
		s := ask(t, a, r, replies())
		_, lost := s.generate(t)
		require.NoError(t, s.stop(t, lost))
		s.requireRecovered(t, s.recover(t, lost))
	})
	t.Run("a response that nobody knows", func(t *testing.T) {
		s := ask(t, a, r, replies())
		require.ErrorIs(t, s.stop(t, turns.LostCall{Request: s.request(t), ResponseID: "resp_0"}), turns.ErrNotThere)
	})
}

func (s asked) stop(t testing.TB, lost turns.LostCall) error {
	t.Helper()
	return s.caller.(llm.Stopper).Stop(t.Context(), lost)
}

// runOrigin checks that a response leads back to the call it answers.
func runOrigin(t *testing.T, a llm.Adapter, r Recovery) {
	s := ask(t, a, r, replies())
	reader, ok := s.caller.(llm.OriginReader)
	if !ok {
		return
	}
	whole, _ := s.generate(t)
	require.Nil(t, whole.Err)
	origin, err := reader.OriginOf(t.Context(), whole.ResponseID)
	require.NoError(t, err)
	require.Equal(t, s.origin, origin)
	_, err = reader.OriginOf(t.Context(), "resp_0")
	require.ErrorIs(t, err, turns.ErrNotThere)
	var failed *turns.CallError
	require.True(t, errors.As(err, &failed))
	other := ask(t, a, r, replies())
	other.origin = turns.Origin{}
	nobodys, _ := other.generate(t)
	_, err = other.caller.(llm.OriginReader).OriginOf(t.Context(), nobodys.ResponseID)
	require.ErrorIs(t, err, turns.ErrNotThere, "a response that is not ours")
}
