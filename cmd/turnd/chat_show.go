package main

import (
	"context"
	"fmt"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// outcome is how the showing of a reply ended.
type outcome int

const (
	left        outcome = iota // the user left, and does not stay for another turn
	undelivered                // the user no longer waits for a server that has not answered
	completed                  // the reply is whole
	failed                     // it was given up or is held, or its stream was refused or lost
)

// showing is how the showing of a reply ended, in words too; they are empty for a reply that is whole.
type showing struct {
	how   outcome
	words string
	lost  bool // the stream was refused or lost, so the turn can be gone on with
}

// show streams a reply. What has gone out can't be taken back, so a reply that begins anew does so on a line of its own.
// The error is that of an output that takes nothing.
func (t *talk) show(ctx context.Context, about *subject) (showing, error) {
	t.screen.begin()
	t.resetCause()
	ctx, a := t.attend(ctx, about)
	end, err := t.play(ctx, a, about)
	a.end()
	t.screen.begin()
	return end, err
}

// play shows events until the stream or the user ends it.
func (t *talk) play(ctx context.Context, a *attendance, about *subject) (end showing, err error) {
	defer func() {
		if broken := t.screen.endReply(); err == nil && broken != nil {
			err = fmt.Errorf("print the reply: %w", broken)
		}
	}()
	end.how, end.words = a.verdict()
	for event, err := range about.stream.Events(ctx) {
		about.learn(event)
		a.learn(about.stream, event)
		if err != nil && ctx.Err() == nil {
			return showing{how: failed, words: t.ways.explain(err, about.delivered()), lost: true}, nil
		}
		if ctx.Err() != nil {
			end.how, end.words = a.verdict()
			return end, nil
		}
		t.screen.event(event)
		if err := t.screen.lost(); err != nil {
			return end, fmt.Errorf("print the reply: %w", err)
		}
		switch event.GetKind().(type) {
		case *turnsv1.Event_Completed:
			end = showing{how: completed}
			if a.wasAsked() {
				t.say("it was complete before it could be stopped")
			}
		case *turnsv1.Event_Abandoned, *turnsv1.Event_Held:
			end = showing{how: failed, words: t.ways.ending(event)}
		}
	}
	return end, nil
}

// subject is what /again, /pick and /stop are about: a turn and the reply to it that was seen last.
type subject struct {
	// stream is nil for what is known from a list only.
	stream *client.Stream

	conversation, turn, reply string
	// generation is the turn's.
	generation int32
	// told is set once a server has spoken of the turn.
	told bool
}

// sent is the subject of a turn that is on its way.
func sent(s *client.Stream) *subject {
	return &subject{stream: s, conversation: s.ConversationID(), turn: s.TurnID(), reply: s.Reply().ID()}
}

// learn takes over what the stream has come to know.
func (b *subject) learn(ev *turnsv1.Event) {
	s := b.stream
	b.told = b.told || ev != nil
	b.conversation, b.generation = s.ConversationID(), max(b.generation, s.Generation())
	if id := s.Reply().ID(); id != "" {
		b.reply = id
	}
}

// delivered tells whether a server has told of the turn.
func (b *subject) delivered() bool {
	return b.conversation != "" && (b.told || b.reply != "")
}

// target names the turn to a server.
func (b *subject) target() client.Target {
	if b.turn != "" {
		return client.Target{TurnID: b.turn}
	}
	return client.Target{ReplyID: b.reply}
}
