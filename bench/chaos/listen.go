package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// place is where a client stands in a reply.
type place struct {
	reply  string
	offset uint32
	// stops are offsets at which it has stood, for coming back to.
	stops []uint32
}

func (p *place) cursor() *turnsv1.Cursor {
	if p.reply == "" {
		return nil
	}
	return &turnsv1.Cursor{ReplyId: p.reply, Offset: p.offset}
}

// outcome is what a stream or a call came to.
type outcome struct {
	kind   string // completed, abandoned, held, lost, refused
	reason string // of abandoned, or of the refusal
	advice turnsv1.RetryAdvice
	wait   time.Duration
	reply  string
}

const (
	endCompleted = "completed"
	endAbandoned = "abandoned"
	endHeld      = "held"
	endLost      = "lost"
	endRefused   = "refused"
)

// patience is the silence after which a client takes a stream for lost; the service says something each second.
const patience = 4 * time.Second

// ear reads one stream and checks its form: no gap, no repeat, one terminal event, which is the last.
type ear struct {
	rec *recorder
	op  *op
	at  *place
	// open says that a reply was introduced; end is the terminal event.
	open bool
	end  *outcome
}

// listen reads a stream to its end. Each event pushes back the time at which leave is called.
func (e *ear) listen(recv func() (*turnsv1.Event, error), leave context.CancelFunc) outcome {
	timer := time.AfterFunc(patience, leave)
	defer timer.Stop()
	defer func() { e.op.done = time.Now() }()
	followed := ""
	defer func() {
		if followed != "" {
			e.rec.follows(followed, -1)
		}
	}()
	for {
		event, err := recv()
		if errors.Is(err, io.EOF) {
			return e.over()
		}
		if err != nil {
			return e.failed(err)
		}
		timer.Reset(patience)
		e.take(event)
		if e.at.reply != followed && e.open {
			if followed != "" {
				e.rec.follows(followed, -1)
			}
			followed = e.at.reply
			e.rec.follows(followed, 1)
		}
	}
}

// over judges a stream that ended with OK.
func (e *ear) over() outcome {
	if e.end == nil {
		e.rec.broke("P7", "request %d (%s of turn %s to w%d): the stream ended with OK and no terminal event", e.op.n, e.op.kind, e.op.turn.id, e.op.worker+1)
		return outcome{kind: endLost}
	}
	e.op.ended = strings.TrimSpace(e.end.kind + " " + e.end.reason)
	return *e.end
}

// failed judges a stream that ended with another status.
func (e *ear) failed(err error) outcome {
	out := e.op.failed(err)
	if e.end != nil {
		e.op.ended = strings.TrimSpace(e.end.kind + " " + e.end.reason)
		return *e.end // the end was told; only its confirmation is lost
	}
	return out
}

// failed notes the error that a request was answered with.
func (o *op) failed(err error) outcome {
	out := refusal(err)
	o.err = status.Code(err).String() + " " + out.reason
	return out
}

// refusal reads an error: who refuses says why and what to do, a connection that is lost says nothing.
func refusal(err error) outcome {
	s := status.Convert(err)
	out := outcome{kind: endLost}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			out.kind, out.reason = endRefused, d.GetReason()
			out.advice = turnsv1.RetryAdvice(turnsv1.RetryAdvice_value["RETRY_ADVICE_"+d.GetMetadata()["retry"]])
		case *errdetails.RetryInfo:
			out.wait = d.GetRetryDelay().AsDuration()
		}
	}
	return out
}

// take checks one event and notes what it says.
func (e *ear) take(event *turnsv1.Event) {
	if e.end != nil {
		e.rec.broke("P7", "request %d (%s of turn %s): %T after the terminal event", e.op.n, e.op.kind, e.op.turn.id, event.GetKind())
	}
	switch k := event.GetKind().(type) {
	case *turnsv1.Event_Accepted:
		e.op.answered, e.op.result = time.Now(), k.Accepted.GetResult()
		e.rec.accept(e.op.turn, k.Accepted.GetTurn())
	case *turnsv1.Event_Restarted:
		*e.at = place{reply: event.GetReplyId()}
	case *turnsv1.Event_Started:
		e.started(event, k.Started)
	case *turnsv1.Event_BlockStarted:
		e.grew(event, []int16{blockStart})
	case *turnsv1.Event_Delta:
		e.grew(event, widen(k.Delta.GetText()))
	case *turnsv1.Event_BlockCompleted:
		e.grew(event, []int16{blockEnd})
	case *turnsv1.Event_Completed:
		e.finish(event, outcome{kind: endCompleted})
	case *turnsv1.Event_Abandoned:
		e.finish(event, outcome{
			kind: endAbandoned, reason: strings.TrimPrefix(k.Abandoned.GetReason().String(), "ABANDON_REASON_"),
			advice: k.Abandoned.GetAdvice(), wait: k.Abandoned.GetRetryDelay().AsDuration(),
		})
	case *turnsv1.Event_Held:
		e.finish(event, outcome{kind: endHeld})
	}
}

func (e *ear) started(event *turnsv1.Event, s *turnsv1.Started) {
	id := event.GetReplyId()
	if e.open && id != e.at.reply {
		e.rec.broke("P7", "request %d: reply %s follows reply %s in one stream, and nothing says so", e.op.n, id, e.at.reply)
	}
	if id != e.at.reply {
		*e.at = place{reply: id}
	}
	if !e.open {
		e.op.reply, e.op.attempt, e.op.generation = id, s.GetAttempt(), s.GetGeneration()
	}
	e.open = true
}

// grew checks that the log goes on where it was.
func (e *ear) grew(event *turnsv1.Event, bytes []int16) {
	id, from, to := event.GetReplyId(), event.GetOffset(), event.GetNextOffset()
	switch {
	case !e.open || id != e.at.reply:
		e.rec.broke("P7", "request %d: bytes of reply %s, which was not introduced", e.op.n, id)
	case from != e.at.offset:
		e.rec.broke("P7", "request %d (%s to w%d): reply %s goes on at offset %d, the event before ended at %d", e.op.n, e.op.kind, e.op.worker+1, id, from, e.at.offset)
	case int(to-from) != len(bytes):
		e.rec.broke("P7", "request %d: an event of reply %s says %d to %d and holds %d", e.op.n, id, from, to, len(bytes))
	}
	e.rec.saw(e.op, id, from, bytes)
	e.at.offset = to
	e.at.stops = append(e.at.stops, to)
}

func (e *ear) finish(event *turnsv1.Event, out outcome) {
	out.reply = event.GetReplyId()
	if !e.open || out.reply != e.at.reply {
		e.rec.broke("P7", "request %d: the end of reply %s, which was not introduced", e.op.n, out.reply)
	}
	length := event.GetOffset()
	if out.kind == endAbandoned {
		length = event.GetAbandoned().GetPartialLength()
	}
	if out.kind == endCompleted && length != e.at.offset {
		e.rec.broke("P7", "request %d: reply %s is complete at %d, and %d was told of it", e.op.n, out.reply, length, e.at.offset)
	}
	e.end = &out
	e.rec.ended(e.op, out.reply, strings.TrimSpace(out.kind+" "+out.reason), length)
}

func widen(text string) []int16 {
	bytes := make([]int16, len(text))
	for i := range len(text) {
		bytes[i] = int16(text[i])
	}
	return bytes
}
