package main

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// These tests show that the checker can fail: each gives it something that no service may do.

func scene() (*recorder, *sentTurn) {
	rec := newRecorder()
	return rec, rec.newTurn(&sentTurn{id: "turn", conversation: "conversation"})
}

func started(reply string) *turnsv1.Event {
	return &turnsv1.Event{ReplyId: reply, Kind: &turnsv1.Event_Started{Started: &turnsv1.Started{Attempt: 1}}}
}

func delta(from uint32, text string) *turnsv1.Event {
	return &turnsv1.Event{ReplyId: "a", Offset: from, NextOffset: from + uint32(len(text)), Kind: &turnsv1.Event_Delta{Delta: &turnsv1.Delta{Text: text}}}
}

func completed(reply string, at uint32) *turnsv1.Event {
	return &turnsv1.Event{ReplyId: reply, Offset: at, NextOffset: at, Kind: &turnsv1.Event_Completed{Completed: &turnsv1.Completed{}}}
}

// hear plays one stream that ends with OK.
func hear(rec *recorder, t *sentTurn, events ...*turnsv1.Event) outcome {
	e := ear{rec: rec, op: rec.begin(askTurn, t, 0), at: &place{}}
	return e.listen(func() (*turnsv1.Event, error) {
		if len(events) == 0 {
			return nil, io.EOF
		}
		next := events[0]
		events = events[1:]
		return next, nil
	}, func() {})
}

func demand(t *testing.T, rec *recorder, promises ...string) {
	t.Helper()
	var got []string
	for _, b := range rec.broken {
		got = append(got, b.promise)
	}
	if !slices.Equal(got, promises) {
		t.Errorf("broken are %v instead of %v: %v", got, promises, rec.broken)
	}
}

func TestAStreamAsItShouldBeBreaksNothing(t *testing.T) {
	rec, turn := scene()
	for range 2 {
		if out := hear(rec, turn, started("a"), delta(0, "one "), delta(4, "two"), completed("a", 7)); out.kind != endCompleted {
			t.Errorf("it came to %s", out.kind)
		}
	}
	demand(t, rec)
}

func TestWhatNoStreamMayDoIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		promise string
		events  []*turnsv1.Event
	}{
		"a gap":               {"P7", []*turnsv1.Event{started("a"), delta(2, "x"), completed("a", 3)}},
		"no terminal event":   {"P7", []*turnsv1.Event{started("a"), delta(0, "x")}},
		"an unknown reply":    {"P7", []*turnsv1.Event{started("a"), started("b"), completed("b", 0)}},
		"an end too early":    {"P7", []*turnsv1.Event{started("a"), delta(0, "x"), completed("a", 5)}},
		"two terminal events": {"P7", []*turnsv1.Event{started("a"), completed("a", 0), completed("a", 0)}},
	} {
		rec, turn := scene()
		hear(rec, turn, c.events...)
		if len(rec.broken) == 0 || rec.broken[0].promise != c.promise {
			t.Errorf("%s: broken are %v", name, rec.broken)
		}
	}
}

func TestTwoBytesAtOneOffsetAreNoticed(t *testing.T) {
	rec, turn := scene()
	hear(rec, turn, started("a"), delta(0, "one"), completed("a", 3))
	hear(rec, turn, started("a"), delta(0, "ore"), completed("a", 3))
	demand(t, rec, "P6")
}

func TestACompleteReplyThatIsNoneLaterIsNoticed(t *testing.T) {
	rec, turn := scene()
	hear(rec, turn, started("a"), completed("a", 0))
	hear(rec, turn, started("a"), &turnsv1.Event{ReplyId: "a", Kind: &turnsv1.Event_Abandoned{Abandoned: &turnsv1.Abandoned{Reason: turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED}}})
	demand(t, rec, "P7")
}

func TestOnlyWhatTheTableAllowsBecomesOfAReply(t *testing.T) {
	for _, c := range []struct {
		was, is sampledReply
		bad     bool
	}{
		{sampledReply{Status: "in_flight", Epoch: 1}, sampledReply{Status: "abandoned", Reason: "lease_expired", Epoch: 1}, false},
		{sampledReply{Status: "abandoned", Reason: "lease_expired", Epoch: 1}, sampledReply{Status: "in_flight", Epoch: 2}, false},
		{sampledReply{Status: "abandoned", Reason: "lease_expired", Epoch: 1}, sampledReply{Status: "complete", Epoch: 1}, false},
		{sampledReply{Status: "complete", Epoch: 1}, sampledReply{Status: "abandoned", Reason: "superseded", Epoch: 1}, false},
		{sampledReply{Status: "abandoned", Reason: "lease_expired", Epoch: 1}, sampledReply{Status: "in_flight", Epoch: 1}, true},
		{sampledReply{Status: "abandoned", Reason: "cancelled", Epoch: 1}, sampledReply{Status: "complete", Epoch: 1}, true},
		{sampledReply{Status: "abandoned", Reason: "lease_expired", Epoch: 1}, sampledReply{Status: "abandoned", Reason: "ambiguous", Epoch: 1}, true},
		{sampledReply{Status: "complete", Epoch: 1}, sampledReply{Status: "abandoned", Reason: "cancelled", Epoch: 1}, true},
		{sampledReply{Status: "in_flight", Epoch: 2}, sampledReply{Status: "in_flight", Epoch: 1}, true},
	} {
		if why := illegal(c.was, c.is); (why != "") != c.bad {
			t.Errorf("%s to %s: %q", c.was, c.is, why)
		}
	}
}

