package turns

import (
	"strings"
	"unicode/utf8"
)

// compact reads JSON text as this package stores it: without spaces, fields in their order, of the few kinds that nearly all of what
// is stored consists of. It takes a fraction of what encoding/json takes, and what it takes it takes as that does: a method
// reports false for whatever else is there, and then the text is to be read by encoding/json from its beginning.
type compact struct{ rest []byte }

// pieces reads those of a log.
func (c *compact) pieces() ([]Piece, bool) {
	pieces := make([]Piece, 0, 1)
	if !c.skipped(`[`) {
		return nil, false
	}
	for {
		var p Piece
		if !c.piece(&p) {
			return nil, false
		}
		pieces = append(pieces, p)
		if !c.skipped(`,`) {
			return pieces, c.ended(`]`)
		}
	}
}

func (c *compact) piece(p *Piece) bool {
	var kind string
	ok := c.skipped(`{"b":`) && c.number(&p.Block) && c.skipped(`,"k":`) && c.text(&kind)
	p.Kind = BlockKind(kind)
	p.Starts = ok && c.skipped(`,"s":true`)
	ok = ok && c.field(`,"i":`, &p.ToolUseID) && c.field(`,"n":`, &p.ToolName)
	p.Redacted = ok && c.skipped(`,"r":true`)
	ok = ok && c.field(`,"y":`, &p.Type) && c.field(`,"t":`, &p.Text)
	p.Ends = ok && c.skipped(`,"e":true`)
	return ok && c.field(`,"g":`, &p.Seal) && c.skipped(`}`)
}

// texts reads content that is text alone.
func (c *compact) texts() ([]Block, bool) {
	content := make([]Block, 0, 1)
	if !c.skipped(`[`) {
		return nil, false
	}
	for {
		var t Text
		if !c.skipped(`{"kind":"text"`) || !c.field(`,"text":`, &t.Text) || !c.skipped(`}`) {
			return nil, false
		}
		content = append(content, t)
		if !c.skipped(`,`) {
			return content, c.ended(`]`)
		}
	}
}

// skipped steps over what comes next, if it does.
func (c *compact) skipped(next string) bool {
	if len(c.rest) < len(next) || string(c.rest[:len(next)]) != next {
		return false
	}
	c.rest = c.rest[len(next):]
	return true
}

// ended steps over the end of a text, if nothing follows it.
func (c *compact) ended(end string) bool { return c.skipped(end) && len(c.rest) == 0 }

// number reads a whole number of at most nine digits.
func (c *compact) number(n *uint32) bool {
	digits := 0
	for digits < len(c.rest) && c.rest[digits] >= '0' && c.rest[digits] <= '9' {
		if digits == 9 {
			return false
		}
		*n = *n*10 + uint32(c.rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 1 && c.rest[0] == '0' {
		return false
	}
	c.rest = c.rest[digits:]
	return true
}

// field reads a string behind its name; without the name there is none to read.
func (c *compact) field(name string, s *string) bool { return !c.skipped(name) || c.text(s) }

// text reads a string.
func (c *compact) text(s *string) bool {
	if !c.skipped(`"`) {
		return false
	}
	run := c.run()
	if c.skipped(`"`) {
		*s = string(run)
		return utf8.Valid(run)
	}
	var b strings.Builder
	b.Grow(2 * len(run))
	for {
		b.Write(run)
		if c.skipped(`"`) {
			*s = b.String()
			return utf8.ValidString(*s)
		}
		r, ok := c.escaped()
		if !ok {
			return false
		}
		b.WriteRune(r)
		run = c.run()
	}
}

// run steps over what stands for itself in a string.
func (c *compact) run() []byte {
	n := 0
	for n < len(c.rest) && c.rest[n] >= ' ' && c.rest[n] != '"' && c.rest[n] != '\\' {
		n++
	}
	run := c.rest[:n]
	c.rest = c.rest[n:]
	return run
}

// escaped reads one escape, of a rune that is no half of a pair.
func (c *compact) escaped() (rune, bool) {
	if len(c.rest) < 2 || c.rest[0] != '\\' {
		return 0, false
	}
	if letter := strings.IndexByte(`"\/bfnrt`, c.rest[1]); letter >= 0 {
		c.rest = c.rest[2:]
		return rune("\"\\/\b\f\n\r\t"[letter]), true
	}
	if c.rest[1] != 'u' || len(c.rest) < 6 {
		return 0, false
	}
	var r rune
	for _, digit := range c.rest[2:6] {
		i := strings.IndexByte("0123456789abcdef", digit)
		if i < 0 {
			return 0, false
		}
		r = r<<4 | rune(i)
	}
	c.rest = c.rest[6:]
	return r, utf8.ValidRune(r)
}
