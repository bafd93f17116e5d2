package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// takeoverWords say how a reply went on at another worker.
var takeoverWords = map[turnsv1.TakeoverWay]string{
	turnsv1.TakeoverWay_TAKEOVER_WAY_UNSPECIFIED: "it is not known how",
	turnsv1.TakeoverWay_TAKEOVER_WAY_NEXT_CALL:   "the call before had not gone out or was over",
	turnsv1.TakeoverWay_TAKEOVER_WAY_SENT_AGAIN:  "the same request goes out again under the same key",
	turnsv1.TakeoverWay_TAKEOVER_WAY_ASKED:       "the provider is asked what became of its call",
	turnsv1.TakeoverWay_TAKEOVER_WAY_REPLACED:    "nobody can be asked, and another reply takes its place",
	turnsv1.TakeoverWay_TAKEOVER_WAY_CAME_BACK:   "its own worker had been taken for dead, and went on",
}

// printStory prints a turn's story, a line an event, and what it comes to.
func printStory(out io.Writer, s *turnsv1.ExplainTurnResponse) error {
	fmt.Fprintf(out, "turn %s of conversation %s, generation %d\n", s.GetTurnId(), s.GetConversationId(), s.GetGeneration())
	if s.GetTruncated() {
		fmt.Fprintln(out, "CUT: it has more than can be told; earlier replies or calls are left out")
	}
	p := storyPrinter{attempts: map[string]int32{}}
	for _, e := range s.GetEvents() {
		if c := e.GetClaimed(); c != nil {
			p.attempts[e.GetReplyId()] = c.GetAttempt()
		}
		if p.begin.IsZero() && e.GetTime() != nil {
			p.begin = e.GetTime().AsTime()
			fmt.Fprintf(out, "from %s on\n", momentText(e.GetTime()))
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AFTER\tREPLY\tWHAT\tHOW")
	for _, e := range s.GetEvents() {
		p.line(table, e)
	}
	if s.GetWaiting() {
		fmt.Fprintln(table, "now\t-\twaits\tin its conversation's line, for the turns before it")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return printTotals(out, s.GetTotals())
}

// storyPrinter knows when the story begins, and the replies by their number.
type storyPrinter struct {
	begin    time.Time
	attempts map[string]int32
}

func (p storyPrinter) line(w io.Writer, e *turnsv1.TurnEvent) {
	at, reply := "now", "-"
	if e.GetTime() != nil {
		at = sinceText(p.begin, e.GetTime().AsTime())
	}
	if n := p.attempts[e.GetReplyId()]; n != 0 {
		reply = fmt.Sprint(n)
	}
	what, how := p.words(e)
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", at, reply, what, how)
}

func (p storyPrinter) words(e *turnsv1.TurnEvent) (what, how string) {
	switch k := e.GetEvent().(type) {
	case *turnsv1.TurnEvent_Delivered:
		return "delivered", "for the first time"
	case *turnsv1.TurnEvent_Repeated:
		how = "by " + k.Repeated.GetLayer()
		if k.Repeated.GetCount() > 1 {
			how += ", the last at " + sinceText(p.begin, k.Repeated.GetLastTime().AsTime())
		}
		return fmt.Sprintf("delivered again x%d", k.Repeated.GetCount()), how
	case *turnsv1.TurnEvent_Claimed:
		return "claimed", claimWords(e, k.Claimed)
	case *turnsv1.TurnEvent_TakenOver:
		o := k.TakenOver
		return "taken over", fmt.Sprintf("epoch %d, by %s from %s: %s", o.GetEpoch(), workerWords(o.GetToWorkerId(), o.GetToWorkerName()),
			workerWords(o.GetFromWorkerId(), o.GetFromWorkerName()), takeoverWords[o.GetWay()])
	case *turnsv1.TurnEvent_Call:
		return fmt.Sprintf("call %d", k.Call.GetNumber()), callWords(k.Call)
	case *turnsv1.TurnEvent_Held:
		return "held", heldWords(k.Held)
	case *turnsv1.TurnEvent_Settled:
		return "settled", "its last owner said what it knew"
	case *turnsv1.TurnEvent_Ended:
		return endWords(k.Ended)
	}
	return "?", "an event that this build does not know"
}

func claimWords(e *turnsv1.TurnEvent, c *turnsv1.ReplyClaimed) string {
	words := fmt.Sprintf("epoch %d, by %s: reply %s", c.GetEpoch(), workerWords(c.GetWorkerId(), c.GetWorkerName()), e.GetReplyId())
	if c.GetGeneration() > 1 {
		words += fmt.Sprintf(", generation %d", c.GetGeneration())
	}
	if c.GetTraceId() != "" {
		words += ", trace " + c.GetTraceId()
	}
	return words
}

// workerWords names a worker by its label, and by the id that tells one life of it from another.
func workerWords(id, name string) string {
	if name == "" {
		return id
	}
	return fmt.Sprintf("%s (%s)", name, id)
}

func callWords(c *turnsv1.ProviderCall) string {
	words := []string{fmt.Sprintf("%s, to %s for %s", c.GetLayer(), c.GetEndpoint(), c.GetModel()), "epoch " + fmt.Sprint(c.GetEpoch())}
	if c.GetEndTime() == nil {
		words = append(words, "not over")
	} else {
		words = append(words, classOf(c)+" after "+tookOf(c)+" at phase "+orDash(c.GetPhase()))
	}
	if c.GetHttpStatus() != 0 {
		words = append(words, "HTTP "+statusOf(c))
	}
	u := c.GetUsage()
	if c.GetEndTime() != nil {
		words = append(words, fmt.Sprintf("%d tokens in, %d out", u.GetInputTokens(), u.GetOutputTokens()))
	}
	if u.GetSource() == turnsv1.TokenSource_TOKEN_SOURCE_ESTIMATED {
		words[len(words)-1] += " by estimate"
	}
	if u.GetWastedTokens() > 0 {
		words = append(words, fmt.Sprintf("%d wasted: %s", u.GetWastedTokens(), c.GetWasteCause()))
	}
	if u.GetCostMicros() > 0 {
		words = append(words, fmt.Sprintf("cost %d", u.GetCostMicros()))
	}
	return strings.Join(append(words, "key "+c.GetIdempotencyKey()), "; ")
}

func heldWords(h *turnsv1.ReplyHeld) string {
	if h.GetNextLookupTime() == nil {
		return fmt.Sprintf("asked for %d times; nobody is asked any more: decide by `turnd held`", h.GetLookups())
	}
	return fmt.Sprintf("asked for %d times, and again at %s", h.GetLookups(), momentText(h.GetNextLookupTime()))
}

// codeWords says who gave a code: the breaker's is our own, and nothing was sent then.
func codeWords(code string) string {
	if code == "breaker_open" {
		return "the endpoint's breaker was open"
	}
	return "the provider said " + code
}

func endWords(e *turnsv1.ReplyEnded) (what, how string) {
	what = strings.ToLower(strings.TrimPrefix(e.GetStatus().String(), "REPLY_STATUS_"))
	words := []string{}
	if r := e.GetReason(); r != turnsv1.AbandonReason_ABANDON_REASON_UNSPECIFIED {
		words = append(words, "for "+strings.ToLower(strings.TrimPrefix(r.String(), "ABANDON_REASON_")))
	}
	if e.GetProviderCode() != "" {
		words = append(words, codeWords(e.GetProviderCode()))
	}
	u := e.GetUsage()
	words = append(words, fmt.Sprintf("log of %d; %d tokens in, %d out by %s", e.GetLength(),
		u.GetInputTokens(), u.GetOutputTokens(), counted(int64(u.GetProviderCalls()), "call", "calls")))
	if e.GetReplacedBy() != "" {
		words = append(words, "reply "+e.GetReplacedBy()+" took its place")
	}
	return what, strings.Join(words, "; ")
}

func printTotals(out io.Writer, t *turnsv1.TurnTotals) error {
	u := t.GetUsage()
	var wasted []string
	for _, cause := range slices.Sorted(maps.Keys(t.GetWastedTokens())) {
		wasted = append(wasted, fmt.Sprintf("%d %s", t.GetWastedTokens()[cause], cause))
	}
	words := "none wasted"
	if len(wasted) > 0 {
		words = fmt.Sprintf("%d wasted (%s)", u.GetWastedTokens(), strings.Join(wasted, ", "))
	}
	_, err := fmt.Fprintf(out, "in all: %s, %s, %s; %s (%d first, %s) under %s; %d tokens in, %d out, %s; cost %d\n",
		counted(t.GetDeliveries(), "delivery", "deliveries"), counted(int64(t.GetReplies()), "reply", "replies"),
		counted(int64(t.GetTakeovers()), "takeover", "takeovers"), counted(t.GetFirstCalls()+t.GetRetryCalls(), "call", "calls"), t.GetFirstCalls(),
		counted(t.GetRetryCalls(), "retry", "retries"), counted(int64(t.GetIdempotencyKeys()), "idempotency key", "idempotency keys"),
		u.GetInputTokens(), u.GetOutputTokens(), words, u.GetCostMicros())
	return err
}

// counted is a number with its noun.
func counted(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
