package live

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/turnd/turnd/turns"
)

// lengthOf is the room that pieces take. It is wide enough for pieces that are no log.
func lengthOf(pieces []turns.Piece) (n uint64) {
	for _, p := range pieces {
		n += uint64(p.Len())
	}
	return n
}

// partFrom is the part from an offset on of pieces that begin at another. There is none past their end; an offset before
// their start, or inside a rune, is turns.ErrBadOffset.
func partFrom(pieces []turns.Piece, begin, offset uint32) ([]turns.Piece, error) {
	if offset < begin {
		return nil, turns.ErrBadOffset
	}
	skip := offset - begin
	for i, p := range pieces {
		if n := p.Len(); n <= skip {
			skip -= n
			continue
		}
		if skip == 0 {
			return pieces[i:], nil
		}
		_, tail, err := p.Split(skip)
		if err != nil {
			return nil, err
		}
		return append([]turns.Piece{tail}, pieces[i+1:]...), nil
	}
	return nil, nil
}

// portion cuts at most about max bytes off a piece, between runes. The rest is empty when all of it fits.
func portion(p turns.Piece, max uint32) (head, rest turns.Piece, err error) {
	for at := max; at < max+utf8.UTFMax; at++ {
		if head, rest, err = p.Split(at); err == nil {
			return head, rest, nil
		}
	}
	return head, rest, err
}

// agree reports whether two parts of logs that begin at one offset say the same as far as both go. Seals aside: they are
// not published.
func agree(a, b []turns.Piece) bool {
	x, y := spell(a), spell(b)
	n := min(len(x), len(y))
	return bytes.Equal(x[:n], y[:n])
}

// spell writes pieces as bytes that do not depend on where they were cut. Starts and ends are marked by bytes that UTF-8
// does not use.
func spell(pieces []turns.Piece) []byte {
	var out bytes.Buffer
	for _, p := range pieces {
		if p.Starts {
			fmt.Fprintf(&out, "\xfe%d %q %q %q %t %q\xfe", p.Block, p.Kind, p.ToolUseID, p.ToolName, p.Redacted, p.Type)
		}
		out.WriteString(p.Text)
		if p.Ends {
			out.WriteByte(0xff)
		}
	}
	return out.Bytes()
}
