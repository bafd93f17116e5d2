package scripted

import (
	"net"
	"net/http"
)

// ownSteps plays this plan's steps at a point, when the log is another call's and holds that call's steps.
func (x *exchange) ownSteps(at Point) End {
	if x.isOwner {
		return ""
	}
	return x.stepsAt(at)
}

func (x *exchange) stepsAt(at Point) End {
	for _, step := range x.plan.Steps {
		if step.At != at {
			continue
		}
		if end := x.step(step); end != "" {
			return end
		}
	}
	return ""
}

// step does what a step says to the connection.
func (x *exchange) step(step Step) End {
	switch step.Do {
	case DoStatus:
		return x.refuse(refusal{status: step.Status, kind: step.Error}, step.Headers)
	case DoErrorEvent:
		return x.fail(step)
	case DoWait:
		return x.wait(step.Gate)
	case DoGarbage, DoComment, DoRepeatTerminal:
		return x.noise(step.Do)
	}
	if x.commit() != nil {
		return x.left()
	}
	switch step.Do {
	case DoReset:
		x.abort()
		return EndReset
	case DoClose:
		x.hangUp(nil)
		return EndClosed
	case DoSilence, DoKeepOpen:
		x.reached(-1)
		<-x.ctx.Done()
		return x.left()
	default:
		return x.endless()
	}
}

// wait holds an exchange that reads another call's log; the owner is held by its generation.
func (x *exchange) wait(gate string) End {
	if await(x.ctx, x.era.book.arrive(gate)) {
		return ""
	}
	return x.left()
}

// fail says the error event. Before any byte of a reply that is not streamed it is a status.
func (x *exchange) fail(step Step) End {
	if !x.req.stream && !x.wrote {
		return x.refuse(refusal{status: x.voice.failureStatus(step.Error), kind: step.Error}, nil)
	}
	if end := x.write(x.voice.failure(step.Error)); end != "" {
		return end
	}
	return x.finish()
}

// noise writes what does not belong to the reply. A comment and a second terminal event mean something in an event stream
// only, and are left out of an answer that is not streamed.
func (x *exchange) noise(do Action) End {
	lines := newLines(x.plan.LineEnd)
	switch {
	case do == DoComment:
		return x.say(lines.comment())
	case do == DoRepeatTerminal:
		return x.say(x.voice.terminal())
	case x.headed:
		return x.write(lines.garbage(x.wire.delta))
	default:
		x.hangUp([]byte("\x00\xff this is not HTTP\r\n\r\n"))
		return EndClosed
	}
}

// endless writes a line that never ends, until the client leaves or stops reading.
func (x *exchange) endless() End {
	x.reached(-1)
	x.sink.mode = WriteEvent
	chunk := make([]byte, 4<<10)
	for i := range chunk {
		chunk[i] = 'x'
	}
	copy(chunk, "data: ")
	for {
		if end := x.write(chunk); end != "" {
			return end
		}
		copy(chunk, "xxxxxx")
	}
}

// lingerer is a TCP connection, or what wraps one.
type lingerer interface{ SetLinger(seconds int) error }

// abort cuts the connection with a TCP reset. Where the connection cannot be had, the HTTP server is asked to cut it.
func (x *exchange) abort() {
	conn, _, err := x.ctl.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	reset(conn)
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(lingerer); ok {
		// A linger of zero makes close send RST instead of FIN. Without it the peer sees a plain close.
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// hangUp closes the connection in good order: last words, the end of a body that has begun, FIN. To an HTTP client a
// body that was cut so is complete.
func (x *exchange) hangUp(last []byte) {
	conn, buffered, err := x.ctl.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if x.headed && x.w.Header().Get("Content-Length") == "" {
		last = append(last, "0\r\n\r\n"...)
	}
	_, _ = buffered.Write(last)
	_ = buffered.Flush()
	_ = conn.Close()
}
