package arrays

import "strings"

// piece is a type of the pieces that content is made of: its shape, and who may have it, as words.
type piece struct {
	shape shape
	of    string
}

// piece checks that a piece of content is of a known type, in shape and where it may stand. False is one of which nothing
// more can be said.
func (c *checker) piece(n *node, known map[string]piece, of string) bool {
	p, ok := known[n.str("type")]
	if !c.demand(ok, BlockUnknown, n) || !c.fits(n, p.shape) {
		return false
	}
	c.demand(strings.Contains(p.of, of), BlockPlace, n)
	return true
}
