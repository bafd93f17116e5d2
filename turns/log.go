package turns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Piece is a run of a reply's log within one block: its start, some or all of its bytes, its end. A log is a sequence
// of pieces, a checkpoint's chunk is one, and so is the stored content of a reply: everything is rebuilt from pieces.
// In the log a start takes 1, content takes its UTF-8 bytes, an end takes 1.
type Piece struct {
	// Block is the index of the block, 0 for the first.
	Block uint32 `json:"b"`
	// Kind is the block's kind.
	Kind BlockKind `json:"k"`
	// Starts says that the block begins here.
	Starts bool `json:"s,omitempty"`
	// ToolUseID and ToolName go with Starts of a KindToolUse block.
	ToolUseID string `json:"i,omitempty"`
	ToolName  string `json:"n,omitempty"`
	// Redacted goes with Starts of a KindThinking block of which nothing is shown.
	Redacted bool `json:"r,omitempty"`
	// Type goes with Starts: the vendor's word for a KindOpaque block, the category of a KindRefusal one.
	Type string `json:"y,omitempty"`
	// Text holds the bytes, whole runes.
	Text string `json:"t,omitempty"`
	// Ends says that the block ends here.
	Ends bool `json:"e,omitempty"`
	// Seal goes with Ends: what the block's vendor wants to see again with it. It takes no room in the log and is sent to
	// no client.
	Seal string `json:"g,omitempty"`
}

// Len is the room the piece takes in the log.
func (p Piece) Len() uint32 {
	n := uint32(len(p.Text))
	if p.Starts {
		n++
	}
	if p.Ends {
		n++
	}
	return n
}

// Split cuts a piece at a place of its own, counted from its start: what comes before it, and the rest. A place inside a
// rune is ErrBadOffset; at 0 or past the end one of the two is empty.
func (p Piece) Split(at uint32) (head, tail Piece, err error) {
	switch {
	case at == 0:
		return Piece{}, p, nil
	case at >= p.Len():
		return p, Piece{}, nil
	}
	text := int(at)
	if p.Starts {
		text--
	}
	if text < len(p.Text) && !utf8.RuneStart(p.Text[text]) {
		return Piece{}, Piece{}, ErrBadOffset
	}
	head, tail = p, Piece{Block: p.Block, Kind: p.Kind, Text: p.Text[text:], Ends: p.Ends, Seal: p.Seal}
	head.Text, head.Ends, head.Seal = p.Text[:text], false, ""
	return head, tail, nil
}

// EncodePieces is the stored form of pieces, for chunks and for content.
func EncodePieces(pieces []Piece) ([]byte, error) {
	if pieces == nil {
		pieces = []Piece{}
	}
	return json.Marshal(pieces)
}

// DecodePieces reads what EncodePieces wrote; no bytes at all are no pieces.
func DecodePieces(data []byte) ([]Piece, error) {
	if len(data) == 0 {
		return nil, nil
	}
	c := compact{data}
	if pieces, ok := c.pieces(); ok {
		return pieces, nil
	}
	var pieces []Piece
	if err := json.Unmarshal(data, &pieces); err != nil {
		return nil, fmt.Errorf("decode pieces of a log: %w", err)
	}
	return pieces, nil
}

// ErrBadOffset says that an offset lies inside a rune or past the end of the log.
var ErrBadOffset = errors.New("offset is inside a rune or past the end of the log")

// ErrDropped says that an offset lies before the part of the log that is kept.
var ErrDropped = errors.New("offset is before the part of the log that is kept")

// Log is the append-only log of one reply, addressed in bytes. Bytes once appended never change, though its beginning can
// be let go of. The zero value is an empty log. A Log is not safe for concurrent use; package live adds that.
type Log struct {
	// blocks are those of which something is kept, and the open one; dropped counts those before them.
	blocks  []logBlock
	dropped int
	first   uint32
	length  uint32
	content bool
}

type logBlock struct {
	start    uint32 // offset of the block's start
	kind     BlockKind
	toolID   string
	toolName string
	redacted bool
	typ      string
	text     []byte // what is kept of it
	cut      uint32 // how much of the text was let go of, before what is kept
	ended    bool
	seal     string
}

// textEnd is the offset after the block's last byte of text.
func (b *logBlock) textEnd() uint32 { return b.start + 1 + b.cut + uint32(len(b.text)) }

func (b *logBlock) end() uint32 {
	n := b.textEnd()
	if b.ended {
		n++
	}
	return n
}

// LogOf builds a log from stored pieces.
func LogOf(pieces []Piece) (*Log, error) {
	log := new(Log)
	for _, p := range pieces {
		if err := log.Append(p); err != nil {
			return nil, err
		}
	}
	return log, nil
}

// Len is the offset after the last byte.
func (l *Log) Len() uint32 { return l.length }

// First is the offset where the kept part of the log begins: 0, unless DropBefore was called.
func (l *Log) First() uint32 { return l.first }

// DropBefore lets go of what lies before an offset, down to the start of its rune. Offsets and the numbers of blocks stay
// as they are, and the log goes on growing at its end.
func (l *Log) DropBefore(offset uint32) {
	if offset = min(offset, l.length); offset <= l.first {
		return
	}
	gone := 0
	for gone < len(l.blocks) && l.blocks[gone].ended && l.blocks[gone].end() <= offset {
		gone++
	}
	// Copies, since a part of an array keeps the whole of it.
	l.blocks, l.dropped = slices.Clone(l.blocks[gone:]), l.dropped+gone
	l.first = offset
	if len(l.blocks) > 0 && offset > l.blocks[0].start {
		l.first = l.blocks[0].dropBefore(offset)
	}
}

