package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	// maxReplyBytes bounds what a Reply gathers. A server's own limit is 8 MiB by default.
	maxReplyBytes = 64 << 20
	// maxReplaced bounds how many replies are remembered as replaced; a turn's budget of attempts is far smaller.
	maxReplaced = 16
)

var (
	// ErrOutOfStep is returned by Reply.Apply for an event that does not follow from those before it: something between is
	// missing, or it is another reply's. The events have to be had again from Reply.Cursor on.
	ErrOutOfStep = errors.New("the event does not follow from those before it")
	// ErrReplyTooLarge is returned by Reply.Apply for a reply of more than 64 MiB.
	ErrReplyTooLarge = errors.New("the reply is too large to be gathered")
)

// Reply gathers the events of a reply. It goes by their offsets and by nothing else, so events may come again, and cut
// otherwise than before, from one stream or from several: each byte of the log is taken once. The zero value is ready for
// a reply from its beginning. It is not safe for concurrent use.
type Reply struct {
	id       string
	next     uint32 // how far the log is known
	size     uint64 // bytes of log that blocks were made of
	blocks   []*block
	replaced []string // ids whose late events mean nothing any more
	started  *turnsv1.Started
	end      *turnsv1.Event
}

// block is a Block that can grow.
type block struct {
	Block
	text []byte
	// earlier marks a block of a reply that the present one continues in a log of its own.
	earlier bool
}

// Block is one piece of a reply as far as it is known.
type Block struct {
	// Kind tells what Text is: text, reasoning, words of refusal, or JSON of a tool's input.
	Kind turnsv1.BlockKind
	Text string
	// ToolUseID and ToolName belong to a tool call.
	ToolUseID string
	ToolName  string
	// Done is true once the block is closed.
	Done bool

	index uint32
}

// NewReply is a Reply whose log is known up to an offset already. Text holds only what comes after it. An empty id takes
// the first reply that comes.
func NewReply(id string, offset uint32) *Reply { return &Reply{id: id, next: offset} }

// ID is the id of the reply; empty before the first of its events.
func (r *Reply) ID() string { return r.id }

// Cursor is where to go on; nil before the reply's id is known.
func (r *Reply) Cursor() *turnsv1.Cursor {
	if r.id == "" {
		return nil
	}
	return &turnsv1.Cursor{ReplyId: r.id, Offset: r.next}
}

// End is the terminal event, nil before there is one. After an event of kind held or abandoned the reply can go on, if it
// is followed again; then there is no end until the next one.
func (r *Reply) End() *turnsv1.Event { return r.end }

// Text is what a person is to read: the blocks of text and of refusal, joined.
func (r *Reply) Text() string {
	var b strings.Builder
	for _, block := range r.blocks {
		if isForReading(block.Kind) {
			b.Write(block.text)
		}
	}
	return b.String()
}

func isForReading(k turnsv1.BlockKind) bool {
	return k == turnsv1.BlockKind_BLOCK_KIND_TEXT || k == turnsv1.BlockKind_BLOCK_KIND_REFUSAL
}

// Blocks are all blocks in their order. The slice is the caller's.
func (r *Reply) Blocks() []Block {
	out := make([]Block, len(r.blocks))
	for i, b := range r.blocks {
		out[i] = b.Block
		out[i].Text = string(b.text)
	}
	return out
}

// Apply takes an event and returns what of it is new: the event itself, a delta cut to its new part, or nil if all of it
// was known. After an event of kind restarted the reply is empty, unless the event says that it continues. An error
// changes nothing.
func (r *Reply) Apply(ev *turnsv1.Event) (*turnsv1.Event, error) {
	switch kind := ev.GetKind().(type) {
	case *turnsv1.Event_Accepted, *turnsv1.Event_Queued, *turnsv1.Event_Heartbeat:
		return ev, nil
	case *turnsv1.Event_Restarted:
		return r.restart(ev, kind.Restarted), nil
	case nil: // of a later version; it counts only if it takes room in the log
		if ev.GetReplyId() == "" {
			return nil, nil
		}
	}
	if slices.Contains(r.replaced, ev.GetReplyId()) {
		return nil, nil
	}
	if r.id != "" && ev.GetReplyId() != r.id {
		return nil, fmt.Errorf("%w: it belongs to another reply", ErrOutOfStep)
	}
	if ev.GetOffset() > r.next {
		return nil, fmt.Errorf("%w: it begins at %d and the log is known up to %d", ErrOutOfStep, ev.GetOffset(), r.next)
	}
	return r.grow(ev)
}

