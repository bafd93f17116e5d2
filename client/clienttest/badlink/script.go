package badlink

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// answer plays one call of the scenario.
func (s *Stage) answer(part Call) clienttest.Answer {
	return func(c *clienttest.Call) error {
		events, err := s.events(part.Events, c)
		if err != nil {
			return status.Error(codes.OutOfRange, err.Error())
		}
		switch part.End.How {
		case "":
			return clienttest.Play(events...)(c)
		case "cut":
			if err := c.Send(events...); err != nil {
				return err
			}
			return clienttest.Cut()(c)
		case "silence":
			return clienttest.Hang(events...)(c)
		case "down":
			if err := c.Send(events...); err != nil {
				return err
			}
			s.goDown()
			<-c.Done()
			return nil
		case "refused":
			return clienttest.Fail(part.End.status(), events...)(c)
		}
		return status.Errorf(codes.OutOfRange, "the scenario has an unknown end %q", part.End.How)
	}
}

// status is a refusal by turnd, or without a reason one by what lies between.
func (e End) status() error {
	code, ok := codeOf(e.Code)
	if !ok {
		return status.Errorf(codes.OutOfRange, "the scenario has an unknown code %q", e.Code)
	}
	if e.Reason == "" {
		return status.Error(code, "refused on the way")
	}
	return clienttest.Refusal(code, e.Reason, e.Advice, time.Duration(e.DelayMS)*time.Millisecond)
}

func codeOf(name string) (code codes.Code, ok bool) {
	err := code.UnmarshalJSON([]byte(`"` + name + `"`))
	return code, err == nil
}

func (s *Stage) events(parts []Event, c *clienttest.Call) (out []*turnsv1.Event, err error) {
	for _, part := range parts {
		some, err := s.event(part, c)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

func (s *Stage) event(e Event, c *clienttest.Call) ([]*turnsv1.Event, error) {
	one := func(event *turnsv1.Event) ([]*turnsv1.Event, error) { return []*turnsv1.Event{event}, nil }
	delay := time.Duration(e.DelayMS) * time.Millisecond
	advice := turnsv1.RetryAdvice(turnsv1.RetryAdvice_value["RETRY_ADVICE_"+e.Advice])
	switch {
	case e.Accepted != "":
		input := c.Turn.GetInput()
		result := turnsv1.DeliveryResult(turnsv1.DeliveryResult_value["DELIVERY_RESULT_"+e.Accepted])
		return one(clienttest.Accepted(input.GetConversationId(), input.GetTurnId(), result))
	case e.Queued != nil:
		return one(&turnsv1.Event{Kind: &turnsv1.Event_Queued{Queued: &turnsv1.Queued{Position: *e.Queued}}})
	case e.Started != "":
		return one(clienttest.Started(replyID(e.Started), max(1, e.Attempt)))
	case e.Log != "":
		return s.stretch(e, c), nil
	case len(e.Restarted) == 2:
		event := clienttest.Restarted(replyID(e.Restarted[0]), replyID(e.Restarted[1]))
		event.GetRestarted().Continues = e.Continues
		return one(event)
	case e.Completed != "":
		return one(clienttest.Completed(s.log(e.Completed, 0)))
	case e.Abandoned != "":
		reason := turnsv1.AbandonReason(turnsv1.AbandonReason_value["ABANDON_REASON_"+e.Reason])
		return one(clienttest.Abandoned(until(s.log(e.Abandoned, 0), e.To), reason, advice, delay))
	case e.Held != "":
		return one(clienttest.Held(until(s.log(e.Held, 0), e.To), delay))
	case e.Heartbeat != "":
		return one(clienttest.Heartbeat(replyID(e.Heartbeat)))
	}
	return nil, fmt.Errorf("the scenario has an event of no kind: %+v", e)
}

// stretch is a part of a log. Without a beginning of its own it is what the call asks for.
func (s *Stage) stretch(e Event, c *clienttest.Call) []*turnsv1.Event {
	from := c.Follow.GetOffset()
	if cursor := c.Turn.GetCursor(); cursor.GetReplyId() == replyID(e.Log) {
		from = cursor.GetOffset()
	}
	if e.From != nil {
		from = *e.From
	}
	return clienttest.From(until(s.log(e.Log, e.Runes), e.To), from)
}

// log is a whole log. Its deltas have so many runes each; 0 makes one of a block.
func (s *Stage) log(letter string, runes int) (log []*turnsv1.Event) {
	var at uint32
	for i, b := range s.scenario.Logs[letter] {
		kind := turnsv1.BlockKind_BLOCK_KIND_TEXT
		if b.Kind != "" {
			kind = turnsv1.BlockKind(turnsv1.BlockKind_value["BLOCK_KIND_"+strings.ToUpper(b.Kind)])
		}
		events := clienttest.Block(replyID(letter), uint32(i), at, kind, b.Tool, pieces(b.Text, runes)...)
		log = append(log, events...)
		at = log[len(log)-1].GetNextOffset()
	}
	return log
}

func pieces(text string, runes int) (out []string) {
	if runes == 0 {
		return []string{text}
	}
	all := []rune(text)
	for len(all) > 0 {
		n := min(runes, len(all))
		out, all = append(out, string(all[:n])), all[n:]
	}
	return out
}

// until is what of a log lies before an offset, cut inside a delta if need be.
func until(log []*turnsv1.Event, to *uint32) []*turnsv1.Event {
	if to == nil {
		return log
	}
	var out []*turnsv1.Event
	for _, e := range log {
		if e.GetOffset() >= *to {
			break
		}
		if e.GetNextOffset() > *to {
			delta := e.GetDelta()
			delta.Text = delta.GetText()[:*to-e.GetOffset()]
			e.NextOffset = *to
		}
		out = append(out, e)
	}
	return out
}
