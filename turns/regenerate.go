package turns

import (
	"context"
	"fmt"

	"github.com/turnd/turnd/internal/instrument"
)

// Regeneration asks for another generation of a user turn's reply.
type Regeneration struct {
	Conversation ConversationID
	// Reply is the one to replace: live, or the newest attempt when none is live.
	Reply ReplyID
	// Options say what to do otherwise than the first time.
	Options Options
	// ExpectGeneration is the user turn's generation as the caller knows it; 0 stands for that of Reply.
	ExpectGeneration int32
}

// Regenerate replaces a reply by one of a new generation, which is a compare-and-set on the turn's generation: if that has
// moved on, the newest reply is the answer, replayed is true, and nothing is made. So a double click is one regenerate.
// Later turns stay where they are, below the reply that was replaced.
func (s *Service) Regenerate(ctx context.Context, caller Caller, g Regeneration) (reply Reply, replayed bool, err error) {
	ctx, span := s.tracer.start(ctx, instrument.SpanRegenerate)
	defer span.End()
	key := KeyOf(caller.Tenant, g.Conversation)
	g.Options = g.Options.normalise()
	if err := g.Options.validateTools("options"); err != nil {
		return Reply{}, false, err
	}
	looked, err := s.look(caller)
	if err != nil {
		return Reply{}, false, err
	}
	defer looked()
	turn, err := s.store.FindTurn(ctx, key, g.Reply.Row())
	if err != nil {
		return Reply{}, false, err
	}
	if turn.ID.Row() == g.Reply.Row() {
		return Reply{}, false, NotFound("reply", "reply_id")
	}
	sender := ctx
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitTime)
	defer cancel()
	a := &arrival{Service: s, sender: sender, caller: caller, key: key, reply: ReplyID{newID()}, call: CallID{newID()}, regenerate: &g, looked: looked,
		Delivery: Delivery{Input: Input{Conversation: g.Conversation, Turn: turn.ID, Content: turn.Content, Options: turn.Options}}}
	defer a.release()
	reply, replayed, err = a.regenerateRounds(ctx)
	s.settled(caller, &a.allowance, !replayed, err)
	return reply, replayed, err
}

func (a *arrival) regenerateRounds(ctx context.Context) (reply Reply, replayed bool, err error) {
	for range submitRounds {
		reply, replayed, done, err := a.regenerateRound(ctx)
		if done || err != nil {
			return reply, replayed, outOfTime(err)
		}
	}
	return Reply{}, false, lostRace()
}

// regenerateRound looks how things stand and acts on it once.
func (a *arrival) regenerateRound(ctx context.Context) (reply Reply, replayed, done bool, err error) {
	st, err := a.lookup(ctx, LookupQuery{Tenant: a.caller.Tenant, Key: a.key, Turn: a.Input.Turn, Cursor: a.regenerate.Reply})
	a.looked()
	switch {
	case err != nil:
		return Reply{}, false, false, err
	case st.Deleted:
		return Reply{}, false, false, ConversationDeleted()
	case st.erased():
		return Reply{}, false, false, TurnDeleted()
	case st.Turn == nil || st.Cursor == nil:
		return Reply{}, false, false, NotFound("reply", "reply_id")
	}
	target := st.target()
	LinkReply(ctx, *target)
	if a.pending != nil && st.Newest.ID == a.reply && st.Newest.Status == StatusInFlight {
		return a.won(ctx, st, *st.Newest).Reply, false, true, nil
	}
	expect := a.regenerate.ExpectGeneration
	if expect == 0 {
		expect = st.Cursor.Generation
	}
	if expect < st.Turn.Generation {
		return *st.Newest, true, true, nil
	}
	if err := a.checkReplaceable(st, *target, expect); err != nil {
		return Reply{}, false, false, err
	}
	if err := a.allow(ctx, a.caller, &a.allowance); err != nil {
		return Reply{}, false, false, err
	}
	sub, done, err := a.claim(ctx, st)
	return sub.Reply, false, done, err
}

// checkReplaceable refuses what can't be regenerated as asked.
func (a *arrival) checkReplaceable(st Standing, target Reply, expect int32) error {
	switch {
	case expect > st.Turn.Generation:
		return invalid("expected_generation", fmt.Sprintf("is ahead of the turn's, which is %d", st.Turn.Generation))
	case target.ID != st.Cursor.ID:
		return &Error{Code: CodeReplyChanged, Field: "reply_id", Problem: "is not the reply that would be replaced; read the turn again",
			Meta: map[string]string{"live_reply_id": target.ID.String()}}
	case target.Status.stoppable():
		return wrongState(target)
	}
	return nil
}

func wrongState(r Reply) error {
	return &Error{Code: CodeWrongState, Field: "reply_id", Problem: "is " + string(r.Status) + "; cancel it or wait for its end",
		Meta: map[string]string{"status": string(r.Status)}}
}
