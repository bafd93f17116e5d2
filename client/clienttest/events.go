package clienttest

import (
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Accepted is the first event of Turn.
func Accepted(conversation, turn string, result turnsv1.DeliveryResult) *turnsv1.Event {
	return &turnsv1.Event{Kind: &turnsv1.Event_Accepted{Accepted: &turnsv1.Accepted{
		Turn: &turnsv1.UserTurn{ConversationId: conversation, TurnId: turn}, Result: result}}}
}

// Started introduces an attempt.
func Started(reply string, attempt int32) *turnsv1.Event {
	return &turnsv1.Event{ReplyId: reply, Kind: &turnsv1.Event_Started{Started: &turnsv1.Started{Attempt: attempt, Generation: 1, Epoch: 1}}}
}

// Restarted replaces one reply by another.
func Restarted(previous, reply string) *turnsv1.Event {
	return &turnsv1.Event{ReplyId: reply, Kind: &turnsv1.Event_Restarted{Restarted: &turnsv1.Restarted{
		PreviousReplyId: previous, PreviousReason: turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED}}}
}

// Text is the log of a reply with one block of text, a delta for each piece.
func Text(reply string, pieces ...string) []*turnsv1.Event {
	return Block(reply, 0, 0, turnsv1.BlockKind_BLOCK_KIND_TEXT, "", pieces...)
}

// Block is the log of one block of any kind. index counts the blocks of the reply and at is where in its log this begins;
// a tool's name is for calls of tools alone.
func Block(reply string, index, at uint32, kind turnsv1.BlockKind, tool string, pieces ...string) []*turnsv1.Event {
	id := ""
	if tool != "" {
		id = "call_1"
	}
	log := []*turnsv1.Event{{ReplyId: reply, Offset: at, NextOffset: at + 1, Kind: &turnsv1.Event_BlockStarted{
		BlockStarted: &turnsv1.BlockStarted{BlockIndex: index, Kind: kind, ToolName: tool, ToolUseId: id}}}}
	at++
	for _, piece := range pieces {
		next := at + uint32(len(piece))
		log = append(log, &turnsv1.Event{ReplyId: reply, Offset: at, NextOffset: next,
			Kind: &turnsv1.Event_Delta{Delta: &turnsv1.Delta{BlockIndex: index, Kind: kind, Text: piece}}})
		at = next
	}
	return append(log, &turnsv1.Event{ReplyId: reply, Offset: at, NextOffset: at + 1,
		Kind: &turnsv1.Event_BlockCompleted{BlockCompleted: &turnsv1.BlockCompleted{BlockIndex: index}}})
}

// From is what of a log lies at an offset and after it, cut inside a delta if need be.
func From(log []*turnsv1.Event, offset uint32) []*turnsv1.Event {
	var out []*turnsv1.Event
	for _, e := range log {
		switch {
		case e.GetNextOffset() <= offset:
		case e.GetOffset() < offset:
			e = proto.CloneOf(e)
			e.GetDelta().Text = e.GetDelta().GetText()[offset-e.GetOffset():]
			e.Offset = offset
			out = append(out, e)
		default:
			out = append(out, e)
		}
	}
	return out
}

// Completed ends a log as finished.
func Completed(log []*turnsv1.Event) *turnsv1.Event {
	e := endOf(log)
	e.Kind = &turnsv1.Event_Completed{Completed: &turnsv1.Completed{StopReason: turnsv1.StopReason_STOP_REASON_END_TURN}}
	return e
}

// Abandoned ends a log as given up, with an advice.
func Abandoned(log []*turnsv1.Event, reason turnsv1.AbandonReason, advice turnsv1.RetryAdvice, delay time.Duration) *turnsv1.Event {
	e := endOf(log)
	e.Kind = &turnsv1.Event_Abandoned{Abandoned: &turnsv1.Abandoned{
		Reason: reason, Advice: advice, RetryDelay: durationpb.New(delay), PartialLength: e.GetOffset()}}
	return e
}

// Held ends a log as of unknown outcome.
func Held(log []*turnsv1.Event, delay time.Duration) *turnsv1.Event {
	e := endOf(log)
	e.Kind = &turnsv1.Event_Held{Held: &turnsv1.Held{
		Advice: turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT, RetryDelay: durationpb.New(delay)}}
	return e
}

// Heartbeat says that there is nothing to say.
func Heartbeat(reply string) *turnsv1.Event {
	return &turnsv1.Event{ReplyId: reply, Kind: &turnsv1.Event_Heartbeat{Heartbeat: &turnsv1.Heartbeat{}}}
}

// All joins what makes up a stream: single events and logs.
func All(parts ...any) []*turnsv1.Event {
	var out []*turnsv1.Event
	for _, part := range parts {
		switch part := part.(type) {
		case *turnsv1.Event:
			out = append(out, part)
		case []*turnsv1.Event:
			out = append(out, part...)
		}
	}
	return out
}

func endOf(log []*turnsv1.Event) *turnsv1.Event {
	last := log[len(log)-1]
	return &turnsv1.Event{ReplyId: last.GetReplyId(), Offset: last.GetNextOffset(), NextOffset: last.GetNextOffset()}
}
