package scripted

import (
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	defaultDeltaBytes = 16
	// toolInputBytes is the size of the pieces in which a tool's arguments are sent.
	toolInputBytes = 16
)

// pieceKind is what a piece does to its block.
type pieceKind int

const (
	pieceOpen      pieceKind = iota
	pieceText                // a delta of text
	pieceThinking            // a delta of thinking
	pieceRefusal             // a delta of words of refusal
	pieceInput               // a delta of a tool's arguments
	pieceSignature           // of thinking or text, whole; it is no output of the model and not counted
	pieceCite                // one that a text cites, whole; not counted either
	pieceShut
)

// piece is the smallest part of a reply's content, in no vendor's words: a block opens, says something, shuts.
type piece struct {
	kind  pieceKind
	index int    // of the block
	block Block  // the block it belongs to
	text  string // what a delta or a signature says, or the JSON of what is cited
}

// isDelta tells the pieces that are counted as output.
func (p piece) isDelta() bool {
	return p.kind == pieceText || p.kind == pieceThinking || p.kind == pieceRefusal || p.kind == pieceInput
}

// pieces yields the content of the plan in order.
func (p Plan) pieces() iter.Seq[piece] {
	return func(yield func(piece) bool) {
		if p.Reply != nil {
			p.Reply.pieces(yield)
			return
		}
		for i, block := range p.blocks() {
			if !block.pieces(i, yield) {
				return
			}
		}
	}
}

// blocks returns the blocks of a plan without a Reply.
func (p Plan) blocks() []Block {
	if len(p.Blocks) == 0 {
		return []Block{{Text: defaultText}}
	}
	return p.Blocks
}

// on is the plan as a wire can say it.
func (p Plan) on(wire string) Plan {
	p.Blocks = slices.Clone(p.Blocks)
	if wire != wireAnthropic {
		p.Blocks = slices.DeleteFunc(p.Blocks, isVendors)
	}
	for i := range p.Blocks {
		b := &p.Blocks[i]
		if wire != wireGemini && b.Text != "" {
			b.Signature = ""
		}
		if wire == wireGemini || wire == wireOpenAI {
			b.Cites = nil
		}
	}
	return p
}

func isVendors(b Block) bool { return b.Vendor != "" }

// deltas counts what the plan produces when nothing stops it.
func (p Plan) deltas() int {
	if p.Reply != nil {
		return p.Reply.Deltas
	}
	n := 0
	for _, block := range p.blocks() {
		n += len(block.cut())
	}
	return n
}

// bytes is the size of the content, as far as it is worth bounding.
func (p Plan) bytes() int {
	if p.Reply != nil {
		return p.Reply.Deltas * p.Reply.deltaBytes()
	}
	n := 0
	for _, block := range p.blocks() {
		n += len(block.Text) + len(block.Thinking) + len(block.Redacted) + len(block.Refusal) + len(block.Vendor)
		for _, cite := range block.Cites {
			n += len(cite)
		}
		if block.ToolUse != nil {
			n += len(block.ToolUse.Input)
		}
	}
	return n
}

// stopReason is the plan's, or what a model would give for such content.
func (p Plan) stopReason() string {
	if p.StopReason != "" {
		return p.StopReason
	}
	for _, block := range p.Blocks {
		switch {
		case block.ToolUse != nil:
			return "tool_use"
		case block.Refusal != "":
			return "refusal"
		}
	}
	return "end_turn"
}

// kind is that of the block's deltas.
func (b Block) kind() pieceKind {
	switch {
	case b.ToolUse != nil:
		return pieceInput
	case b.Thinking != "":
		return pieceThinking
	case b.Refusal != "":
		return pieceRefusal
	default:
		return pieceText
	}
}

// cut splits what the block says into deltas.
func (b Block) cut() []string {
	switch b.kind() {
	case pieceInput:
		return cutBytes(b.ToolUse.Input, toolInputBytes)
	case pieceThinking:
		return cutWords(b.Thinking)
	case pieceRefusal:
		return cutWords(b.Refusal)
	default:
		return cutWords(b.Text)
	}
}

// pieces yields the block from its opening to its end; false is that the reader wants no more.
func (b Block) pieces(index int, yield func(piece) bool) bool {
	if !yield(piece{kind: pieceOpen, index: index, block: b}) {
		return false
	}
	for _, text := range b.cut() {
		if !yield(piece{kind: b.kind(), index: index, block: b, text: text}) {
			return false
		}
	}
	for _, cite := range b.Cites {
		if !yield(piece{kind: pieceCite, index: index, block: b, text: cite}) {
			return false
		}
	}
	if b.Signature != "" && !yield(piece{kind: pieceSignature, index: index, block: b, text: b.Signature}) {
		return false
	}
	return yield(piece{kind: pieceShut, index: index, block: b})
}

func (r Reply) deltaBytes() int {
	if r.DeltaBytes == 0 {
		return defaultDeltaBytes
	}
	return r.DeltaBytes
}

// pieces yields one block. A reply without deltas has no block at all, as a model that says nothing has none.
func (r Reply) pieces(yield func(piece) bool) {
	if r.Deltas == 0 || !yield(piece{kind: pieceOpen}) {
		return
	}
	random := rand.New(rand.NewPCG(uint64(r.Seed), 0))
	for range r.Deltas {
		if !yield(piece{kind: pieceText, text: words(random, r.deltaBytes())}) {
			return
		}
	}
	yield(piece{kind: pieceShut})
}

// Text is all that the reply says.
func (r Reply) Text() string {
	var all strings.Builder
	r.pieces(func(p piece) bool {
		all.WriteString(p.text)
		return true
	})
	return all.String()
}

// words returns exactly n bytes of lower-case words. It ends with a space, so that no word crosses two deltas.
func words(random *rand.Rand, n int) string {
	out := make([]byte, n)
	left := 0
	for i := range out {
		if left == 0 {
			left = 2 + random.IntN(7)
			if i > 0 {
				out[i] = ' '
				continue
			}
		}
		out[i] = byte('a' + random.IntN(26))
		left--
	}
	if n > 1 {
		out[n-1] = ' '
	}
	return string(out)
}

// cutWords splits text after each run of white space. Joined, the parts are the text.
func cutWords(text string) []string {
	var parts []string
	start, inSpace := 0, false
	for i, r := range text {
		space := unicode.IsSpace(r)
		if inSpace && !space && strings.TrimSpace(text[start:i]) != "" {
			parts = append(parts, text[start:i])
			start = i
		}
		inSpace = space
	}
	if start < len(text) {
		parts = append(parts, text[start:])
	}
	return parts
}

// cutBytes splits text into parts of at most n bytes that end on whole runes.
func cutBytes(text string, n int) []string {
	var parts []string
	for len(text) > n {
		end := n
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		parts = append(parts, text[:end])
		text = text[end:]
	}
	if text != "" {
		parts = append(parts, text)
	}
	return parts
}
