package wire

import (
	"math"
	"strconv"

	"github.com/turnd/turnd/turns"
)

// Blocks turns what a stream says about its blocks into deltas: one block open at a time, its text made whole. The
// methods append to out. The zero value has no open block.
type Blocks struct {
	runes   Runes
	open    bool
	kind    turns.BlockKind
	content bool
}

// Start begins a block; one that is still open ends first.
func (b *Blocks) Start(out []turns.Delta, kind turns.BlockKind) []turns.Delta {
	out = b.End(out)
	b.open, b.kind = true, kind
	return append(out, turns.BlockStarted{Kind: kind})
}

// In makes sure that the open block is of a kind, for wires that do not mark where blocks begin.
func (b *Blocks) In(out []turns.Delta, kind turns.BlockKind) []turns.Delta {
	if b.open && b.kind == kind {
		return out
	}
	return b.Start(out, kind)
}

// Add is more of the open block. It yields nothing while all of it waits for the rest of a rune.
func (b *Blocks) Add(out []turns.Delta, t Text) []turns.Delta { return b.say(out, b.runes.Add(t)) }

// End ends the open block, if there is one.
func (b *Blocks) End(out []turns.Delta) []turns.Delta {
	if !b.open {
		return out
	}
	out = b.say(out, b.runes.End())
	b.open = false
	return append(out, turns.BlockEnded{})
}

// HasContent reports whether any text came.
func (b *Blocks) HasContent() bool { return b.content }

func (b *Blocks) say(out []turns.Delta, s string) []turns.Delta {
	if s == "" {
		return out
	}
	b.content = true
	return append(out, turns.BlockDelta{Text: s})
}

// Meter holds back a usage that is all zeros. Some servers send zeros where they count nothing; on a reply with content
// that is no report, and whoever asks must estimate. The zero value is ready.
type Meter struct {
	zeros    bool
	reported bool
}

// Report appends a usage unless it is all zeros.
func (m *Meter) Report(out []turns.Delta, u turns.Usage) []turns.Delta {
	if u.Input == 0 && u.Output == 0 {
		m.zeros = true
		return out
	}
	m.reported = true
	u.Source = turns.SourceReported
	return append(out, turns.UsageReported{Usage: u})
}

// Finish appends the zeros that were held back if they can be true: the reply is empty.
func (m *Meter) Finish(out []turns.Delta, hasContent bool) []turns.Delta {
	if !m.zeros || m.reported || hasContent {
		return out
	}
	return append(out, turns.UsageReported{Usage: turns.Usage{Source: turns.SourceReported}})
}

// Count is a number of tokens. It takes whatever a server writes: a fraction is cut, a negative number or what is no
// number is 0. A paid reply must not be lost over its bill.
type Count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(data []byte) error {
	*c = 0
	f, err := strconv.ParseFloat(string(data), 64)
	if err == nil && f > 0 && f <= math.MaxInt32*1024 {
		*c = Count(f)
	}
	return nil
}

// Value is the count; nil, what a server left out, is 0.
func (c *Count) Value() int64 {
	if c == nil {
		return 0
	}
	return int64(*c)
}
