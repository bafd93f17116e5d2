package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// treeWires are the wires that the session is played on, one model each.
var treeWires = []string{"anthropic.messages", "openai.responses", "openai.chat"}

// tree plays one session of edits, regenerates, stops and tool calls on each engine and each wire. All must end with the
// same tree, the same texts and the same ledger.
func tree(l *lab) error {
	var first *treeRecord
	for _, wire := range treeWires {
		engines, err := l.engines("tree_" + strings.ReplaceAll(wire, ".", "_"))
		if err != nil {
			return err
		}
		for _, e := range engines {
			got, err := l.playTree(e, wire)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", wire, e.name, err)
			}
			if first == nil {
				first = got
			}
			if err := first.equal(got); err != nil {
				return fmt.Errorf("%s on %s ended otherwise than %s: %w", wire, e.name, first.name, err)
			}
		}
	}
	first.print()
	figure("scenes", 2*len(treeWires))
	figure("user_turns", first.turns)
	figure("replies", first.replies)
	figure("ledger_rows", len(first.ledger))
	figure("replayed_for_free", first.turns)
	return nil
}

// treeScript answers by the words of the turn. The three replies to the edited question differ; what is stopped waits at
// a gate, so that its partial is the same each time.
var treeScript = object{"rules": []object{
	says("first", 6, 1), says("second", 6, 2),
	nth(says("second, edited", 6, 3), 1), nth(says("second, edited", 6, 4), 2), nth(says("second, edited", 6, 5), 3),
	stopping(says("a long story", 40, 6), "delta:10", "story"),
	says("never mind", 4, 7),
	stopping(calls("look it up", "call_a"), "delta:3", "tool"), // two of the text, one of the call's input
	says("forget that", 4, 8),
	calls("look it up again", "call_b", "call_c"),
	says("no need", 4, 9),
	stopping(says("tell me everything", 40, 10), "delta:20", "everything"),
}}

func says(text string, deltas, seed int) object {
	return object{"name": text, "match": object{"text": text + "$"}, "plan": object{
		"reply": object{"deltas": deltas, "delta_bytes": 16, "seed": seed}, "on_client_gone": "stop"}}
}

func calls(text string, ids ...string) object {
	blocks := []object{{"text": "One moment."}}
	for _, id := range ids {
		blocks = append(blocks, object{"tool_use": object{"id": id, "name": "search", "input": `{"q": "` + id + `", "limit": 10}`}})
	}
	return object{"name": text, "match": object{"text": text + "$"}, "plan": object{"blocks": blocks, "on_client_gone": "stop"}}
}

func nth(rule object, n int) object {
	rule["match"].(object)["nth"] = n
	return rule
}

func stopping(rule object, at, gate string) object {
	rule["plan"].(object)["steps"] = []object{{"at": at, "do": "wait", "gate": gate}}
	return rule
}

// treeScene is one session. Two devices talk to it, on Postgres each through a server of its own.
type treeScene struct {
	*lab
	p            *provider
	phone        *service
	laptop       *service
	conversation string
	model        string
	turns        []*treeTurn
}

// treeTurn is a user turn under the name that the session has for it, and the ids of its replies by their attempts.
type treeTurn struct {
	name    string
	in      *turnsv1.TurnInput
	replies []string
}

func (l *lab) playTree(e engine, wire string) (*treeRecord, error) {
	p, err := l.provider(treeScript)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	models, err := l.write("tree.yaml", fmt.Sprintf("version: 1\ndefault_model: demo\nendpoints:\n  one: {wire: %s, base_url: %q}\n"+
		"models:\n  demo: {route: [{endpoint: one, model: demo}]}\n", wire, p.url))
	if err != nil {
		return nil, err
	}
	s := &treeScene{lab: l, p: p, conversation: uuid.NewString(), model: "demo"}
	if s.phone, err = l.serve(e, models); err != nil {
		return nil, err
	}
	defer s.phone.stop()
	s.laptop = s.phone
	if e.name == "postgres" {
		if s.laptop, err = l.serve(e, models); err != nil {
			return nil, err
		}
		defer s.laptop.stop()
	}
	for _, act := range []func() error{s.branch, s.cutIn, s.callTools, s.changeDevice, s.sendAllAgain} {
		if err := act(); err != nil {
			return nil, err
		}
	}
	return s.record(wire, e)
}

// say sends a turn and follows it to a complete reply.
func (s *treeScene) say(name string, change ...func(*turnsv1.TurnInput)) error {
	h := &listener{}
	if err := h.send(s.ctx, s.phone, s.input(name, change...), nil); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !h.completed {
		return fmt.Errorf("%s was not answered: %s", name, h.ending())
	}
	s.heard(name, h.reply)
	return nil
}

// input is a new user turn whose words are its name.
func (s *treeScene) input(name string, change ...func(*turnsv1.TurnInput)) *turnsv1.TurnInput {
	in := textInput(s.conversation, uuid.NewString(), name, s.model)
	for _, c := range change {
		c(in)
	}
	s.turns = append(s.turns, &treeTurn{name: name, in: in})
	return in
}

// named finds the turn of a name.
func (s *treeScene) named(name string) *treeTurn {
	for _, t := range s.turns {
		if t.name == name {
			return t
		}
	}
	return nil
}

func (s *treeScene) heard(name, reply string) {
	t := s.named(name)
	t.replies = append(t.replies, reply)
}

