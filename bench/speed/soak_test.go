package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// soaked is a soak that saw what it is given, minute by minute, and then the end.
func soaked(after held, at func(minute float64, h *held)) map[string]Figure {
	steady := held{Heap: 12 * mebibyte, RSS: 60 * mebibyte, Goroutines: 100, FDs: 45, Connections: 17, Tables: 5e6, Indexes: 1e6, Rows: 2000, Live: 4000}
	k := &soaking{bench: &bench{report: &Report{Notes: map[string]any{}}}, base: steady, after: steady}
	if after.Heap > 0 {
		k.after = after
	}
	for n := range 20 {
		h := steady
		h.Minutes = float64(n)
		h.Tables, h.Rows, h.Live = h.Tables*float64(n+1), h.Rows*float64(n+1), h.Live*float64(n+1)
		at(h.Minutes, &h)
		k.seen = append(k.seen, h)
	}
	k.judge()
	figures := map[string]Figure{}
	for _, f := range k.report.Figures {
		figures[f.Name] = f
	}
	return figures
}

// missed are the figures that did not reach their goals.
func missed(figures map[string]Figure) (names []string) {
	for name, f := range figures {
		if !f.reached() {
			names = append(names, name)
		}
	}
	return names
}

func TestASoakThatIsFlatMissesNothing(t *testing.T) {
	figures := soaked(held{}, func(minute float64, h *held) {
		if int(minute)%3 == 0 { // replies come and go
			h.Goroutines, h.FDs, h.Heap = h.Goroutines+20, h.FDs+6, h.Heap+mebibyte
		}
	})
	require.Empty(t, missed(figures))
	require.Len(t, figures, 12)
}

func TestASoakNoticesWhatLeaks(t *testing.T) {
	for name, leak := range map[string]func(minute float64, h *held){
		"heap":         func(m float64, h *held) { h.Heap += m * mebibyte / 2 },
		"rss":          func(m float64, h *held) { h.RSS += m * 3 * mebibyte },
		"goroutines":   func(m float64, h *held) { h.Goroutines += 5 * m },
		"fds":          func(m float64, h *held) { h.FDs += 2 * m },
		"connections":  func(m float64, h *held) { h.Connections += m / 2 },
		"bytes_a_turn": func(m float64, h *held) { h.Indexes += m * m * 1e6 },
		"dead":         func(_ float64, h *held) { h.Dead = h.Live },
		"chunks_mb":    func(m float64, h *held) { h.Chunks = m * 5e6; h.Tables += h.Chunks },
	} {
		require.Equal(t, []string{name}, missed(soaked(held{}, leak)), name)
	}
}

func TestASoakNoticesWhatStaysWhenTheLoadHasGone(t *testing.T) {
	flat := func(float64, *held) {}
	got := missed(soaked(held{Heap: 16 * mebibyte, Goroutines: 140, FDs: 60, Connections: 20}, flat))
	require.ElementsMatch(t, []string{"heap_after", "goroutines_after", "fds_after", "connections_after"}, got)
}

func TestWhatIsHeldBeforeALoadIsLookedForOnceIdleConnectionsHaveGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		look := func() (held, error) {
			if time.Since(began) < 20*time.Second { // connections to a provider that the warm-up has left
				return held{Goroutines: 100, FDs: 60, Connections: 17}, nil
			}
			return held{Goroutines: 30, FDs: 25, Connections: 17}, nil
		}
		base, err := settled(t.Context(), look, time.Minute, held{})
		require.NoError(t, err)
		require.Equal(t, held{Goroutines: 30, FDs: 25, Connections: 17}, base)
		began = time.Now()
		after, err := settled(t.Context(), look, time.Minute, base)
		require.NoError(t, err)
		require.Equal(t, base, after)
		require.Less(t, time.Since(began), 25*time.Second, "as soon as it is as before")
	})
}
