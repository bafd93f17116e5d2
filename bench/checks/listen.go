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
}

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
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !l.completed && l.abandoned == nil {
				return errors.New("a stream ended without a terminal event")
			}
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.take(msg.GetEvent()); err != nil {
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
