package llmtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// limited is what the limits are tested with. The time they take is a bubble's.
var limited = turns.Limits{FirstByte: 2 * time.Minute, Idle: 5 * time.Minute, Total: 30 * time.Minute}

// runLimits checks each limit, and that none of them fires early, in a bubble where time passes at once.
func runLimits(t *testing.T, a llm.Adapter) {
	v := Voices[a.Wire]
	timeout := func(class turns.CallClass, phase turns.CallPhase, status int) turns.CallError {
		return turns.CallError{Class: class, Phase: phase, HTTPStatus: status, Timeout: true}
	}
	for _, tt := range []struct {
		name   string
		answer func(*Exchange)
		after  time.Duration
		cause  error
		want   turns.CallError
	}{
		{"headers never come", (*Exchange).Gone, 2 * time.Minute, wire.ErrFirstByteLimit,
			timeout(turns.ClassAmbiguous, turns.PhaseWritten, 0)},
		{"silence after the headers", func(x *Exchange) { x.Begin(); x.Gone() }, 5 * time.Minute, wire.ErrIdleLimit,
			timeout(turns.ClassAmbiguous, turns.PhaseHeaders, 200)},
		{"silence in the text", func(x *Exchange) { x.Begin(); x.Events(v.Open + v.Text("a")); x.Gone() }, 5 * time.Minute, wire.ErrIdleLimit,
			timeout(turns.ClassAmbiguous, turns.PhaseBody, 200)},
		{"text without an end", every(4*time.Minute, v.Open, v.Text("a")), 30 * time.Minute, wire.ErrTotalLimit,
			timeout(turns.ClassAmbiguous, turns.PhaseBody, 200)},
		{"comments alone", every(time.Minute, v.Open, ": ping\n\n"), 30 * time.Minute, wire.ErrTotalLimit,
			timeout(turns.ClassAmbiguous, turns.PhaseBody, 200)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, a, tt.answer, func(t *testing.T, s subject) {
				start := time.Now()
				r := s.collect(t)
				requireFailed(t, tt.want, r)
				require.ErrorIs(t, r.Err, tt.cause)
				require.Equal(t, tt.after, time.Since(start))
			})
		})
	}
	t.Run("a bad status with a body that never comes is known at once", func(t *testing.T) {
		answer := func(x *Exchange) { x.Say("HTTP/1.1 400 Status\r\nContent-Length: 10\r\n\r\n"); x.Gone() }
		inBubble(t, a, answer, func(t *testing.T, s subject) {
			start := time.Now()
			requireFailed(t, turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseHeaders, HTTPStatus: 400}, s.collect(t))
			require.Less(t, time.Since(start), limited.FirstByte)
		})
	})
	t.Run("a slow reply within its limits is whole", func(t *testing.T) {
		answer := func(x *Exchange) {
			time.Sleep(119 * time.Second)
			x.Begin()
			for _, s := range []string{v.Open, v.Text("a"), ": ping\n\n", v.Text("b"), v.Close + v.Terminal} {
				time.Sleep(299 * time.Second)
				x.Events(s)
			}
			x.End()
		}
		inBubble(t, a, answer, func(t *testing.T, s subject) { requireWhole(t, s.collect(t), "ab") })
	})
	t.Run("a slow consumer is no silence", func(t *testing.T) {
		answer := func(x *Exchange) {
			x.Begin()
			x.Events(v.Open + v.Text("a"))
			x.Events(v.Text("b") + v.Close + v.Terminal)
			x.End()
		}
		inBubble(t, a, answer, func(t *testing.T, s subject) {
			var finished bool
			for d, err := range s.call(t) {
				require.NoError(t, err)
				if _, text := d.(turns.BlockDelta); text {
					time.Sleep(10 * time.Minute)
				}
				_, finished = d.(turns.Finished)
			}
			require.True(t, finished)
		})
	})
	t.Run("the caller's deadline is a limit", func(t *testing.T) {
		inBubble(t, a, every(time.Minute, v.Open, v.Text("a")), func(t *testing.T, s subject) {
			ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
			defer cancel()
			r := Collect(t, s.caller.Generate(ctx, turns.Call{Request: s.request(t)}))
			requireFailed(t, timeout(turns.ClassAmbiguous, turns.PhaseBody, 200), r)
		})
	})
}

// every says something again and again, as long as somebody listens.
func every(pause time.Duration, first, again string) func(*Exchange) {
	return func(x *Exchange) {
		x.Begin()
		x.Events(first)
		for {
			time.Sleep(pause)
			if _, err := x.Write([]byte("2\r\n\n\n\r\n")); err != nil {
				return
			}
			x.Events(again)
		}
	}
}

// inBubble runs a test against a hand-played provider in memory, with the clock of a bubble.
func inBubble(t *testing.T, a llm.Adapter, answer func(*Exchange), test func(*testing.T, subject)) {
	synctest.Test(t, func(t *testing.T) {
		p, dial := Pipe(answer)
		http := wire.NewClient(wire.Options{Dial: dial})
		test(t, openWith(http, a, p.URL(), limited))
		http.Close()
		p.Close()
	})
}
