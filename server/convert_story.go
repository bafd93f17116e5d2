package server

import (
	"cmp"
	"slices"
	"strings"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// storyToWire puts what is stored of a turn into one order of time.
func storyToWire(s turns.Story) *turnsv1.ExplainTurnResponse {
	var t telling
	t.add(s.Turn.CreateTime, turns.ReplyID{}, &turnsv1.TurnEvent{Event: &turnsv1.TurnEvent_Delivered{Delivered: &turnsv1.TurnDelivered{}}})
	for _, r := range s.Repeats {
		t.add(r.FirstTime, turns.ReplyID{}, &turnsv1.TurnEvent{Event: &turnsv1.TurnEvent_Repeated{Repeated: &turnsv1.TurnRepeated{
			Layer: string(r.Layer), Count: r.Count, LastTime: timeToWire(r.LastTime)}}})
	}
	for _, r := range s.Replies {
		t.reply(r, s.Takeovers)
	}
	for _, o := range s.Takeovers {
		t.add(o.Time, o.Reply, &turnsv1.TurnEvent{Event: &turnsv1.TurnEvent_TakenOver{TakenOver: takeoverToWire(o)}})
	}
	for _, c := range s.Calls {
		t.add(c.CreateTime, c.Reply, &turnsv1.TurnEvent{Event: &turnsv1.TurnEvent_Call{Call: callToWire(c)}})
	}
	return &turnsv1.ExplainTurnResponse{
		TurnId: idText(s.Turn.ID.UUID), ConversationId: idText(s.Turn.Conversation.UUID), Generation: s.Turn.Generation,
		Waiting: s.Waits, Events: t.inOrder(), Totals: totalsToWire(s), Truncated: s.Truncated,
	}
}

// telling collects what happened.
type telling struct{ events []told }

type told struct {
	at    time.Time
	event *turnsv1.TurnEvent
}

func (t *telling) add(at time.Time, reply turns.ReplyID, e *turnsv1.TurnEvent) {
	e.Time, e.ReplyId = timeToWire(at), idText(reply.UUID)
	t.events = append(t.events, told{at, e})
}

// inOrder is by time. What has no time of its own is how things stand now, so it comes last; what has the same, in the order
// of the wire's list, since one statement may have done it all.
func (t *telling) inOrder() []*turnsv1.TurnEvent {
	slices.SortStableFunc(t.events, func(a, b told) int {
		if a.at.IsZero() || b.at.IsZero() {
			return -a.at.Compare(b.at)
		}
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(rankOf(a.event), rankOf(b.event)))
	})
	events := make([]*turnsv1.TurnEvent, len(t.events))
	for i := range t.events {
		events[i] = t.events[i].event
	}
	return events
}

// rankOf is the number of an event's field.
func rankOf(e *turnsv1.TurnEvent) int {
	m := e.ProtoReflect()
	return int(m.WhichOneof(m.Descriptor().Oneofs().ByName("event")).Number())
}

// reply tells of a reply's claim, and of how it stands or ended.
func (t *telling) reply(r turns.StoryReply, takeovers []turns.ReplyTakeover) {
	claimed := &turnsv1.ReplyClaimed{Attempt: r.Attempt, Generation: r.Generation, Epoch: r.Epoch, WorkerId: idText(r.Owner.UUID),
		WorkerName: r.OwnerName, Model: r.Model, TraceId: traceOf(r.Traceparent)}
	if i := slices.IndexFunc(takeovers, func(o turns.ReplyTakeover) bool { return o.Reply == r.ID }); i >= 0 {
		first := takeovers[i] // the earliest, since they come by epoch
		claimed.Epoch, claimed.WorkerId, claimed.WorkerName = first.Epoch-1, idText(first.From.ID.UUID), first.From.Name
	}
	t.add(r.CreateTime, r.ID, &turnsv1.TurnEvent{Event: &turnsv1.TurnEvent_Claimed{Claimed: claimed}})
	switch r.Status {
	case turns.StatusHeld:
		t.add(time.Time{}, r.ID, &turnsv1.TurnEvent{Event: &turnsv1.TurnEvent_Held{Held: &turnsv1.ReplyHeld{
			Lookups: int32(r.Lookups), NextLookupTime: timeToWire(r.NextLookup)}}})
	case turns.StatusComplete, turns.StatusAbandoned:
		t.add(r.EndTime, r.ID, &turnsv1.TurnEvent{Event: &turnsv1.TurnEvent_Ended{Ended: &turnsv1.ReplyEnded{
			Status: statuses.wire(r.Status), Reason: abandonReasons.wire(r.Reason), ProviderCode: r.ProviderCode, Length: r.Length,
			Usage: usageToWire(r.Usage), ReplacedBy: idText(r.ReplacedBy.UUID)}}})
	}
	if r.SettleTime.After(r.EndTime) && !r.EndTime.IsZero() {
		t.add(r.SettleTime, r.ID, &turnsv1.TurnEvent{Event: &turnsv1.TurnEvent_Settled{Settled: &turnsv1.ReplySettled{}}})
	}
}

func takeoverToWire(o turns.ReplyTakeover) *turnsv1.ReplyTakenOver {
	return &turnsv1.ReplyTakenOver{Epoch: o.Epoch, FromWorkerId: idText(o.From.ID.UUID), FromWorkerName: o.From.Name,
		ToWorkerId: idText(o.To.ID.UUID), ToWorkerName: o.To.Name, Way: takeoverWays.wire(o.Way)}
}

// traceOf is the trace of a span context in the text form of W3C.
func traceOf(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) < 4 {
		return ""
	}
	return parts[1]
}

func totalsToWire(s turns.Story) *turnsv1.TurnTotals {
	out := &turnsv1.TurnTotals{Deliveries: 1, Replies: int32(len(s.Replies)), Takeovers: int32(len(s.Takeovers)), WastedTokens: map[string]int64{}}
	for _, r := range s.Repeats {
		out.Deliveries += r.Count
	}
	var sums turns.Usage
	keys := map[string]bool{}
	for _, c := range s.Calls {
		keys[c.Key] = true
		if c.First {
			out.FirstCalls++
		} else {
			out.RetryCalls++
		}
		sums = sums.Add(c.Usage)
		if c.Usage.Wasted > 0 {
			out.WastedTokens[c.WasteCause] += c.Usage.Wasted
		}
	}
	out.IdempotencyKeys, out.Usage = int32(len(keys)), usageToWire(sums)
	return out
}