// dropBefore lets go of the block's text before an offset and gives the offset where what is kept begins.
func (b *logBlock) dropBefore(offset uint32) uint32 {
	at := int(min(offset, b.textEnd()) - b.start - 1 - b.cut)
	for at > 0 && at < len(b.text) && !utf8.RuneStart(b.text[at]) {
		at--
	}
	b.text, b.cut = bytes.Clone(b.text[at:]), b.cut+uint32(at)
	return b.start + 1 + b.cut
}

// Append adds a piece that continues the log: a start of the next block, or more of the open one. Anything else is an
// error and changes nothing.
func (l *Log) Append(p Piece) error {
	if !utf8.ValidString(p.Text) {
		return errors.New("append to log: text is not whole runes")
	}
	if p.Starts {
		if n := len(l.blocks); n > 0 && !l.blocks[n-1].ended {
			return errors.New("append to log: a block starts while another is open")
		}
		if count := l.dropped + len(l.blocks); int(p.Block) != count {
			return fmt.Errorf("append to log: block %d starts after %d blocks", p.Block, count)
		}
		l.blocks = append(l.blocks, logBlock{start: l.length, kind: p.Kind, toolID: p.ToolUseID, toolName: p.ToolName,
			redacted: p.Redacted, typ: p.Type})
	}
	n := len(l.blocks)
	if n == 0 || int(p.Block) != l.dropped+n-1 || l.blocks[n-1].ended {
		return errors.New("append to log: the block is not open")
	}
	b := &l.blocks[n-1]
	b.text = append(b.text, p.Text...)
	if b.ended = p.Ends; p.Ends {
		b.seal = p.Seal
	}
	l.length = b.end()
	l.content = l.content || len(p.Text) > 0 || b.kind == KindToolUse || b.kind == KindOpaque
	return nil
}

// From reads pieces from an offset on, at most about max bytes of them (0: all), cut at runes, and says where the next
// read goes on. An offset inside a rune or past the end is ErrBadOffset, one before First is ErrDropped.
func (l *Log) From(offset uint32, max int) ([]Piece, uint32, error) {
	if offset > l.length {
		return nil, offset, ErrBadOffset
	}
	if offset < l.first {
		return nil, offset, ErrDropped
	}
	var pieces []Piece
	room := max
	if max <= 0 {
		room = int(l.length) + 1
	}
	for i := l.blockAt(offset); i < len(l.blocks) && room > 0; i++ {
		b := &l.blocks[i]
		if offset >= b.end() {
			continue
		}
		p, err := b.piece(uint32(l.dropped+i), offset, room)
		if err != nil {
			return nil, offset, err
		}
		pieces = append(pieces, p)
		offset += p.Len()
		room -= int(p.Len())
	}
	return pieces, offset, nil
}

// FromRune is From for an offset that may lie inside a rune: it reads from where the rune starts, and says where that is.
func (l *Log) FromRune(offset uint32, max int) (from uint32, pieces []Piece, err error) {
	for from = offset; offset-from < utf8.UTFMax; from-- {
		if pieces, _, err = l.From(from, max); err == nil || from == 0 {
			return from, pieces, err
		}
	}
	return 0, nil, err
}

// blockAt is the index of the last block that starts at or before the offset.
func (l *Log) blockAt(offset uint32) int {
	i := len(l.blocks) - 1
	for i > 0 && l.blocks[i].start > offset {
		i--
	}
	return max(i, 0)
}

// piece cuts the block's part from offset on, at most about room bytes.
func (b *logBlock) piece(index, offset uint32, room int) (Piece, error) {
	p := Piece{Block: index, Kind: b.kind}
	if offset == b.start {
		p.Starts, p.ToolUseID, p.ToolName, p.Redacted, p.Type = true, b.toolID, b.toolName, b.redacted, b.typ
		offset++
	}
	from := int(offset - b.start - 1 - b.cut)
	if from < len(b.text) && !utf8.RuneStart(b.text[from]) {
		return p, ErrBadOffset
	}
	to := len(b.text)
	if to-from > room {
		to = from + room
		for to < len(b.text) && !utf8.RuneStart(b.text[to]) {
			to++
		}
	}
	p.Text = string(b.text[from:to])
	if p.Ends = b.ended && to == len(b.text); p.Ends {
		p.Seal = b.seal
	}
	return p, nil
}

// Blocks is the log as content, at most about limit bytes of it (0: all), and whether it was cut. A block that is
// still open is included as far as it goes. The log must be kept whole.
func (l *Log) Blocks(limit int) (content []Block, cut bool) {
	pieces, next, _ := l.From(0, limit)
	for _, p := range pieces {
		switch p.Kind {
		case KindText:
			content = append(content, Text{Text: p.Text, Seal: p.Seal})
		case KindThinking:
			content = append(content, Thinking{Text: p.Text, Redacted: p.Redacted, Seal: p.Seal})
		case KindToolUse:
			content = append(content, ToolUse{ID: p.ToolUseID, Name: p.ToolName, InputJSON: p.Text, Seal: p.Seal})
		case KindRefusal:
			content = append(content, Refusal{Text: p.Text, Category: p.Type, Seal: p.Seal})
		case KindOpaque:
			content = append(content, Opaque{Type: p.Type, Seal: p.Seal})
		}
	}
	return content, next < l.length
}

// HasContent reports whether any block of the log holds something. A log of empty blocks is an empty reply.
func (l *Log) HasContent() bool { return l.content }