// claims makes the evidence of a turn with some replies and what requests were answered, one after the other.
func claims(replies int, answers ...*op) *evidence {
	rec, turn := scene()
	st := &stored{replies: map[string]storedReply{}}
	for i := range replies {
		id := fmt.Sprintf("r%d", i+1)
		st.replies[id] = storedReply{ID: id, Turn: turn.id, Attempt: int32(i + 1), Epoch: 1, Status: "abandoned", Reason: "lease_expired"}
	}
	for i, a := range answers {
		a.kind, a.turn, a.call = askTurn, turn, rec.begun.Add(time.Duration(i)*time.Second)
		if a.reply != "" {
			a.answered = a.call.Add(time.Millisecond)
		}
		rec.ops = append(rec.ops, a)
	}
	return newEvidence(rec, st, nil, &stories{})
}

func TestClaimsThatCouldNotHaveHappenedInOrderAreNoticed(t *testing.T) {
	const (
		fresh    = turnsv1.DeliveryResult_DELIVERY_RESULT_NEW
		retried  = turnsv1.DeliveryResult_DELIVERY_RESULT_RETRIED
		attached = turnsv1.DeliveryResult_DELIVERY_RESULT_ATTACHED
	)
	again := claims(2, &op{result: fresh, reply: "r1"}, &op{result: retried, reply: "r2"})
	again.rec.replies["r1"] = &seenReply{turn: again.rec.turns[0], ends: []told{{at: again.rec.ops[0].answered, event: endCompleted}}}
	for name, c := range map[string]struct {
		e   *evidence
		bad bool
	}{
		"retried after it was complete":   {again, true},
		"new, attached, retried":          {claims(2, &op{result: fresh, reply: "r1"}, &op{result: attached, reply: "r1"}, &op{result: retried, reply: "r2"}), false},
		"a claim whose answer was lost":   {claims(2, &op{result: fresh, reply: "r1"}, &op{}, &op{result: attached, reply: "r2"}), false},
		"new twice":                       {claims(2, &op{result: fresh, reply: "r1"}, &op{result: fresh, reply: "r2"}), true},
		"attached to what was given up":   {claims(2, &op{result: fresh, reply: "r1"}, &op{result: retried, reply: "r2"}, &op{result: attached, reply: "r1"}), true},
		"attached to what nobody claimed": {claims(2, &op{result: fresh, reply: "r1"}, &op{result: attached, reply: "r2"}), true},
		"retried before it was ever new":  {claims(1, &op{result: retried, reply: "r1"}, &op{result: fresh, reply: "r1"}), true},
	} {
		c.e.claimsAreOrdered()
		if (len(c.e.rec.broken) > 0) != c.bad {
			t.Errorf("%s: broken are %v", name, c.e.rec.broken)
		}
	}
}

func TestAReplyThatEndedOverAnOpenCallIsNoticed(t *testing.T) {
	rec, turn := scene()
	end := rec.begun.Add(time.Minute)
	e := newEvidence(rec, &stored{
		replies: map[string]storedReply{"r1": {ID: "r1", Turn: turn.id, Status: "complete", CreateTime: rec.begun, EndTime: &end}},
		calls:   []storedCall{{ID: "c1", Reply: "r1", Turn: turn.id}},
	}, nil, &stories{})
	e.nothingIsStuck()
	e.tokensAreBooked()
	demand(t, rec, "P11", "P12")
}

func TestAReplyMayStandStillForAsLongAsItHasBookedAsWaited(t *testing.T) {
	for waited, promises := range map[time.Duration][]string{10 * time.Second: {"P11"}, time.Minute: nil} {
		rec, turn := scene()
		end := rec.begun.Add(unmade + 30*time.Second)
		e := newEvidence(rec, &stored{replies: map[string]storedReply{"r1": {
			ID: "r1", Turn: turn.id, Status: "abandoned", CreateTime: rec.begun, EndTime: &end, WaitedUs: waited.Microseconds()}}}, nil, &stories{})
		e.nothingIsStuck()
		demand(t, rec, promises...)
	}
}
