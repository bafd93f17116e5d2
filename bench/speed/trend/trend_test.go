package trend

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestALineGoesThroughItsPoints(t *testing.T) {
	line := Fit([]float64{1, 2, 3, 4}, []float64{5, 7, 9, 11})
	require.InDelta(t, 2, line.Slope, 1e-9)
	require.InDelta(t, 3, line.At0, 1e-9)
	require.InDelta(t, 23, line.At(10), 1e-9)
}

func TestALineIsTheNearestToPointsBesideIt(t *testing.T) {
	// By hand: means 1 and 2; slope (1*1 + 1*1) / 2.
	line := Fit([]float64{0, 1, 2}, []float64{1, 2, 3})
	require.InDelta(t, 1, line.Slope, 1e-9)
	line = Fit([]float64{0, 1, 2, 3}, []float64{0, 2, 0, 2})
	require.InDelta(t, 0.4, line.Slope, 1e-9)
	require.InDelta(t, 0.4, line.At0, 1e-9)
}

func TestPointsOfOnePlaceAreFlat(t *testing.T) {
	require.Equal(t, Line{At0: 3}, Fit([]float64{1, 1}, []float64{2, 4}))
	require.Equal(t, Line{}, Fit(nil, nil))
}

func TestWhatLeaksGrowsAndWhatJumpsDoesNot(t *testing.T) {
	xs := []float64{0, 1, 2, 3, 4}
	require.InDelta(t, 0.4, Growth(xs, []float64{80, 90, 100, 110, 120}, 0), 1e-9)
	require.Zero(t, Growth(xs, []float64{100, 120, 80, 120, 100}, 0))
	require.Zero(t, Growth(xs, []float64{10, 10, 10, 11, 12}, 3))
	require.InDelta(t, 0.37, Growth(xs, []float64{80, 90, 100, 110, 120}, 3), 1e-9)
	require.Negative(t, Growth(xs, []float64{120, 110, 100, 90, 80}, 3))
	require.Zero(t, Growth(nil, nil, 0))
}

func TestTheWarmUpIsLeftOut(t *testing.T) {
	require.Equal(t, []int{2, 3, 4, 5}, Settled([]int{0, 1, 2, 3, 4, 5}))
	require.Empty(t, Settled([]int{}))
}
