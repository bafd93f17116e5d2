package wire

import (
	"bytes"
	"slices"
	"strconv"
)

// maxScanDepth bounds how deep a Scanner goes. No event of text is nearly as deep.
const maxScanDepth = 64

// Scanner reads one JSON text in place, for the few shapes of events that nearly all of a stream consists of: it allocates
// nothing but what a Text grows by. It takes less than encoding/json does, and what it takes it takes as that does: every
// method reports false for what is not the expected shape, or not JSON, and then the text is to be read by encoding/json from
// its beginning. Values that were stored by then mean nothing.
type Scanner struct {
	data  []byte
	at    int
	depth int
}

// NewScanner begins to read a text.
func NewScanner(data []byte) Scanner { return Scanner{data: data} }

// Object reads an object. Each of the fields names is known, and at most 32 are: field is called for it with its place among
// the names and reads its value. What other fields hold is skipped. An object in which a known field comes twice, or under
// another spelling, is not read: of encoding/json's rules for these nobody needs more.
func (s *Scanner) Object(names []string, field func(name int) bool) bool {
	if !s.open('{') {
		return false
	}
	var seen uint32
	for first := true; ; first = false {
		if s.skipped('}') {
			return s.shut()
		}
		if !first && !s.skipped(',') {
			return false
		}
		key, plain := s.raw()
		if !plain || !s.skipped(':') {
			return false
		}
		i, ok := nameAt(names, key)
		switch {
		case !ok || i >= 0 && seen&(1<<i) != 0:
			return false
		case i < 0:
			if !s.Skip() {
				return false
			}
		default:
			seen |= 1 << i
			if !field(i) {
				return false
			}
		}
	}
}

// nameAt finds a key among names, -1 if it is none of them. A key that is one of them but for its case is not ok.
func nameAt(names []string, key []byte) (i int, ok bool) {
	for i, name := range names {
		if len(name) == len(key) && name == string(key) {
			return i, true
		}
	}
	for _, name := range names {
		if len(name) == len(key) && bytes.EqualFold([]byte(name), key) {
			return 0, false
		}
	}
	return -1, true
}

// Array reads an array; item reads each of its values and is told its place.
func (s *Scanner) Array(item func(i int) bool) bool {
	if !s.open('[') {
		return false
	}
	for i := 0; ; i++ {
		if s.skipped(']') {
			return s.shut()
		}
		if i > 0 && !s.skipped(',') || !item(i) {
			return false
		}
	}
}

// Only reads an array of one value at most into a list, whose room is used again.
func Only[T any](s *Scanner, list *[]T, read func(*T) bool) bool {
	return s.Array(func(i int) bool {
		if i > 0 {
			return false
		}
		if cap(*list) == 0 {
			*list = make([]T, 0, 1)
		}
		*list = (*list)[:1]
		return read(&(*list)[0])
	})
}

// End reports whether nothing follows.
func (s *Scanner) End() bool {
	s.space()
	return s.at == len(s.data)
}

// Null reads a null.
func (s *Scanner) Null() bool { return s.literal("null") }

// Bool reads a boolean into v.
func (s *Scanner) Bool(v *bool) bool {
	*v = s.literal("true")
	return *v || s.literal("false")
}

// Int reads a whole number of at most nine digits into v.
func (s *Scanner) Int(v *int) bool {
	from, to, whole := s.number()
	if !whole || to-from > 9 {
		return false
	}
	n, err := strconv.Atoi(string(s.data[from:to]))
	*v = n
	return err == nil
}

// Word reads a string that must be one of some words, into v.
func (s *Scanner) Word(v *string, words ...string) bool {
	raw, plain := s.raw()
	i := slices.IndexFunc(words, func(w string) bool { return w == string(raw) })
	if !plain || i < 0 {
		return false
	}
	*v = words[i]
	return true
}

// Plain reads a string of ASCII without escapes into v, which is a copy.
func (s *Scanner) Plain(v *string) bool {
	raw, plain := s.raw()
	*v = string(raw)
	return plain
}

