package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/bench/speed/load"
)

func TestARatioIsTakenWithinARound(t *testing.T) {
	turns := func(n ...int) (all []load.Result) {
		for _, n := range n {
			all = append(all, load.Result{Turns: n, Seconds: 1})
		}
		return all
	}
	// A machine that is ten times as slow in the second round.
	found := rounds{"a": turns(200, 20, 220), "b": turns(100, 10, 100)}
	ratio := found.of(func(at func(string) load.Result) float64 { return at("a").PerSecond() / at("b").PerSecond() })
	require.InDelta(t, 2, ratio, 0)
	require.InDelta(t, 100, found.perSecond("b"), 0)
}

func TestACompositeIsSlowerThanEachOfItsParts(t *testing.T) {
	require.InDelta(t, 732, composite(1458, 1471), 1)
	require.InDelta(t, 100, composite(100), 1e-9)
}

func TestAGoalIsReachedFromItsOwnSide(t *testing.T) {
	require.True(t, Figure{Value: 1.2, Goal: 1.1}.reached())
	require.False(t, Figure{Value: 1.0, Goal: 1.1}.reached())
	require.True(t, Figure{Value: 1.0, Goal: 1.3, AtMost: true}.reached())
	require.False(t, Figure{Value: 1.4, Goal: 1.3, AtMost: true}.reached())
}

func TestAFigureFallsByMoreThanATenth(t *testing.T) {
	ratio := func(v float64) Figure { return Figure{Value: v, Goal: 1.1} }
	require.True(t, ratio(0.89).fell(ratio(1)))
	require.False(t, ratio(0.91).fell(ratio(1)))
	late := func(v, goal float64) Figure { return Figure{Value: v, Goal: goal, AtMost: true} }
	require.True(t, late(2.3, 3).fell(late(2, 3)))
	require.False(t, late(4, 6).fell(late(2, 3))) // on a disk that is half as fast
	require.False(t, ratio(1).fell(Figure{}))     // not recorded
	require.False(t, late(0.01, 1).fell(late(0, 1)))
	require.False(t, late(-0.1, 1).fell(late(-0.1, 1)))
}

func TestAPeerThatDidNothingOrFailedIsNotMeasured(t *testing.T) {
	got, err := readPeer("restate                c=64 turns/s=291 p50=26.88ms p99=45.69ms fails=0\n")
	require.NoError(t, err)
	require.InDelta(t, 291, got, 0)
	for _, out := range []string{"restate c=64 turns/s=0 p50=0s p99=0s fails=0", "restate c=64 turns/s=12 p50=1s p99=2s fails=3", "panic"} {
		_, err := readPeer(out)
		require.ErrorContains(t, err, out)
	}
}
