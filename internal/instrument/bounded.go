package instrument

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Other is what Bounded gives for each value past its bound.
const Other = "other"

// maxValue bounds the value of a label, in bytes.
const maxValue = 64

// Bounded makes values of a label of names that configuration chooses: valid UTF-8 of a bounded length that a scrape, a
// console and a query can bear, and only so many of them in the life of a process, however often configuration changes. It
// may be used by many goroutines.
type Bounded struct {
	most int

	mu    sync.RWMutex
	known map[string]string
}

// NewBounded makes one of at most so many distinct values, Other aside.
func NewBounded(most int) *Bounded { return &Bounded{most: most, known: map[string]string{}} }

// Value is the value for a name. The same name has the same value for as long as the process lives; two names may share one.
func (b *Bounded) Value(name string) string {
	b.mu.RLock()
	value, ok := b.known[name]
	b.mu.RUnlock()
	if ok {
		return value
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if value, ok := b.known[name]; ok {
		return value
	}
	if len(b.known) >= b.most {
		return Other
	}
	value = printable(name)
	b.known[strings.Clone(name)] = value
	return value
}

// printable is a name as a label may show it: each character that is none, and each that moves a cursor or hides, is a
// question mark, and what is too long is cut.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
	if len(name) <= maxValue {
		return name
	}
	end := maxValue - len("…")
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}
