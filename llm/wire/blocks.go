package wire

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/turnd/turnd/turns"
)

// Bounds of what is kept beside the text of a block: ids and names of calls, vendors' words, and seals.
const (
	maxType     = 64
	maxToolID   = 128
	maxToolName = 128
	maxSeal     = 512 << 10
)

// keptText is how much room for text is kept from one delta to the next.
const keptText = 4 << 10

// Blocks turns what a stream says about its blocks into deltas: one block open at a time, its text made whole. The
// methods append to out. Text is gathered until something else is said of the block, or until Flush. The zero value has no
// open block.
type Blocks struct {
	runes   Runes
	text    []byte // of the open block, not given out yet
	open    bool
	kind    turns.BlockKind
	said    bool // the open block has text
	content bool
}

// Start begins a block; one that is still open ends first.
func (b *Blocks) Start(out []turns.Delta, start turns.BlockStarted) []turns.Delta {
	out = b.End(out)
	b.open, b.kind, b.said = true, start.Kind, false
	if start.Kind == turns.KindToolUse || start.Kind == turns.KindOpaque {
		b.content = true
	}
	start.Type = cutText(CleanText(start.Type), maxType)
	return append(out, start)
}

// StartTool begins a call. fallback is its id where the vendor gave none that can be kept.
func (b *Blocks) StartTool(out []turns.Delta, id, fallback, name string) []turns.Delta {
	id, name = CleanText(id), CleanText(name)
	if id == "" || len(id) > maxToolID {
		id = fallback
	}
	return b.Start(out, turns.BlockStarted{Kind: turns.KindToolUse, ToolUseID: id, ToolName: cutText(name, maxToolName)})
}

// cutText cuts a text to at most limit bytes, between runes.
func cutText(s string, limit int) string {
	for len(s) > limit || !utf8.ValidString(s) {
		s = s[:min(len(s)-1, limit)]
	}
	return s
}

// In makes sure that the open block is of a kind, for wires that do not mark where blocks begin.
func (b *Blocks) In(out []turns.Delta, kind turns.BlockKind) []turns.Delta {
	if b.open && b.kind == kind {
		return out
	}
	return b.Start(out, turns.BlockStarted{Kind: kind})
}

// Add is more of the open block. It is gathered.
func (b *Blocks) Add(t Text) { b.gathered(b.runes.Add(b.text, t)) }

// Flush gives out the text that was gathered, as one delta.
func (b *Blocks) Flush(out []turns.Delta) []turns.Delta {
	if len(b.text) == 0 {
		return out
	}
	out = append(out, turns.BlockDelta{Text: string(b.text)})
	if b.text = b.text[:0]; cap(b.text) > keptText {
		b.text = nil
	}
	return out
}

// Seal gives the open block its seal, unless it is too large or not text that can be stored as it is: a changed one is
// worth nothing.
func (b *Blocks) Seal(out []turns.Delta, data string) []turns.Delta {
	if !b.open || data == "" || len(data) > maxSeal || CleanText(data) != data {
		return out
	}
	return append(b.Flush(out), turns.BlockSealed{Data: data})
}

// End ends the open block, if there is one. A call whose input was empty has the input {}, which is what the vendors mean
// by it: what is streamed and stored can be read as JSON.
func (b *Blocks) End(out []turns.Delta) []turns.Delta {
	if !b.open {
		return out
	}
	b.gathered(b.runes.End(b.text))
	if b.kind == turns.KindToolUse && !b.said {
		b.gathered(append(b.text, "{}"...))
	}
	b.open = false
	return append(b.Flush(out), turns.BlockEnded{})
}

// Kind is the kind of the open block, empty if none is open.
func (b *Blocks) Kind() turns.BlockKind {
	if !b.open {
		return ""
	}
	return b.kind
}

// Silent reports whether the open block has no text yet.
func (b *Blocks) Silent() bool { return !b.said }

// HasContent reports whether any text came, or a call, or what only the vendor understands.
func (b *Blocks) HasContent() bool { return b.content }

// gathered takes the text with what was added to it.
func (b *Blocks) gathered(text []byte) {
	if len(text) > len(b.text) {
		b.content, b.said = true, true
	}
	b.text = text
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
