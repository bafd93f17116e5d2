package wire

import (
	"bytes"
	"encoding/json"
)

// dropRepeated leaves out, of valid JSON, each field whose name comes again in the same object. What stays is as it was, to
// the byte.
func dropRepeated(data []byte) []byte {
	s := repeats{data: data}
	s.value()
	if len(s.drop) == 0 {
		return data
	}
	gone := make([]bool, len(data))
	for _, d := range s.drop {
		for i := d.from; i < d.to; i++ {
			gone[i] = true
		}
	}
	out := data[:0]
	for i, b := range data {
		if !gone[i] {
			out = append(out, b)
		}
	}
	return out
}

// repeats finds the fields to leave out.
type repeats struct {
	data []byte
	at   int
	drop []span
}

// span is a part of the data: that from a field's name up to the next field's.
type span struct{ from, to int }

func (s *repeats) space() {
	for s.at < len(s.data) && bytes.IndexByte([]byte(" \t\r\n"), s.data[s.at]) >= 0 {
		s.at++
	}
}

// value moves past a value.
func (s *repeats) value() {
	s.space()
	switch s.data[s.at] {
	case '{':
		s.object()
	case '[':
		s.list()
	case '"':
		s.text()
	default:
		for s.at < len(s.data) && bytes.IndexByte([]byte(" \t\r\n,]}"), s.data[s.at]) < 0 {
			s.at++
		}
	}
}

// more moves past what stands between the parts of an object or a list; false is its end.
func (s *repeats) more(end byte) bool {
	s.space()
	if s.data[s.at] == ',' {
		s.at++
		s.space()
	}
	if s.data[s.at] == end {
		s.at++
		return false
	}
	return true
}

func (s *repeats) list() {
	s.at++
	for s.more(']') {
		s.value()
	}
}

func (s *repeats) object() {
	s.at++
	var begun []int // where each field begins
	var last map[string]int
	for s.more('}') {
		begun = append(begun, s.at)
		name := s.text()
		if last == nil {
			last = make(map[string]int)
		}
		if n, ok := last[name]; ok {
			s.drop = append(s.drop, span{begun[n], begun[n+1]})
		}
		last[name] = len(begun) - 1
		s.space()
		s.at++ // the colon
		s.value()
	}
}

// text moves past a string and reads it.
func (s *repeats) text() string {
	from := s.at
	escapes := false
	for s.at++; s.data[s.at] != '"'; s.at++ {
		if s.data[s.at] == '\\' {
			escapes = true
			s.at++
		}
	}
	s.at++
	raw := s.data[from+1 : s.at-1]
	if !escapes {
		return string(raw)
	}
	var text string
	_ = json.Unmarshal(s.data[from:s.at], &text) // it is valid
	return text
}
