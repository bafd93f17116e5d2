package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// maker makes one history. The same seed and number make the same one, on any machine.
type maker struct {
	*rand.Rand
	marks int
	ids   int
	seen  map[string]int // kinds of what was made
}

func newMaker(seed, number int64) *maker {
	return &maker{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(number))), seen: make(map[string]int)}
}

// note counts a kind of what was made.
func (m *maker) note(kind string) { m.seen[kind]++ }

// in is true so many times in a hundred.
func (m *maker) in(percent int) bool { return m.IntN(100) < percent }

func pick[T any](m *maker, from ...T) T { return from[m.IntN(len(from))] }

func (m *maker) uuid() (id uuid.UUID) {
	for i := range id {
		id[i] = byte(m.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

func (m *maker) row() turns.RowID { return turns.RowID{UUID: m.uuid()} }

// mark is a word that no other text of the history has.
func (m *maker) mark(kind rune) string {
	m.marks++
	return fmt.Sprintf("zq%c%07d", kind, m.marks)
}

// callID is an id of a call in the form of one of the vendors.
func (m *maker) callID() string {
	m.ids++
	return fmt.Sprintf("%s%d_%d", pick(m, "toolu_01", "call_", "fc-", "c"), m.ids, m.IntN(1000))
}

// fillers are what words stand between: several scripts, quotes, line ends, what JSON escapes and what HTML would.
var fillers = []string{
	"and then", "größer", "日本語のテキスト", "👩‍👩‍👧", "\"quoted\"", "a\\b", "<b>&amp;</b>", "line\nline", "tab\there", "\u2028", "{\"json\":[1]}", "`code`",
	"e\u0301", "\u202eright to left", "zero\u200bwidth", "C:\\\\temp", "0",
}

// words are text with a mark in it.
func (m *maker) words(kind rune) string {
	var sb strings.Builder
	before := m.IntN(4)
	for range before {
		sb.WriteString(pick(m, fillers...) + " ")
	}
	sb.WriteString(m.mark(kind))
	for range m.IntN(5) {
		sb.WriteString(" " + pick(m, fillers...))
	}
	if m.in(10) {
		sb.WriteString(pick(m, " ", "\n", "\n\n", "\t"))
		m.note("text_trailing_space")
	}
	return sb.String()
}
