package scripted

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
)

// exchange is one HTTP request on a generating path and its response.
type exchange struct {
	era       *era
	wire      *wire
	req       request
	plan      Plan
	rec       *record
	requestID string

	ids  func(kind string) string
	w    http.ResponseWriter
	ctl  *http.ResponseController
	ctx  context.Context // ends when the client is gone or the era is cut
	sink *sink

	gen     *generation
	voice   voice
	isOwner bool
	headed  bool // the response may start: the log's headers were reached
	wrote   bool // WriteHeader was called
	deltas  int  // read from the log
	unsent  int  // of them, not yet on the socket
	sum     totals
	wrapped bool // the wrap-up was written or held
	closing bool // the terminal event, or the whole body, was written or held
	ended   bool // it is on the socket
}

// run answers the request. What it returns is how the connection ended.
func (x *exchange) run(gen func() (*generation, verdict)) End {
	if x.req.problem != "" {
		return x.refuse(refusal{status: http.StatusBadRequest, message: x.req.problem}, nil)
	}
	if end := x.stepsAt(AtRequestRead); end != "" {
		return end
	}
	g, what, refused := x.begin(gen)
	if refused != nil {
		return x.refuse(*refused, nil)
	}
	if what == verdictConflict {
		message := "this idempotency key was used with another request"
		return x.refuse(refusal{status: http.StatusConflict, message: message}, nil)
	}
	x.gen, x.isOwner = g, what == verdictNew
	defer g.leave(x.isOwner)
	x.voice = x.voiceFor(g, -1)
	if x.req.isDetached() {
		return x.receipt()
	}
	return x.follow()
}

// begin starts the generation, or finds it. Where replies are kept, whatever has a session waits for nobody: it is refused
// while another runs there.
func (x *exchange) begin(gen func() (*generation, verdict)) (*generation, verdict, *refusal) {
	if x.req.keep == nil {
		g, what := gen()
		return g, what, nil
	}
	return x.era.kept.begin(*x.req.keep, x.wire.name, gen)
}

// voiceFor is a voice that says a generation anew, for a client that has read some of it before.
func (x *exchange) voiceFor(g *generation, after int) voice {
	return x.wire.speak(reply{
		id: g.id, created: g.created, model: g.req.model, usage: cmp.Or(g.plan.Usage, UsageFull), includeUsage: x.req.includeUsage,
		stop: g.plan.stopReason(), lines: newLines(x.plan.LineEnd), input: g.req.words, req: g.req, after: after,
	})
}

// follow reads the log to its end and says what it finds.
func (x *exchange) follow() End {
	for at := 0; ; {
		items := x.gen.read(x.ctx, at)
		if x.isOver() {
			return x.left()
		}
		if len(items) == 0 {
			return x.first(x.gen.cutShort(), x.finish)
		}
		for _, it := range items {
			if end := x.play(it); end != "" {
				return end
			}
			at++
			x.reached(at)
		}
	}
}

// isOver says that nobody is there to talk to. A cut is asked for by itself: it ends the log, and may do so before it has
// reached the context of the exchange.
func (x *exchange) isOver() bool { return x.ctx.Err() != nil || x.era.ctx.Err() != nil }

// reached tells the generation how far its owner has come; negative is that it will come no further.
func (x *exchange) reached(at int) {
	if x.gen != nil && x.isOwner {
		x.gen.passed(at)
	}
}

// finish writes what is held back. A log that ends early has nothing more to say.
func (x *exchange) finish() End {
	if x.sink.mode == WriteOnce && x.sink.held.Len() > 0 {
		if x.commit() != nil {
			return x.left()
		}
	}
	return EndFinished
}

// play deals with one item, and with the steps of this exchange's own plan around it.
func (x *exchange) play(it item) End {
	switch it.kind {
	case itemHeaders:
		return x.first(x.ownSteps(AtBeforeHeaders), x.headers, func() End { return x.ownSteps(AtAfterHeaders) })
	case itemBegin:
		return x.first(x.say(x.voice.begin()), func() End { return x.ownSteps(AfterDelta(0)) })
	case itemPiece:
		return x.sayPiece(it.piece)
	case itemWrapUp:
		x.sum = it.totals
		said := x.voice.wrapUp(it.totals)
		x.wrapped = true
		return x.first(x.say(said), func() End { return x.ownSteps(AtBeforeTerminal) })
	case itemTerminal:
		return x.first(x.sayTerminal(), func() End { return x.ownSteps(AtAfterTerminal) })
	case itemFailure:
		return x.fail(it.step)
	default:
		if x.isOwner {
			return x.step(it.step)
		}
		return ""
	}
}

