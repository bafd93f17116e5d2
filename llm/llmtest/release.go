package llmtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

// runRelease checks that a connection is let go on every exit.
func runRelease(t *testing.T, a llm.Adapter) {
	runLeaving(t, a)
	runCancelling(t, a)
	runKeeping(t, a)
}

// chatter says one delta after another for as long as somebody listens.
func chatter(v Voice, gone chan<- struct{}) func(*Exchange) {
	return func(x *Exchange) {
		defer close(gone)
		x.Begin()
		x.Events(v.Open)
		for {
			if _, err := x.Write([]byte("2\r\n\n\n\r\n")); err != nil {
				return
			}
			x.Events(v.Text("more "))
		}
	}
}

func runLeaving(t *testing.T, a llm.Adapter) {
	for _, leave := range []struct {
		name string
		at   func(turns.Delta) bool
	}{
		{"at the response", func(d turns.Delta) bool { _, is := d.(turns.Responded); return is }},
		{"at the text", func(d turns.Delta) bool { _, is := d.(turns.BlockDelta); return is }},
	} {
		t.Run("a consumer leaves "+leave.name, func(t *testing.T) {
			gone := make(chan struct{})
			p := Play(t, chatter(Voices[a.Wire], gone))
			for d, err := range open(t, a, p.URL(), turns.Limits{}).call(t) {
				require.NoError(t, err)
				if leave.at(d) {
					break
				}
			}
			<-gone
		})
	}
	t.Run("a consumer panics", func(t *testing.T) {
		gone := make(chan struct{})
		p := Play(t, chatter(Voices[a.Wire], gone))
		call := open(t, a, p.URL(), turns.Limits{}).call(t)
		require.Panics(t, func() {
			for range call {
				panic("consumer")
			}
		})
		<-gone
	})
}

func runCancelling(t *testing.T, a llm.Adapter) {
	t.Run("a caller cancels", func(t *testing.T) {
		gone := make(chan struct{})
		p := Play(t, chatter(Voices[a.Wire], gone))
		s := open(t, a, p.URL(), turns.Limits{})
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		stop := errors.New("stop")
		var last error
		for _, err := range s.caller.Generate(ctx, turns.Call{Request: s.request(t)}) {
			cancel(stop)
			last = err
		}
		<-gone
		var failed *turns.CallError
		require.ErrorAs(t, last, &failed)
		require.Equal(t, turns.ClassCancelled, failed.Class)
		require.False(t, failed.Timeout)
		require.ErrorIs(t, failed, stop)
	})
	t.Run("a caller has cancelled before", func(t *testing.T) {
		p := Play(t, func(x *Exchange) { x.Stream(Voices[a.Wire].Whole("never")) })
		s := open(t, a, p.URL(), turns.Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := Collect(t, s.caller.Generate(ctx, turns.Call{Request: s.request(t)}))
		requireFailed(t, turns.CallError{Class: turns.ClassCancelled, Phase: turns.PhaseNone}, r)
		require.Zero(t, p.Requests())
	})
}

func runKeeping(t *testing.T, a llm.Adapter) {
	v := Voices[a.Wire]
	t.Run("the server keeps the socket open after the terminal event", func(t *testing.T) {
		gone := make(chan struct{})
		p := Play(t, func(x *Exchange) {
			x.Begin()
			x.Events(v.Whole("whole"))
			x.Gone()
			close(gone)
		})
		requireWhole(t, open(t, a, p.URL(), turns.Limits{}).collect(t), "whole")
		<-gone
	})
	t.Run("a connection serves again, even when the consumer stops at the last delta", func(t *testing.T) {
		p := Play(t, func(x *Exchange) { x.Stream(v.Whole("whole")) })
		s := open(t, a, p.URL(), turns.Limits{})
		for range 5 {
			for d := range s.call(t) {
				if _, done := d.(turns.Finished); done {
					break
				}
			}
		}
		require.Equal(t, 5, p.Requests())
		require.Equal(t, 1, p.Connections())
	})
}
