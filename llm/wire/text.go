package wire

import (
	"errors"
	"unicode/utf8"
)

// Text is a JSON string as a provider wrote it, before it is made whole: the escape of half a surrogate pair stays as
// three bytes of its own (which UTF-8 forbids, so nothing else can look like it), and bytes that are not UTF-8 stay as
// they are. encoding/json would put U+FFFD for both, and a rune that was split over two deltas would be lost. A Runes
// joins the parts.
type Text []byte

var errNotString = errors.New("not a JSON string")

// UnmarshalJSON implements json.Unmarshaler. null is the empty text.
func (t *Text) UnmarshalJSON(data []byte) error {
	*t = (*t)[:0]
	if string(data) == "null" {
		return nil
	}
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return errNotString
	}
	data = data[1 : len(data)-1]
	for i := 0; i < len(data); {
		if data[i] != '\\' {
			*t = append(*t, data[i])
			i++
			continue
		}
		n, err := t.unescape(data[i:])
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// unescape appends what the escape at the start of data stands for and returns its length.
func (t *Text) unescape(data []byte) (int, error) {
	if len(data) < 2 {
		return 0, errNotString
	}
	switch c := data[1]; c {
	case '"', '\\', '/':
		*t = append(*t, c)
	case 'b':
		*t = append(*t, '\b')
	case 'f':
		*t = append(*t, '\f')
	case 'n':
		*t = append(*t, '\n')
	case 'r':
		*t = append(*t, '\r')
	case 't':
		*t = append(*t, '\t')
	case 'u':
		unit, ok := hex4(data[2:])
		if !ok {
			return 0, errNotString
		}
		*t = appendUnit(*t, unit)
		return 6, nil
	default:
		return 0, errNotString
	}
	return 2, nil
}

// hex4 reads the four digits of a \u escape.
func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendUnit appends one UTF-16 unit, half a surrogate pair too.
func appendUnit(b []byte, unit rune) []byte {
	if isSurrogate(unit) {
		return append(b, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
	}
	return utf8.AppendRune(b, unit)
}

func isSurrogate(r rune) bool { return 0xD800 <= r && r <= 0xDFFF }