// branch edits the second question, has the answer made twice more, and goes back to the first one.
func (s *treeScene) branch() error {
	if err := errors.Join(s.say("first"), s.say("second")); err != nil {
		return err
	}
	parent := s.named("first").replies[0]
	err := s.say("second, edited", func(in *turnsv1.TurnInput) { in.Parent = &turnsv1.TurnInput_ParentId{ParentId: parent} })
	if err != nil {
		return err
	}
	edited := s.named("second, edited")
	for range 2 {
		made, err := s.laptop.turns.RegenerateReply(s.ctx, &turnsv1.RegenerateReplyRequest{
			ConversationId: s.conversation, ReplyId: edited.replies[len(edited.replies)-1]})
		if err != nil {
			return fmt.Errorf("regenerate: %w", err)
		}
		h := &listener{}
		if err := h.follow(s.ctx, s.phone, s.conversation, made.GetReply().GetReplyId()); err != nil || !h.completed {
			return errors.Join(err, fmt.Errorf("the regenerated reply: %s", h.ending()))
		}
		s.heard("second, edited", h.reply)
	}
	_, err = s.phone.turns.SelectReply(s.ctx, &turnsv1.SelectReplyRequest{ConversationId: s.conversation, ReplyId: edited.replies[0]})
	return err
}

// cutIn stops a reply at its tenth delta by sending the next turn.
func (s *treeScene) cutIn() error {
	return s.stopped("a long story", 1+10*16, func() error {
		return s.say("never mind", func(in *turnsv1.TurnInput) { in.OnBusy = turnsv1.OnBusy_ON_BUSY_INTERRUPT })
	})
}

// stopped starts a reply that waits at a gate, has it stopped once it stands at an offset, and demands that it says so.
func (s *treeScene) stopped(name string, at uint32, stop func() error) error {
	in := s.input(name)
	h := &listener{}
	var once sync.Once
	begun := make(chan struct{})
	h.watch = func(h *listener) {
		if h.offset == at {
			once.Do(func() { close(begun) })
		}
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() { ended <- h.send(ctx, s.phone, in, nil) }()
	select {
	case <-begun:
	case err := <-ended:
		return errors.Join(err, fmt.Errorf("%s ended at %d before it was stopped", name, h.offset))
	}
	if err := stop(); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	if err := <-ended; err != nil {
		return err
	}
	if h.abandoned.GetReason() != turnsv1.AbandonReason_ABANDON_REASON_CANCELLED {
		return fmt.Errorf("%s was stopped and ended otherwise: %s", name, h.ending())
	}
	s.heard(name, h.reply)
	return nil
}

// callTools stops a reply in the middle of a call, and leaves the calls of another without results.
// Plain messages after both must be answered.
func (s *treeScene) callTools() error {
	written := uint32(1 + len("One moment.") + 1 + 1 + len(`{"q": "call_a", `))
	err := s.stopped("look it up", written, func() error {
		_, err := s.laptop.turns.CancelReply(s.ctx, &turnsv1.CancelReplyRequest{ConversationId: s.conversation,
			Target: &turnsv1.CancelReplyRequest_TurnId{TurnId: s.named("look it up").in.GetTurnId()}})
		return err
	})
	if err != nil {
		return err
	}
	if err := errors.Join(s.say("forget that"), s.say("look it up again")); err != nil {
		return err
	}
	kept, err := s.phone.turns.CancelReply(s.ctx, &turnsv1.CancelReplyRequest{ConversationId: s.conversation,
		Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: s.named("look it up again").replies[0]}})
	if err != nil || kept.GetReply().GetStatus() != turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE {
		return errors.Join(err, errors.New("a reply that waits for tools did not stay as it was when it was cancelled"))
	}
	return s.say("no need")
}

// changeDevice leaves a reply in its middle on one device and goes on with it on the other.
func (s *treeScene) changeDevice() error {
	in := s.input("tell me everything")
	var before listener
	ctx, leave := context.WithCancel(s.ctx)
	defer leave()
	before.watch = func(h *listener) {
		if h.offset == 1+20*16 {
			leave()
		}
	}
	if err := before.send(ctx, s.phone, in, nil); ctx.Err() == nil || s.ctx.Err() != nil {
		return errors.Join(err, errors.New("the first device was to leave in the middle"))
	}
	stream, err := s.laptop.turns.FollowReply(s.ctx, &turnsv1.FollowReplyRequest{ConversationId: s.conversation,
		Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: before.reply}, Offset: before.offset})
	if err != nil {
		return err
	}
	after := &listener{heard: heard{offset: before.offset}}
	after.watch = func(h *listener) {
		if h.reply != "" && h.deltas == 0 {
			_ = s.p.open("everything")
		}
	}
	err = after.read(func() (*turnsv1.Event, error) {
		msg, err := stream.Recv()
		return msg.GetEvent(), err
	})
	if err != nil || !after.completed || len(before.text)+len(after.text) != 40*16 {
		return errors.Join(err, fmt.Errorf("the second device: %s, %d bytes in all", after.ending(), len(before.text)+len(after.text)))
	}
	s.heard("tell me everything", before.reply)
	return nil
}

// sendAllAgain delivers every turn a second time, from the other device: no request more.
func (s *treeScene) sendAllAgain() error {
	before, err := s.p.counts()
	if err != nil {
		return err
	}
	for _, t := range s.turns {
		got, err := s.laptop.turns.SubmitTurn(s.ctx, &turnsv1.SubmitTurnRequest{Input: t.in})
		if err != nil || got.GetResult() != turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED {
			return errors.Join(err, fmt.Errorf("%s sent again: %s", t.name, got.GetResult()))
		}
	}
	after, err := s.p.counts()
	if err == nil && after.Requests != before.Requests {
		err = fmt.Errorf("%d requests for turns that were all answered", after.Requests-before.Requests)
	}
	return err
}
