package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// heard is what one Turn stream said.
type heard struct {
	kinds     []string
	reply     string
	previous  string // from restarted
	result    turnsv1.DeliveryResult
	text      string
	offset    uint32 // where the log stands
	deltas    int
	completed bool
	terminals int
	abandoned *turnsv1.Abandoned
	held      *turnsv1.Held
}

// over reports whether a terminal event was heard.
func (h *heard) over() bool { return h.completed || h.abandoned != nil || h.held != nil }

// listener follows one Turn stream and tells a watcher after each event.
type listener struct {
	heard
	watch func(*listener)
}

// send delivers a turn and follows it to its end. Each event must start where the one before it ended.
func (l *listener) send(ctx context.Context, s *service, in *turnsv1.TurnInput, cursor *turnsv1.Cursor) error {
	stream, err := s.turns.Turn(ctx, &turnsv1.TurnRequest{Input: in, Cursor: cursor})
	if err != nil {
		return err
	}
	return l.read(func() (*turnsv1.Event, error) {
		msg, err := stream.Recv()
		return msg.GetEvent(), err
	})
}

// follow listens to a reply from its beginning to its end.
func (l *listener) follow(ctx context.Context, s *service, conversation, reply string) error {
	stream, err := s.turns.FollowReply(ctx, &turnsv1.FollowReplyRequest{
		ConversationId: conversation, Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: reply}})
	if err != nil {
		return err
	}
	return l.read(func() (*turnsv1.Event, error) {
		msg, err := stream.Recv()
		return msg.GetEvent(), err
	})
}

func (l *listener) read(next func() (*turnsv1.Event, error)) error {
	for {
		event, err := next()
		if errors.Is(err, io.EOF) {
			if !l.over() {
				return errors.New("a stream ended without a terminal event")
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.take(event); err != nil {
			return err
		}
		if l.watch != nil {
			l.watch(l)
		}
	}
}

func (l *listener) take(e *turnsv1.Event) error {
	l.note(e)
	switch k := e.GetKind().(type) {
	case *turnsv1.Event_Accepted:
		l.result = k.Accepted.GetResult()
		return nil
	case *turnsv1.Event_Restarted:
		l.previous = k.Restarted.GetPreviousReplyId()
		if !k.Restarted.GetContinues() {
			l.text, l.deltas, l.offset = "", 0, 0
		}
		return nil
	case *turnsv1.Event_Heartbeat:
		return nil
	case *turnsv1.Event_Started:
		l.reply = e.GetReplyId()
		return nil
	case *turnsv1.Event_Delta:
		l.text += k.Delta.GetText()
		l.deltas++
	case *turnsv1.Event_Completed:
		l.completed = true
		l.terminals++
	case *turnsv1.Event_Abandoned:
		l.abandoned = k.Abandoned
		l.terminals++
		return nil
	case *turnsv1.Event_Held:
		l.held = k.Held
		l.terminals++
		return nil
	}
	if e.GetOffset() != l.offset {
		return fmt.Errorf("an event starts at offset %d, the one before it ended at %d", e.GetOffset(), l.offset)
	}
	l.offset = e.GetNextOffset()
	return nil
}

func (l *listener) note(e *turnsv1.Event) {
	name := fmt.Sprintf("%T", e.GetKind())
	if n := len(l.kinds); n == 0 || l.kinds[n-1] != name {
		l.kinds = append(l.kinds, name)
	}
}

func textInput(conversation, turn, text, model string) *turnsv1.TurnInput {
	return &turnsv1.TurnInput{
		ConversationId: conversation, TurnId: turn,
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}},
		Options: &turnsv1.GenerationOptions{Model: model},
	}
}
