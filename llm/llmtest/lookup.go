package llmtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// runLookup checks an endpoint whose responses are found by what was known of the call before it left.
func runLookup(t *testing.T, a llm.Adapter, r Recovery) {
	for _, at := range []scripted.Point{scripted.AtBeforeHeaders, scripted.AfterDelta(0), scripted.AfterDelta(3), scripted.AtBeforeTerminal} {
		t.Run("an answer that was lost at "+string(at), func(t *testing.T) {
			s := ask(t, a, r, replies(cutAt(at)))
			first, lost := s.generate(t)
			require.Equal(t, turns.ClassAmbiguous, first.Err.Class)
			s.over(t)
			lost.ResponseID = "" // nobody wrote it down
			s.requireRecovered(t, s.recover(t, lost))
		})
	}
	t.Run("an answer of all kinds", func(t *testing.T) {
		s := ask(t, a, r, planned(scripted.Plan{Blocks: mixed}))
		whole, lost := s.generate(t)
		found := s.recover(t, lost)
		require.Nil(t, found.Err)
		require.Equal(t, len(whole.Blocks), len(found.Blocks))
		for i, b := range whole.Blocks {
			require.Equal(t, b.BlockStarted, found.Blocks[i].BlockStarted)
			require.Equal(t, b.Text, found.Blocks[i].Text)
		}
		require.Equal(t, whole.Finished, found.Finished)
	})
	t.Run("an answer that is still made is not there", func(t *testing.T) {
		s := ask(t, a, r, replies(cutAt(scripted.AfterDelta(2)), scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoWait, Gate: "mid"}))
		_, lost := s.generate(t)
		s.reachedGate(t, "mid")
		requireUnknown(t, s.recover(t, lost))
		require.NoError(t, s.provider.OpenGate("mid"))
		s.over(t)
		s.requireRecovered(t, s.recover(t, lost))
	})
	t.Run("an answer that the provider is slow to show is not there", func(t *testing.T) {
		script := replies(cutAt(scripted.AfterDelta(2)))
		script.Endpoint.LookupDelayMS = 600_000
		s := ask(t, a, r, script)
		_, lost := s.generate(t)
		s.over(t)
		requireUnknown(t, s.recover(t, lost))
	})
	t.Run("a call that never arrived, and another's answer", func(t *testing.T) {
		s := ask(t, a, r, replies())
		call := s.prepare(t)
		other := ask(t, a, r, replies())
		other.subject, other.provider = s.subject, s.provider
		whole, _ := other.generate(t)
		require.Nil(t, whole.Err)
		requireUnknown(t, s.recover(t, turns.LostCall{Request: call.Request, Session: call.Session, Origin: s.origin}))
	})
	t.Run("a call that failed is not there", func(t *testing.T) {
		s := ask(t, a, r, replies(cutAt(scripted.AfterDelta(2)), scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoErrorEvent}))
		_, lost := s.generate(t)
		s.over(t)
		requireUnknown(t, s.recover(t, lost))
	})
	t.Run("an asking that got no answer is asked again", func(t *testing.T) {
		script := replies(cutAt(scripted.AfterDelta(2)))
		script.Rules = append(script.Rules, scripted.Rule{
			Match: scripted.Match{Ask: scripted.AskList}, Times: 1, Plan: scripted.Plan{Steps: []scripted.Step{cutAt(scripted.AtRequestRead)}},
		})
		s := ask(t, a, r, script)
		_, lost := s.generate(t)
		s.over(t)
		lost.ResponseID = "" // with it some would not need the list
		failed := s.recover(t, lost)
		require.Equal(t, turns.ClassAmbiguous, failed.Err.Class)
		require.NotErrorIs(t, failed.Err, turns.ErrNotThere)
		s.requireRecovered(t, s.recover(t, lost))
	})
}
