package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// again goes on with a turn whose stream was lost, or sends one whose reply was given up; otherwise it has another reply
// made.
func (t *talk) again(ctx context.Context, _ string) (done bool, err error) {
	if b := t.last; b != nil && b.stream != nil {
		if b.stream.Reply().End() == nil {
			return t.watch(ctx, b)
		}
		err := b.stream.Again(ctx)
		if err == nil {
			return t.watch(ctx, b)
		}
		if !errors.Is(err, client.ErrNotAgain) {
			t.say(err.Error())
			return false, nil
		}
	}
	return t.regenerate(ctx)
}

// regenerate has another reply made in place of the last one.
func (t *talk) regenerate(ctx context.Context) (done bool, err error) {
	var reply *turnsv1.Reply
	var repeat bool
	b, ok := t.call(ctx, func(ctx context.Context, b *subject) (err error) {
		reply, repeat, err = t.client.Regenerate(ctx, client.Regeneration{
			ConversationID: b.conversation, ReplyID: b.reply, Generation: b.generation})
		return err
	})
	if !ok {
		return false, nil
	}
	if repeat {
		t.say("another reply was asked for already; here is the latest")
	}
	return t.watch(ctx, t.follow(b, reply.GetReplyId(), max(b.generation, reply.GetGeneration())))
}

// follow is the subject of a reply that is read, and never attempted again by that.
func (t *talk) follow(b *subject, reply string, generation int32) *subject {
	return &subject{stream: t.client.Follow(b.conversation, client.Target{ReplyID: reply}, 0),
		conversation: b.conversation, turn: b.turn, reply: reply, generation: generation}
}

// stopReply stops what may be running though nothing is shown of it, such as after a lost stream.
func (t *talk) stopReply(ctx context.Context, _ string) (done bool, err error) {
	var reply *turnsv1.Reply
	_, ok := t.call(ctx, func(ctx context.Context, b *subject) (err error) {
		reply, err = t.client.Cancel(ctx, b.conversation, b.target())
		return err
	})
	if ok {
		t.say("the last reply " + statusInWords(reply))
	}
	return false, nil
}

// pick lists the replies to the last turn, or makes one of them the one that counts and shows it.
func (t *talk) pick(ctx context.Context, argument string) (done bool, err error) {
	number := 0
	if argument != "" {
		if number, err = strconv.Atoi(argument); err != nil || number < 1 {
			t.say("/pick takes the number of a reply; without one it lists them")
			return false, nil
		}
	}
	var turn *turnsv1.UserTurn
	var replies []*turnsv1.Reply
	b, ok := t.call(ctx, func(ctx context.Context, b *subject) (err error) {
		turn, replies, err = t.client.Turn(ctx, b.conversation, b.target())
		return err
	})
	switch {
	case !ok:
		return false, nil
	case number == 0:
		t.list(replies)
		return false, nil
	case number > len(replies):
		t.say(fmt.Sprintf("there are %d replies; /pick lists them", len(replies)))
		return false, nil
	}
	return t.pickReply(ctx, b, turn, replies[number-1])
}

// pickReply selects a reply, unless it is running, and shows it from its beginning.
func (t *talk) pickReply(ctx context.Context, b *subject, turn *turnsv1.UserTurn, reply *turnsv1.Reply) (done bool, err error) {
	b.turn, b.generation = turn.GetTurnId(), turn.GetGeneration()
	if reply.GetStatus() != turnsv1.ReplyStatus_REPLY_STATUS_IN_FLIGHT {
		t.last = b
		_, ok := t.call(ctx, func(ctx context.Context, b *subject) error {
			_, err := t.client.Select(ctx, b.conversation, reply.GetReplyId())
			return err
		})
		if !ok {
			return false, nil
		}
	}
	return t.watch(ctx, t.follow(b, reply.GetReplyId(), b.generation))
}

// call makes a call about the last turn, which an interrupt calls off, and says what went wrong.
func (t *talk) call(ctx context.Context, do func(context.Context, *subject) error) (b *subject, ok bool) {
	t.resetCause()
	ctx, a := t.attend(ctx, nil)
	defer a.end()
	b, err := t.subject(ctx)
	if err == nil && b == nil {
		t.say("there is no turn yet that this could be about")
		return nil, false
	}
	if err == nil {
		err = do(ctx, b)
	}
	switch {
	case ctx.Err() != nil:
		t.say("called off; whether it was done is not known here")
	case err != nil:
		t.say(t.ways.explain(err, b != nil))
	}
	return b, err == nil && ctx.Err() == nil
}

// subject is what a command is about: the turn that was seen last or, at first, the end of the conversation. It is nil
// if there is none.
func (t *talk) subject(ctx context.Context) (*subject, error) {
	if t.last != nil && t.last.delivered() {
		return t.last, nil
	}
	if t.conversation == "" {
		return nil, nil
	}
	entry, err := t.client.LastTurn(ctx, t.conversation)
	if err != nil || entry.GetReply() == nil {
		return nil, err
	}
	return &subject{conversation: t.conversation, turn: entry.GetTurn().GetTurnId(), reply: entry.GetReply().GetReplyId(),
		generation: entry.GetTurn().GetGeneration()}, nil
}

// list shows replies, each on a line.
func (t *talk) list(replies []*turnsv1.Reply) {
	for i, r := range replies {
		mark := " "
		if r.GetStatus() != turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED {
			mark = "*"
		}
		t.say(fmt.Sprintf("%s %2d  %s: %s", mark, i+1, statusInWords(r), beginning(r)))
	}
	t.say("* counts; /pick N goes back to a reply that was complete")
}

func statusInWords(r *turnsv1.Reply) string {
	switch r.GetStatus() {
	case turnsv1.ReplyStatus_REPLY_STATUS_IN_FLIGHT:
		return "is running"
	case turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE:
		return "is complete"
	case turnsv1.ReplyStatus_REPLY_STATUS_HELD:
		return "is held"
	case turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED:
		if r.GetAbandonReason() == turnsv1.AbandonReason_ABANDON_REASON_SUPERSEDED {
			return "was complete, and another took its place"
		}
		return "was given up: " + reasonInWords(r.GetAbandonReason())
	default:
		return "is in a state unknown here"
	}
}

// beginning is as much of a reply's text as fits on a line.
func beginning(r *turnsv1.Reply) string {
	const most = 50
	var text strings.Builder
	for _, b := range r.GetContent() {
		text.WriteString(b.GetText().GetText() + b.GetRefusal().GetText())
	}
	runes := []rune(strings.Join(strings.Fields(text.String()), " "))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, string(runes))
}
