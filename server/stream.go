package server

import (
	"context"
	"errors"
	"iter"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// maxDelta bounds the text of one event in bytes, so that a message stays well below 1 MiB.
const maxDelta = 512 << 10

// emitter writes the events of one stream. It keeps the place in the log, which every event carries.
type emitter struct {
	send func(*turnsv1.Event) error
	// terminal writes the event of a reply's end, nil for a reply that is in flight.
	terminal func(turns.Reply) *turnsv1.Event
	reply    turns.ReplyID
	at       uint32
	// ended is told how the reply ended; nil: nobody is.
	ended func(turns.Reply)
}

// follow streams a reply, as it was read last, from an offset until its terminal event; without a reply's id that of a turn in
// line, once it has one. before sends what comes first, and ended, if not nil, is told of the end. Where the offset is a
// client's, before waits for the follower's first word: an offset that turns out to be none is then still a status and not the
// end of a stream that had begun.
func (s *Server) follow(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, reply *turns.Reply, from uint32,
	before func() error, send func(*turnsv1.Event) error, ended func(turns.Reply)) error {
	if reply.ID.IsZero() {
		from = 0
	}
	e := &emitter{send: send, terminal: s.endedToWire, reply: reply.ID, at: from, ended: ended}
	begin := before
	if from == 0 {
		begin = nil
		if err := before(); err != nil {
			return err
		}
	}
	// Send waits while the client's window is full, and meanwhile nothing is read from the follower: the reader that comes
	// back finds bigger pieces, and no queue has grown.
	for event, err := range s.events(ctx, key, turn, reply, from) {
		if begin != nil && turns.CodeOf(err) != turns.CodeInvalidCursor {
			if err := begin(); err != nil {
				return err
			}
			begin = nil
		}
		if err != nil {
			return err
		}
		ended, err := e.emit(event)
		if ended || err != nil {
			return err
		}
	}
	// To end with OK and no terminal event would be the one thing that a client can't tell from success.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New("the follower stopped before the reply's end")
}

// events are those of a reply, as it was read last.
func (s *Server) events(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, reply *turns.Reply, from uint32) iter.Seq2[turns.Event, error] {
	switch {
	case reply.ID.IsZero():
		return s.cfg.Follower.FollowTurn(ctx, key, turn)
	case reply.Replayable():
		return s.cfg.Follower.Replay(ctx, key, *reply, from)
	}
	return s.cfg.Follower.Follow(ctx, key, reply.ID, from)
}

// emit writes one event of the domain, which can be several on the wire; ended says that it was the last.
func (e *emitter) emit(event turns.Event) (ended bool, err error) {
	switch event := event.(type) {
	case turns.Queued:
		return false, e.write(&turnsv1.Event{Kind: &turnsv1.Event_Queued{Queued: &turnsv1.Queued{Position: int32(event.Position)}}}, 0)
	case turns.Started:
		e.reply = event.Reply.ID
		return false, e.write(startedToWire(event.Reply), 0)
	case turns.Grew:
		return false, e.grew(event)
	case turns.Restarted:
		e.reply, e.at = event.Reply, event.Offset
		return false, e.write(restartedToWire(event), 0)
	case turns.Heartbeat:
		return false, e.write(&turnsv1.Event{Kind: &turnsv1.Event_Heartbeat{Heartbeat: &turnsv1.Heartbeat{}}}, 0)
	case turns.Ended:
		if r := event.Reply; r.Status == turns.StatusAbandoned || r.Status == turns.StatusHeld {
			e.at = min(e.at, r.Length) // a reader may have come further than what was kept
		}
		ev := e.terminal(event.Reply)
		if ev == nil {
			return true, errors.New("the follower ended with a reply that is still in flight")
		}
		if e.ended != nil {
			e.ended(event.Reply)
		}
		return true, e.write(ev, 0)
	}
	return true, errors.New("the follower sent an event that has no form on the wire")
}

// grew writes a piece of the log: the block's start, its text in events of bounded size, its end.
func (e *emitter) grew(g turns.Grew) error {
	p := g.Piece
	e.at = g.Offset
	kind := blockKinds.wire(p.Kind)
	if p.Starts {
		start := &turnsv1.BlockStarted{BlockIndex: p.Block, Kind: kind, ToolUseId: p.ToolUseID, ToolName: p.ToolName}
		if err := e.write(&turnsv1.Event{Kind: &turnsv1.Event_BlockStarted{BlockStarted: start}}, 1); err != nil {
			return err
		}
	}
	for text := p.Text; text != ""; {
		n := cutAt(text, maxDelta)
		delta := &turnsv1.Delta{BlockIndex: p.Block, Kind: kind, Text: text[:n]}
		if err := e.write(&turnsv1.Event{Kind: &turnsv1.Event_Delta{Delta: delta}}, uint32(n)); err != nil {
			return err
		}
		text = text[n:]
	}
	if p.Ends {
		end := &turnsv1.BlockCompleted{BlockIndex: p.Block}
		return e.write(&turnsv1.Event{Kind: &turnsv1.Event_BlockCompleted{BlockCompleted: end}}, 1)
	}
	return nil
}

// write sends an event that takes size bytes of the log. Offsets are counted here and nowhere else.
func (e *emitter) write(ev *turnsv1.Event, size uint32) error {
	ev.ReplyId = idText(e.reply.UUID)
	ev.Offset, ev.NextOffset = e.at, e.at+size
	e.at += size
	return e.send(ev)
}

// cutAt is the length of the longest prefix of whole runes within limit bytes.
func cutAt(s string, limit int) int {
	if len(s) <= limit {
		return len(s)
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return limit
}

func acceptedToWire(sub turns.Submission) *turnsv1.Event {
	return &turnsv1.Event{Kind: &turnsv1.Event_Accepted{Accepted: &turnsv1.Accepted{
		Turn: turnHeadToWire(sub.Turn), Result: deliveryResults.wire(sub.Result)}}}
}

func startedToWire(r turns.Reply) *turnsv1.Event {
	return &turnsv1.Event{Kind: &turnsv1.Event_Started{Started: &turnsv1.Started{
		Attempt: r.Attempt, Generation: r.Generation, Epoch: r.Epoch, Provider: r.Provider, Model: r.Model}}}
}

func restartedToWire(r turns.Restarted) *turnsv1.Event {
	return &turnsv1.Event{Kind: &turnsv1.Event_Restarted{Restarted: &turnsv1.Restarted{
		PreviousReplyId: idText(r.Previous.ID.UUID), PreviousReason: abandonReasons.wire(r.Previous.Reason), Continues: r.Continues}}}
}

// endedToWire is the terminal event of a reply, nil for one that is in flight.
func (s *Server) endedToWire(r turns.Reply) *turnsv1.Event {
	advice, wait := s.cfg.Service.Advice(r)
	var delay *durationpb.Duration
	if advice == turns.AdviceSameIDAfter {
		delay = durationpb.New(wait)
	}
	switch r.Status {
	case turns.StatusComplete:
		return &turnsv1.Event{Kind: &turnsv1.Event_Completed{Completed: &turnsv1.Completed{
			StopReason: stopReasons.wire(r.StopReason), Usage: usageToWire(r.Usage)}}}
	case turns.StatusAbandoned:
		return &turnsv1.Event{Kind: &turnsv1.Event_Abandoned{Abandoned: &turnsv1.Abandoned{
			Reason: abandonReasons.wire(r.Reason), Advice: advices.wire(advice), RetryDelay: delay,
			PartialLength: r.Length, Usage: usageToWire(r.Usage), ProviderCode: r.ProviderCode}}}
	case turns.StatusHeld:
		return &turnsv1.Event{Kind: &turnsv1.Event_Held{Held: &turnsv1.Held{
			Age: durationpb.New(r.Age), Advice: advices.wire(advice), RetryDelay: delay}}}
	}
	return nil
}
