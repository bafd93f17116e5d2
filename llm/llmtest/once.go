package llmtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// runOnce checks that a call is one request on the wire, on connections that served before and die now.
func runOnce(t *testing.T, a llm.Adapter) {
	v := Voices[a.Wire]
	for name, kill := range map[string]func(*Exchange){
		"closed": func(x *Exchange) { _ = x.Close() },
		"reset":  (*Exchange).Reset,
	} {
		t.Run("a used connection is "+name+" once the request was read", func(t *testing.T) {
			p := Play(t, func(x *Exchange) {
				if x.OnConn%2 == 1 {
					x.Stream(v.Whole("whole"))
					return
				}
				kill(x)
			})
			s := open(t, a, p.URL(), turns.Limits{})
			for pair := range 20 {
				requireWhole(t, s.collect(t), "whole")
				requireFailed(t, turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseWritten}, s.collect(t))
				require.Equal(t, 2*pair+2, p.Requests())
			}
			require.Equal(t, 20, p.Connections(), "each connection served twice")
		})
	}
	t.Run("an idle connection is closed under the next request", func(t *testing.T) {
		p := Play(t, func(x *Exchange) {
			x.Stream(v.Whole("whole"))
			_ = x.Close()
		})
		s := open(t, a, p.URL(), turns.Limits{})
		for n := range 30 {
			// Whoever wins the race, the next request is a new connection's, or lost with the old one: read at most once.
			r := s.collect(t)
			require.LessOrEqual(t, p.Requests(), n+1)
			if r.Err != nil {
				require.Contains(t, []turns.CallClass{turns.ClassAmbiguous, turns.ClassNotSent}, r.Err.Class)
			}
		}
	})
	t.Run("the scripted provider counts the same", func(t *testing.T) {
		s := scripted.Start(t, scripted.Script{Rules: []scripted.Rule{
			{Match: scripted.Match{Nth: 2}, Plan: scripted.Plan{Steps: []scripted.Step{{At: scripted.AtRequestRead, Do: scripted.DoReset}}}},
			{},
		}})
		client := open(t, a, s.URL(), turns.Limits{})
		require.Nil(t, client.collect(t).Err)
		require.Equal(t, turns.ClassAmbiguous, client.collect(t).Err.Class)
		require.Nil(t, client.collect(t).Err)
		counts := s.Counts()
		require.Equal(t, 3, counts.Requests)
		require.Equal(t, 2, counts.Generations)
	})
	t.Run("a call is made once, however often it is ranged over", func(t *testing.T) {
		p := Play(t, func(x *Exchange) { x.Stream(v.Whole("whole")) })
		call := open(t, a, p.URL(), turns.Limits{}).call(t)
		requireWhole(t, Collect(t, call), "whole")
		requireFailed(t, turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone}, Collect(t, call))
		require.Equal(t, 1, p.Requests())
	})
	t.Run("a call that must not be sent any more once it is connected is not sent", func(t *testing.T) {
		p := Play(t, func(x *Exchange) { x.Stream(v.Whole("whole")) })
		s := open(t, a, p.URL(), turns.Limits{})
		for n := range 3 { // the second time over a connection that served before
			requireFailed(t, turns.CallError{Class: turns.ClassNotSent, Phase: turns.PhaseConnected}, Collect(t, s.heldBack(t)))
			require.Equal(t, n, p.Requests())
			requireWhole(t, s.collect(t), "whole")
		}
	})
}
