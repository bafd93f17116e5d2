package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// callTime is how long a client waits for the answer to a call that is no stream.
const callTime = 6 * time.Second

// duplicate sends the same turn once more, some time after, to whichever worker, and follows what it gets.
func (c *client) duplicate(ctx context.Context, t *sentTurn) {
	if !sleep(ctx, time.Duration(c.dice(1200))*time.Millisecond) {
		return
	}
	c.rec.count("duplicates_sent")
	var at place
	c.deliver(ctx, t, c.dice(len(c.stubs)), &at)
}

// submit sends a turn by SubmitTurn and returns the reply that was named, if one was.
func (c *client) submit(ctx context.Context, t *sentTurn) (string, int) {
	ctx, cancel := context.WithTimeout(c.outgoing(ctx), callTime)
	defer cancel()
	worker := c.dice(len(c.stubs))
	o := c.rec.begin(askSubmit, t, worker)
	got, err := c.stubs[worker].SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: t.input()})
	o.done = time.Now()
	if err != nil {
		o.failed(err)
		return "", worker
	}
	reply := got.GetReply()
	o.answered, o.result, o.reply = o.done, got.GetResult(), reply.GetReplyId()
	o.attempt, o.generation = reply.GetAttempt(), reply.GetGeneration()
	c.rec.accept(t, got.GetTurn())
	return o.reply, worker
}

// submitAndFollow submits to one worker and follows at another.
func (c *client) submitAndFollow(ctx context.Context, t *sentTurn) {
	reply, worker := c.submit(ctx, t)
	if reply == "" {
		return
	}
	at := place{reply: reply}
	c.follow(ctx, t, (worker+1)%len(c.stubs), &at)
}

// replay follows a reply again from an offset that was seen, long after or right away.
func (c *client) replay(ctx context.Context, t *sentTurn, reply string) {
	at := place{reply: reply}
	c.follow(ctx, t, c.dice(len(c.stubs)), &at)
	if len(at.stops) > 0 {
		from := place{reply: reply, offset: at.stops[c.dice(len(at.stops))]}
		c.follow(ctx, t, c.dice(len(c.stubs)), &from)
	}
}

// alter sends other content under the id of a turn that was accepted, which must be refused.
func (c *client) alter(ctx context.Context, t *sentTurn) {
	if !sleep(ctx, time.Duration(300+c.dice(1500))*time.Millisecond) {
		return
	}
	t.mu.Lock()
	known := t.accepted != nil
	t.mu.Unlock()
	if !known {
		return
	}
	ctx, cancel := context.WithTimeout(c.outgoing(ctx), callTime)
	defer cancel()
	c.rec.count("altered_sent")
	worker := c.dice(len(c.stubs))
	o := c.rec.begin(askAltered, t, worker)
	in := t.input()
	in.Content[0].GetText().Text += " and more"
	_, err := c.stubs[worker].SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
	o.done = time.Now()
	out := refusal(err)
	switch {
	case err == nil:
		c.rec.broke("P2", "turn %s was taken with other content", t.id)
	case out.reason == "TURN_ID_REUSED":
		c.rec.count("altered_refused")
	case out.kind == endRefused && !passing(out):
		c.rec.broke("P2", "turn %s with other content was refused as %s", t.id, out.reason)
	}
}

// passing tells refusals that say nothing about what was asked, only that it can't be answered now.
func passing(o outcome) bool {
	switch o.reason {
	case "STORE_UNAVAILABLE", "IDENTITY_UNAVAILABLE", "DRAINING", "OVERLOADED", "CONFLICT", "PROVIDER_UNAVAILABLE", "INTERNAL":
		return true
	}
	return false
}

// cancel stops the reply of a turn, asking again while no answer comes.
func (c *client) cancel(ctx context.Context, t *sentTurn) {
	if !sleep(ctx, time.Duration(c.dice(2500))*time.Millisecond) {
		return
	}
	t.mu.Lock()
	t.cancelled = t.accepted != nil
	known := t.cancelled
	t.mu.Unlock()
	if !known {
		return
	}
	c.rec.count("cancels_sent")
	for range 10 {
		if c.cancelOnce(ctx, t) || !sleep(ctx, 200*time.Millisecond) {
			return
		}
	}
}

func (c *client) cancelOnce(ctx context.Context, t *sentTurn) bool {
	ctx, cancel := context.WithTimeout(c.outgoing(ctx), callTime)
	defer cancel()
	worker := c.dice(len(c.stubs))
	o := c.rec.begin(askCancel, t, worker)
	got, err := c.stubs[worker].CancelReply(ctx, &turnsv1.CancelReplyRequest{
		ConversationId: t.conversation,
		Target:         &turnsv1.CancelReplyRequest_TurnId{TurnId: t.id},
	})
	o.done = time.Now()
	if err != nil {
		o.failed(err)
		return false
	}
	reply := got.GetReply()
	o.answered, o.reply, o.generation = o.done, reply.GetReplyId(), reply.GetGeneration()
	if reply.GetStatus() == turnsv1.ReplyStatus_REPLY_STATUS_IN_FLIGHT {
		c.rec.broke("P8", "the stop of turn %s was answered with a reply in flight", t.id)
	}
	return true
}