// first returns the first end that is one.
func (x *exchange) first(end End, then ...func() End) End {
	for _, next := range then {
		if end != "" {
			return end
		}
		end = next()
	}
	return end
}

// headers starts the response. With WriteOnce, and when it is not streamed, nothing needs to be written yet.
func (x *exchange) headers() End {
	x.headed = true
	if x.req.stream {
		header := x.w.Header()
		header.Set("Content-Type", "text/event-stream; charset=utf-8")
		header.Set("Cache-Control", "no-cache")
	} else {
		x.w.Header().Set("Content-Type", "application/json")
	}
	if !x.req.stream || x.sink.mode == WriteOnce {
		return ""
	}
	if x.commit() != nil {
		return x.left()
	}
	return ""
}

// commit writes the headers and everything held, so that a fault comes after it on the wire.
func (x *exchange) commit() error {
	if !x.headed {
		return nil
	}
	x.writeHeader(http.StatusOK)
	if err := x.sink.drain(); err != nil {
		return err
	}
	x.wasSent()
	return nil
}

// writeHeader writes the status once and notes it.
func (x *exchange) writeHeader(status int) {
	if x.wrote {
		return
	}
	x.wrote = true
	x.era.book.status(x.rec, status)
	x.w.WriteHeader(status)
}

// wasSent takes note of what reached the socket. Of a reply that is not streamed nothing has until its body was written.
func (x *exchange) wasSent() {
	if !x.req.stream && !x.closing {
		return
	}
	x.ended = x.closing
	if x.unsent > 0 {
		x.era.book.sent(x.rec, x.unsent)
		x.unsent = 0
	}
	if x.wrapped && (x.ended || !x.wire.lateUsage) && x.voice.reports(x.req.stream) {
		x.era.book.reported(x.rec)
	}
}

// say writes a part of the event stream. Only the terminal event counts when the reply is not streamed.
func (x *exchange) say(b []byte) End {
	if !x.req.stream {
		return ""
	}
	return x.write(b)
}

// write hands bytes to the sink and notes what they told the client.
func (x *exchange) write(b []byte) End {
	if x.isOver() {
		return x.left()
	}
	if x.sink.mode != WriteOnce {
		x.writeHeader(http.StatusOK)
	}
	if x.sink.write(b) != nil {
		return x.left()
	}
	if x.sink.mode != WriteOnce {
		x.wasSent()
	}
	return ""
}

// sayPiece says a part of the content. A delta is unsent until it is on the socket.
func (x *exchange) sayPiece(p piece) End {
	said := x.voice.piece(p)
	if !p.isDelta() {
		return x.say(said)
	}
	x.deltas++
	x.unsent++
	return x.first(x.say(said), func() End { return x.ownSteps(AfterDelta(x.deltas)) })
}

// sayTerminal ends the reply: with the terminal event, or with the whole body.
func (x *exchange) sayTerminal() End {
	x.closing = true
	if x.req.stream {
		return x.write(x.voice.terminal())
	}
	body := x.voice.whole(x.sum)
	if !x.wrote {
		x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	return x.write(body)
}

// left ends an exchange whose client is gone, or which was cut. One that has said its terminal event has finished.
func (x *exchange) left() End {
	if x.era.ctx.Err() != nil {
		x.abort()
		return EndClosed
	}
	x.era.book.clientGone(x.rec)
	if x.ended {
		return EndFinished
	}
	return EndClientGone
}

// refuse answers with an error of the vendor's shape.
func (x *exchange) refuse(r refusal, headers map[string]string) End {
	r.requestID = x.requestID
	header := x.w.Header()
	header.Set("Content-Type", "application/json")
	for name, value := range headers {
		if x.wire.bodyHint && http.CanonicalHeaderKey(name) == "Retry-After" {
			r.wait = value
			continue
		}
		header.Set(name, value)
	}
	body := x.wire.refusal(r)
	if r.status == http.StatusNoContent || r.status == http.StatusNotModified {
		body = nil
	} else {
		header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.writeHeader(r.status)
	if _, err := x.w.Write(body); err != nil && body != nil {
		return x.left()
	}
	return EndStatus
}
