package main

import (
	"fmt"
	"io"
	"strings"
	"sync"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Codes of a terminal for what is not the reply.
const (
	dimOn  = "\x1b[2m"
	dimOff = "\x1b[22m"
)

// screen writes replies to out and all else to status, which a terminal shows in one place. It is safe for concurrent use.
type screen struct {
	out, status io.Writer
	dim         bool // status is a terminal that can show it

	mu      sync.Mutex
	midline bool // what was shown last has no end of line yet
	open    bool // the last line of out has none
	aside   bool // the block that grows is not the reply's text
	err     error
}

// say writes a line of status, on a line of its own.
func (s *screen) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breakLine()
	fmt.Fprintln(s.status, "· "+text)
}

// prompt invites a line.
func (s *screen) prompt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprint(s.status, "> ")
}

// breakLine begins a new line before something of status. The break is not part of out, which may be a file.
func (s *screen) breakLine() {
	if s.midline {
		fmt.Fprintln(s.status)
	}
	s.midline = false
}

// begin prepares for a reply.
func (s *screen) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.aside = false, false
}

// endReply ends the last line of out, and tells whether all could be written.
func (s *screen) endReply() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.write("\n")
	}
	s.breakLine()
	s.aside = false
	return s.err
}

// write puts text of the reply out.
func (s *screen) write(text string) {
	if text == "" || s.err != nil {
		return
	}
	if s.aside {
		s.breakLine()
		s.aside = false
	}
	_, s.err = io.WriteString(s.out, text)
	s.open = !strings.HasSuffix(text, "\n")
	s.midline = s.open
}

// note puts text that is not the reply's beside it, under a title if it begins there.
func (s *screen) note(title, text string) {
	if title != "" {
		s.breakLine()
		text = "· " + title + text
	}
	if text == "" {
		return
	}
	if s.dim {
		fmt.Fprint(s.status, dimOn+text+dimOff)
	} else {
		fmt.Fprint(s.status, text)
	}
	s.aside, s.midline = true, !strings.HasSuffix(text, "\n")
}

// block opens a block, where that is to be seen.
func (s *screen) block(b *turnsv1.BlockStarted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch b.GetKind() {
	case turnsv1.BlockKind_BLOCK_KIND_THINKING:
		s.note("thinking: ", "")
	case turnsv1.BlockKind_BLOCK_KIND_TOOL_USE:
		s.note("calls the tool "+b.GetToolName()+" with ", "")
	case turnsv1.BlockKind_BLOCK_KIND_OPAQUE:
		s.note("something that only the vendor can read", "")
	default: // text begins with its first delta
	}
}

// delta shows what a block has grown by.
func (s *screen) delta(d *turnsv1.Delta) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch d.GetKind() {
	case turnsv1.BlockKind_BLOCK_KIND_TEXT, turnsv1.BlockKind_BLOCK_KIND_REFUSAL:
		s.write(d.GetText())
	default:
		s.note("", d.GetText())
	}
}

// event shows what a person is to see of an event.
func (s *screen) event(ev *turnsv1.Event) {
	switch kind := ev.GetKind().(type) {
	case *turnsv1.Event_Accepted:
		if r := kind.Accepted.GetResult(); r == turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED {
			s.say("this turn was answered before; here is its reply")
		}
	case *turnsv1.Event_Queued:
		s.say(fmt.Sprintf("in line, %d before it", kind.Queued.GetPosition()))
	case *turnsv1.Event_Restarted:
		if !kind.Restarted.GetContinues() {
			_ = s.endReply() // what can't be written is found by the next
			s.say("the reply above was cut off (" + reasonInWords(kind.Restarted.GetPreviousReason()) + "); it begins anew")
		}
	case *turnsv1.Event_BlockStarted:
		s.block(kind.BlockStarted)
	case *turnsv1.Event_Delta:
		s.delta(kind.Delta)
	case *turnsv1.Event_Completed:
		_ = s.endReply()
		s.stop(kind.Completed.GetStopReason())
	}
}

// stop says why the model stopped, where that is not plain from the reply.
func (s *screen) stop(r turnsv1.StopReason) {
	switch r {
	case turnsv1.StopReason_STOP_REASON_LENGTH:
		s.say("the reply reached its limit of length")
	case turnsv1.StopReason_STOP_REASON_REFUSAL:
		s.say("the model declined to answer")
	case turnsv1.StopReason_STOP_REASON_CONTENT_FILTER:
		s.say("a filter of the provider stopped the reply")
	case turnsv1.StopReason_STOP_REASON_CONTEXT_EXCEEDED:
		s.say("the model's context window is used up")
	case turnsv1.StopReason_STOP_REASON_PAUSE:
		s.say("the provider interrupted a long reply; to have it go on, say so")
	case turnsv1.StopReason_STOP_REASON_TOOL_USE:
		s.say("the model waits for the result of a tool, which chat can't give; to go on without it, say something")
	default:
	}
}

// lost tells whether a reply can't be written any more.
func (s *screen) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