// regenerate asks for another generation in place of a reply.
func (c *client) regenerate(ctx context.Context, t *sentTurn, worker int, reply string) *op {
	ctx, cancel := context.WithTimeout(c.outgoing(ctx), callTime)
	defer cancel()
	o := c.rec.begin(askRegenerate, t, worker)
	got, err := c.stubs[worker].RegenerateReply(ctx, &turnsv1.RegenerateReplyRequest{ConversationId: t.conversation, ReplyId: reply})
	o.done = time.Now()
	if err != nil {
		o.failed(err)
		return o
	}
	made := got.GetReply()
	o.answered, o.reply, o.attempt, o.generation, o.replayed = o.done, made.GetReplyId(), made.GetAttempt(), made.GetGeneration(), got.GetReplayed()
	return o
}

// doubleClick regenerates at two workers at once: one of the two makes a reply, and both name it.
func (c *client) doubleClick(ctx context.Context, t *sentTurn, reply string) {
	c.rec.count("double_clicks")
	first := c.dice(len(c.stubs))
	var clicks [2]*op
	var both sync.WaitGroup
	for i := range clicks {
		both.Go(func() { clicks[i] = c.regenerate(ctx, t, (first+i)%len(c.stubs), reply) })
	}
	both.Wait()
	a, b := clicks[0], clicks[1]
	if a.reply == "" || b.reply == "" {
		return
	}
	if !a.replayed && !b.replayed {
		c.rec.broke("P1", "a double click on reply %s made replies %s and %s", reply, a.reply, b.reply)
	}
}

// probe asks as one tenant for what another has, and for ids that nobody has: both must look the same.
func (c *client) probe(ctx context.Context) {
	other := tenantOne
	if c.tenant == tenantOne {
		other = tenantTwo
	}
	reply, t, ok := c.rec.someReply(other, c.dice)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(c.outgoing(ctx), callTime)
	defer cancel()
	worker := c.dice(len(c.stubs))
	for _, ask := range probes {
		theirs := ask.call(ctx, c.stubs[worker], t.conversation, t.id, reply)
		ids := []string{uuid.NewString(), uuid.NewString(), uuid.NewString()}
		nobodys := ask.call(ctx, c.stubs[worker], ids[0], ids[1], ids[2])
		a, b := status.Convert(theirs), status.Convert(nobodys)
		if refusal(theirs).kind == endLost && theirs != nil || refusal(nobodys).kind == endLost && nobodys != nil || passing(refusal(theirs)) || passing(refusal(nobodys)) {
			continue
		}
		c.rec.count("probes")
		if a.Code() != codes.NotFound || a.Code() != b.Code() || a.Message() != b.Message() || anonymous(a, t.conversation, t.id, reply) != anonymous(b, ids...) {
			c.rec.broke("P13", "%s of another tenant's ids says %s %q, of nobody's ids %s %q", ask.name, a.Code(), a.Message(), b.Code(), b.Message())
		}
	}
}

// anonymous is a status's details as text, with the ids that were asked for taken out.
func anonymous(s *status.Status, ids ...string) string {
	var b strings.Builder
	for _, d := range s.Details() {
		if m, ok := d.(proto.Message); ok {
			data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
			b.Write(data)
		}
	}
	text := b.String()
	for _, id := range ids {
		text = strings.ReplaceAll(text, id, "?")
	}
	return text
}

// probes are the ways to ask for something by its ids.
var probes = []struct {
	name string
	call func(ctx context.Context, s turnsv1.TurnServiceClient, conversation, turn, reply string) error
}{
	{"GetTurn", func(ctx context.Context, s turnsv1.TurnServiceClient, conversation, turn, _ string) error {
		_, err := s.GetTurn(ctx, &turnsv1.GetTurnRequest{ConversationId: conversation, Target: &turnsv1.GetTurnRequest_TurnId{TurnId: turn}})
		return err
	}},
	{"CancelReply", func(ctx context.Context, s turnsv1.TurnServiceClient, conversation, turn, _ string) error {
		_, err := s.CancelReply(ctx, &turnsv1.CancelReplyRequest{ConversationId: conversation, Target: &turnsv1.CancelReplyRequest_TurnId{TurnId: turn}})
		return err
	}},
	{"RegenerateReply", func(ctx context.Context, s turnsv1.TurnServiceClient, conversation, _, reply string) error {
		_, err := s.RegenerateReply(ctx, &turnsv1.RegenerateReplyRequest{ConversationId: conversation, ReplyId: reply})
		return err
	}},
	{"SelectReply", func(ctx context.Context, s turnsv1.TurnServiceClient, conversation, _, reply string) error {
		_, err := s.SelectReply(ctx, &turnsv1.SelectReplyRequest{ConversationId: conversation, ReplyId: reply})
		return err
	}},
	{"ListTurns", func(ctx context.Context, s turnsv1.TurnServiceClient, conversation, turn, _ string) error {
		_, err := s.ListTurns(ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation})
		return err
	}},
	{"FollowReply", func(ctx context.Context, s turnsv1.TurnServiceClient, conversation, _, reply string) error {
		stream, err := s.FollowReply(ctx, &turnsv1.FollowReplyRequest{ConversationId: conversation, Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: reply}})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}},
}
