package turns

import "unicode/utf8"

// pen writes a provider's deltas into a reply's log. A block's start uses an offset, so it is held back until the
// block's first byte: a call that said nothing leaves no trace, and another may follow on the same reply.
type pen struct {
	log     LiveLog
	max     int
	written int
	block   uint32
	pending *BlockStarted
	open    bool
	kind    BlockKind
	// seal is the open block's, and sealed the bytes of all seals: they take no room in the log, yet must not grow beyond
	// its limit.
	seal   string
	sealed int
	// full says that the log's limit was reached and the rest was not written.
	full bool
	// ownBytes counts the content this pen wrote.
	ownBytes int
}

// put writes a delta that is part of a block, and passes over any other.
func (p *pen) put(delta Delta) error {
	var err error
	switch d := delta.(type) {
	case BlockStarted:
		err = p.start(d)
	case BlockDelta:
		err = p.write(d.Text)
	case BlockSealed:
		p.keep(d.Data)
	case BlockEnded:
		err = p.end()
	}
	if err == nil && p.full {
		return errFull
	}
	return err
}

// room is how many bytes of text the block may still take: its start, if that is to come, and its end take one each.
func (p *pen) room() int {
	room := p.max - p.written - 1
	if p.pending != nil {
		room--
	}
	return room
}

// start begins a block, ending one that the provider left open.
func (p *pen) start(b BlockStarted) error {
	if err := p.end(); err != nil {
		return err
	}
	p.pending = &b
	return nil
}

// keep remembers the open block's seal for its end. One for which there is no room is dropped: its block is shown all the
// same, and only cannot go back to its vendor.
func (p *pen) keep(seal string) {
	if p.sealed+len(seal) <= p.max && (p.open || p.pending != nil) {
		p.seal = seal
	}
}

func (p *pen) write(text string) error {
	if text == "" || p.full || (p.pending == nil && !p.open) {
		return nil
	}
	if room := p.room(); len(text) > room {
		text, p.full = cutAtRune(text, room), true
		if text == "" {
			return nil
		}
	}
	return p.append(text, false)
}

// end ends the block. One that got no byte is dropped, unless its start alone or its seal says something.
func (p *pen) end() error {
	says := p.pending != nil && (p.pending.Kind == KindToolUse || p.pending.Kind == KindOpaque || p.pending.Type != "" || p.seal != "")
	switch {
	case p.open:
		return p.append("", true)
	case says && !p.full && p.room() >= 0:
		return p.append("", true)
	case says:
		p.full = true
	}
	p.pending, p.seal = nil, ""
	return nil
}

func (p *pen) append(text string, ends bool) error {
	piece := Piece{Block: p.block, Kind: p.kind, Text: text, Ends: ends}
	if b := p.pending; b != nil {
		piece.Kind, piece.Starts, piece.ToolUseID, piece.ToolName = b.Kind, true, b.ToolUseID, b.ToolName
		piece.Redacted, piece.Type = b.Redacted, cleanID(b.Type)
	}
	if ends {
		piece.Seal = p.seal
	}
	if err := p.log.Append(piece); err != nil {
		return err
	}
	p.pending, p.open, p.kind = nil, !ends, piece.Kind
	p.written += int(piece.Len())
	p.ownBytes += len(text)
	if ends {
		p.sealed, p.seal = p.sealed+len(p.seal), ""
		p.block++
	}
	return nil
}

// cutAtRune cuts s to at most n bytes, at the start of a rune.
func cutAtRune(s string, n int) string {
	n = max(min(n, len(s)), 0)
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
