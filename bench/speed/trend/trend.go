// Package trend tells what grows from what is flat: a line through samples by least squares.
package trend

import "math"

// Line is y = At0 + Slope * x.
type Line struct{ At0, Slope float64 }

// Fit is the line with the least squares through points, of which there have to be two with different x. Otherwise it is flat, at
// the mean.
func Fit(xs, ys []float64) Line {
	n := float64(min(len(xs), len(ys)))
	if n == 0 {
		return Line{}
	}
	var meanX, meanY float64
	for i := range int(n) {
		meanX, meanY = meanX+xs[i]/n, meanY+ys[i]/n
	}
	var xy, xx float64
	for i := range int(n) {
		xy += (xs[i] - meanX) * (ys[i] - meanY)
		xx += (xs[i] - meanX) * (xs[i] - meanX)
	}
	if xx == 0 {
		return Line{At0: meanY}
	}
	return Line{At0: meanY - xy/xx*meanX, Slope: xy / xx}
}

// At is the line's value.
func (l Line) At(x float64) float64 { return l.At0 + l.Slope*x }

// Settled are the last two thirds of samples: what comes before is the warm-up.
func Settled[T any](samples []T) []T { return samples[len(samples)/3:] }

// Growth is by how much the line through samples rises from the first to the last one, as a share of its mean; slack is what a rise
// may have without being one, since small values jump. It is negative for what falls.
func Growth(xs, ys []float64, slack float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	line := Fit(xs, ys)
	first, last := line.At(xs[0]), line.At(xs[len(xs)-1])
	mean := (first + last) / 2
	rise := last - first
	if math.Abs(rise) <= slack || mean <= 0 {
		return 0
	}
	return (rise - math.Copysign(slack, rise)) / mean
}
