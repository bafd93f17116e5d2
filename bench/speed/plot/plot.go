// Package plot draws lines over time as SVG: one small chart below the other, each with a scale of its own that begins at 0.
package plot

import (
	"fmt"
	"html"
	"strings"
)

// Chart is one line.
type Chart struct {
	// Title says what is shown, with its unit.
	Title string
	// Values belong to the drawing's xs.
	Values []float64
}

const (
	width, height, gap    = 720, 90, 34
	left, right, top      = 90, 20, 40
	labelSize, markRadius = 11, 1.6
)

// SVG draws charts over the same xs, whose unit is named at the end.
func SVG(title, unit string, xs []float64, charts []Chart) string {
	var b strings.Builder
	total := top + len(charts)*(height+gap) + 20
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="%d">`+"\n",
		left+width+right, total, labelSize)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="20" font-size="14">%s</text>`+"\n", left, html.EscapeString(title))
	for i, c := range charts {
		c.draw(&b, xs, top+i*(height+gap)+labelSize)
	}
	if n := len(xs); n > 0 {
		fmt.Fprintf(&b, `<text x="%d" y="%d">%.4g</text><text x="%d" y="%d" text-anchor="end">%.4g %s</text>`+"\n",
			left, total-8, xs[0], left+width, total-8, xs[n-1], html.EscapeString(unit))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// draw draws one chart whose upper edge is at y.
func (c Chart) draw(b *strings.Builder, xs []float64, y int) {
	most := 0.0
	for _, v := range c.Values {
		most = max(most, v)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`, left, y-4, html.EscapeString(c.Title))
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#bbb"/>`, left, y, width, height)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%.4g</text><text x="%d" y="%d" text-anchor="end">0</text>`, left-6, y+labelSize, most, left-6, y+height)
	points := Points(xs, c.Values, most)
	if len(points) == 0 {
		b.WriteString("\n")
		return
	}
	b.WriteString(`<polyline fill="none" stroke="#1f5fa8" stroke-width="1.5" points="`)
	for _, p := range points {
		fmt.Fprintf(b, "%.1f,%.1f ", float64(left)+p[0]*width, float64(y)+(1-p[1])*height)
	}
	b.WriteString(`"/>`)
	for _, p := range points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%g" fill="#1f5fa8"/>`, float64(left)+p[0]*width, float64(y)+(1-p[1])*height, markRadius)
	}
	b.WriteString("\n")
}

// Points are the places of values in a square of side 1: the first x is 0 and the last 1, and most is 1.
func Points(xs, values []float64, most float64) (points [][2]float64) {
	n := min(len(xs), len(values))
	if n == 0 {
		return nil
	}
	span := xs[n-1] - xs[0]
	for i := range n {
		var p [2]float64
		if span > 0 {
			p[0] = (xs[i] - xs[0]) / span
		}
		if most > 0 {
			p[1] = values[i] / most
		}
		points = append(points, p)
	}
	return points
}
