package wire

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Runes makes the text of one block whole: it joins runes that were split over deltas, drops NUL, and puts U+FFFD for
// what is no text. The result over a block does not depend on where the deltas were cut. The zero value is ready.
type Runes struct {
	rest []byte // the start of a rune, or the first half of a surrogate pair
}

// Add takes the next delta and appends to dst the whole runes known by now; a half one at its end waits for the next.
func (r *Runes) Add(dst []byte, t Text) []byte {
	if len(r.rest) == 0 && utf8.Valid(t) && bytes.IndexByte(t, 0) < 0 {
		return append(dst, t...)
	}
	in := append(r.rest, t...)
	dst, n := appendWhole(dst, in, false)
	r.rest = append(r.rest[:0], in[n:]...)
	return dst
}

// End appends what still waits, as U+FFFD, and makes r ready for the next block.
func (r *Runes) End(dst []byte) []byte {
	dst, _ = appendWhole(dst, r.rest, true)
	r.rest = r.rest[:0]
	return dst
}

// appendWhole appends the runes of in and says how much of it was taken.
func appendWhole(dst, in []byte, final bool) (to []byte, taken int) {
	for taken < len(in) {
		c, n := decode(in[taken:])
		if n == 0 {
			if !final {
				break
			}
			c, n = utf8.RuneError, half(in[taken:])
		}
		if c != 0 {
			dst = utf8.AppendRune(dst, c)
		}
		taken += n
	}
	return dst, taken
}

// decode reads the rune at the start of b: two halves of a surrogate pair as one, anything broken as U+FFFD. Its length
// is 0 if b may be only the start of it.
func decode(b []byte) (rune, int) {
	if high, ok := surrogate(b); ok {
		if high >= 0xDC00 {
			return utf8.RuneError, 3
		}
		return pair(high, b[3:])
	}
	if !utf8.FullRune(b) || halfSurrogate(b) {
		return 0, 0
	}
	c, n := utf8.DecodeRune(b)
	if c == utf8.RuneError && n == 1 {
		return c, partial(b)
	}
	return c, n
}

// pair joins the first half of a surrogate pair with the half in rest. NUL between them is dropped like any other.
func pair(high rune, rest []byte) (rune, int) {
	nuls := 0
	for nuls < len(rest) && rest[nuls] == 0 {
		nuls++
	}
	rest = rest[nuls:]
	if low, ok := surrogate(rest); ok {
		if c := utf16.DecodeRune(high, low); c != utf8.RuneError {
			return c, 3 + nuls + 3
		}
		return utf8.RuneError, 3
	}
	if len(rest) == 0 || halfSurrogate(rest) {
		return 0, 0
	}
	return utf8.RuneError, 3
}

// surrogate reads the three bytes that Text makes of half a surrogate pair.
func surrogate(b []byte) (rune, bool) {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2]&0xC0 != 0x80 {
		return 0, false
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), true
}

// halfSurrogate reports whether b is the start of the three bytes of surrogate, or may be.
func halfSurrogate(b []byte) bool {
	return len(b) < 3 && b[0] == 0xED && (len(b) == 1 || (0xA0 <= b[1] && b[1] <= 0xBF))
}

// half is the length of what makes one U+FFFD where the text ends with it.
func half(b []byte) int {
	if _, ok := surrogate(b); ok {
		return 3
	}
	return partial(b)
}

// partial is how many bytes at the start of b are the beginning of one rune: they make one U+FFFD together. At least 1.
func partial(b []byte) int {
	n := 1
	for n < len(b) && n < utf8.UTFMax && !utf8.FullRune(b[:n]) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