// Text reads a string, or null for the empty one, into t.
func (s *Scanner) Text(t *Text) bool {
	*t = (*t)[:0]
	if s.Null() {
		return true
	}
	from, to, escaped, _, ok := s.str()
	switch {
	case !ok:
		return false
	case escaped:
		return t.UnmarshalJSON(s.data[from-1:to+1]) == nil
	}
	*t = append(*t, s.data[from:to]...)
	return true
}

// Raw skips any value and gives its bytes, which are valid as long as those of the text are.
func (s *Scanner) Raw() (value []byte, ok bool) {
	s.space()
	from := s.at
	ok = s.Skip()
	return s.data[from:s.at], ok
}

// Skip skips any value.
func (s *Scanner) Skip() bool {
	s.space()
	if s.at == len(s.data) {
		return false
	}
	switch s.data[s.at] {
	case '"':
		_, _, _, _, ok := s.str()
		return ok
	case '{':
		return s.Object(nil, nil)
	case '[':
		return s.Array(func(int) bool { return s.Skip() })
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	from, to, _ := s.number()
	return from < to
}

func (s *Scanner) open(c byte) bool {
	s.depth++
	return s.depth <= maxScanDepth && s.skipped(c)
}

func (s *Scanner) shut() bool {
	s.depth--
	return true
}

// space steps over what JSON has between its tokens.
func (s *Scanner) space() {
	for s.at < len(s.data) && (s.data[s.at] == ' ' || s.data[s.at] == '\n' || s.data[s.at] == '\r' || s.data[s.at] == '\t') {
		s.at++
	}
}

// skipped steps over a byte if it comes next.
func (s *Scanner) skipped(c byte) bool {
	s.space()
	if s.at == len(s.data) || s.data[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *Scanner) literal(word string) bool {
	s.space()
	if len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// number steps over a number and says where it is, empty if none comes, and whether it is written as a whole one.
func (s *Scanner) number() (from, to int, whole bool) {
	s.space()
	from = s.at
	at := from
	if at < len(s.data) && s.data[at] == '-' {
		at++
	}
	first := at
	at = s.digits(at)
	if at == first || at > first+1 && s.data[first] == '0' {
		return from, from, false
	}
	whole = true
	if at < len(s.data) && s.data[at] == '.' {
		point := at + 1
		if at = s.digits(point); at == point {
			return from, from, false
		}
		whole = false
	}
	if at < len(s.data) && (s.data[at] == 'e' || s.data[at] == 'E') {
		at++
		if at < len(s.data) && (s.data[at] == '+' || s.data[at] == '-') {
			at++
		}
		power := at
		if at = s.digits(power); at == power {
			return from, from, false
		}
		whole = false
	}
	s.at = at
	return from, at, whole
}

func (s *Scanner) digits(at int) int {
	for at < len(s.data) && '0' <= s.data[at] && s.data[at] <= '9' {
		at++
	}
	return at
}

// raw steps over a string. plain says that it holds ASCII alone and no escape, so that its bytes are what it says.
func (s *Scanner) raw() (raw []byte, plain bool) {
	from, to, escaped, ascii, ok := s.str()
	return s.data[from:to], ok && ascii && !escaped
}

// str steps over a string and says where what is between its quotes is.
func (s *Scanner) str() (from, to int, escaped, ascii, ok bool) {
	if !s.skipped('"') {
		return 0, 0, false, false, false
	}
	from = s.at
	var all byte
	for at := from; at < len(s.data); at++ {
		switch c := s.data[at]; {
		case c == '"':
			s.at = at + 1
			return from, at, escaped, all < 0x80, true
		case c < 0x20:
			return 0, 0, false, false, false
		case c == '\\':
			escaped = true
			n := escapeLen(s.data[at:])
			if n == 0 {
				return 0, 0, false, false, false
			}
			at += n - 1
		default:
			all |= c
		}
	}
	return 0, 0, false, false, false
}

// escapeLen is the length of the escape at the start of b, 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}