// grow takes an event of the reply that leaves no gap.
func (r *Reply) grow(ev *turnsv1.Event) (*turnsv1.Event, error) {
	if _, whole := r.end.GetKind().(*turnsv1.Event_Completed); whole {
		return nil, nil
	}
	switch kind := ev.GetKind().(type) {
	case *turnsv1.Event_Started:
		return r.begin(ev, kind.Started), nil
	case *turnsv1.Event_Completed, *turnsv1.Event_Abandoned, *turnsv1.Event_Held:
		return r.finish(ev), nil
	}
	if ev.GetNextOffset() <= r.next {
		return nil, nil
	}
	size := r.size + uint64(ev.GetNextOffset()-r.next)
	if size > maxReplyBytes {
		return nil, ErrReplyTooLarge
	}
	switch kind := ev.GetKind().(type) {
	case *turnsv1.Event_BlockStarted:
		b := kind.BlockStarted
		r.blocks = append(r.blocks, &block{Block: Block{Kind: b.GetKind(), ToolUseID: b.GetToolUseId(), ToolName: b.GetToolName(), index: b.GetBlockIndex()}})
	case *turnsv1.Event_Delta:
		var err error
		if ev, err = r.cut(ev); err != nil {
			return nil, err
		}
		r.extend(ev.GetDelta())
	case *turnsv1.Event_BlockCompleted:
		if b := r.find(kind.BlockCompleted.GetBlockIndex()); b != nil {
			b.Done = true
		}
	}
	r.id, r.next, r.size, r.end = ev.GetReplyId(), ev.GetNextOffset(), size, nil
	return ev, nil
}

// begin takes a started event. It is news once an attempt, and again if another worker has taken the reply over.
func (r *Reply) begin(ev *turnsv1.Event, s *turnsv1.Started) *turnsv1.Event {
	r.id = ev.GetReplyId()
	if proto.Equal(r.started, s) {
		return nil
	}
	r.started, r.end = s, nil
	return ev
}

func (r *Reply) finish(ev *turnsv1.Event) *turnsv1.Event {
	r.id = ev.GetReplyId()
	if proto.Equal(r.end, ev) {
		return nil
	}
	r.end = ev
	return ev
}

// reopen takes back an end that is not for ever, before the reply is followed again.
func (r *Reply) reopen() {
	if r.end.GetCompleted() == nil {
		r.end = nil
	}
}

// restart moves to another reply. An event that does not start from the present reply and leads to one that was left
// before is a late repeat; otherwise the way back to an earlier reply is open, since a person can select it again.
func (r *Reply) restart(ev *turnsv1.Event, k *turnsv1.Restarted) *turnsv1.Event {
	id := ev.GetReplyId()
	from := k.GetPreviousReplyId()
	if id == r.id || from != r.id && slices.Contains(r.replaced, id) {
		return nil
	}
	continues := k.GetContinues() && (ev.GetOffset() == 0 || ev.GetOffset() == r.next)
	if k.GetContinues() && !continues {
		// The new log takes over at a place that was not shown, or keeps less than was shown. It is read from its beginning.
		ev = proto.CloneOf(ev)
		ev.GetRestarted().Continues = false
	}
	r.forget(id)
	r.id, r.started, r.end = id, nil, nil
	switch {
	case !continues:
		r.next, r.size, r.blocks = 0, 0, nil
	case ev.GetOffset() == 0:
		r.next = 0
		for _, b := range r.blocks {
			b.earlier = true
		}
	}
	return ev
}

// forget marks the present reply as replaced, and its successor as not.
func (r *Reply) forget(successor string) {
	r.replaced = slices.DeleteFunc(r.replaced, func(id string) bool { return id == successor })
	if r.id == "" {
		return
	}
	if len(r.replaced) == maxReplaced {
		r.replaced = slices.Delete(r.replaced, 0, 1)
	}
	r.replaced = append(r.replaced, r.id)
}

// cut takes off a delta what is known already.
func (r *Reply) cut(ev *turnsv1.Event) (*turnsv1.Event, error) {
	text := ev.GetDelta().GetText()
	if uint64(ev.GetNextOffset())-uint64(ev.GetOffset()) != uint64(len(text)) {
		return nil, fmt.Errorf("%w: its offsets are %d and %d and its text has %d bytes", ErrOutOfStep, ev.GetOffset(), ev.GetNextOffset(), len(text))
	}
	known := int(r.next - ev.GetOffset())
	if known == 0 {
		return ev, nil
	}
	if !utf8.RuneStart(text[known]) {
		return nil, fmt.Errorf("%w: the log is known up to %d, which is inside a rune", ErrOutOfStep, r.next)
	}
	fresh := proto.CloneOf(ev)
	fresh.Offset = r.next
	fresh.GetDelta().Text = text[known:]
	return fresh, nil
}

// extend adds to a block. One that was opened before the offset at which this Reply begins is made here.
func (r *Reply) extend(d *turnsv1.Delta) {
	b := r.find(d.GetBlockIndex())
	if b == nil {
		b = &block{Block: Block{Kind: d.GetKind(), index: d.GetBlockIndex()}}
		r.blocks = append(r.blocks, b)
	}
	b.text = append(b.text, d.GetText()...)
}

// find looks from the end, where the block that grows is.
func (r *Reply) find(index uint32) *block {
	for _, b := range slices.Backward(r.blocks) {
		if b.earlier {
			return nil
		}
		if b.index == index {
			return b
		}
	}
	return nil
}
