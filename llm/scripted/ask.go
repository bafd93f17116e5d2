package scripted

import (
	"context"
	"net/http"
	"strconv"
)

// Ask is what a request wants that generates nothing.
type Ask string

// What can be asked.
const (
	// AskRetrieve is for a reply as it is now, AskResume for its stream once more, AskCancel for its end.
	AskRetrieve Ask = "retrieve"
	AskResume   Ask = "resume"
	AskCancel   Ask = "cancel"
	// AskList is for what is known of several replies, AskSession for a place in which replies run.
	AskList    Ask = "list"
	AskSession Ask = "session"
)

// askRoute is where something is asked. The pattern is one of http.ServeMux, its {id} that of a reply or a session.
type askRoute struct {
	pattern string
	wire    string
	ask     Ask
	answer  func(*exchange, question) End
}

// question is a request that only asks.
type question struct {
	*http.Request
	body []byte
	// about is the reply that {id} names; nil if it is not known.
	about *keptReply
}

// askRoutes are all that can be asked, by wire.
var askRoutes = [][]askRoute{responsesAsks, openaiAsks, interactionAsks}

// askHandler serves what generates nothing.
func (s *Server) askHandler() *http.ServeMux {
	mux := http.NewServeMux()
	for _, routes := range askRoutes {
		for _, route := range routes {
			mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) { s.serveAsk(w, r, route) })
		}
	}
	return mux
}

func (s *Server) serveAsk(w http.ResponseWriter, r *http.Request, route askRoute) {
	x := s.newExchange(w, wireNamed(route.wire))
	body, ok := s.admit(x, r)
	if !ok {
		return
	}
	defer x.era.running.Done()
	x.era.book.asked()
	q := question{Request: r, body: body}
	p := x.era.program()
	q.about = x.era.kept.find(route.wire, r.PathValue("id"), p.endpoint, s.options.Now())
	x.ask(q, route)
	x.plan = p.pick(x.req, r.Header.Get("Idempotency-Key")).Plan
	x.sink = &sink{w: x.w, ctl: x.ctl, mode: x.plan.Write}
	x.rec = new(record) // in no book: who only asks leaves no record
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer x.freeOnCut(cancel)()
	x.ctx = ctx
	if x.stepsAt(AtRequestRead) == "" {
		route.answer(x, q)
	}
}

// ask makes of a question what rules are matched with. A retrieval is asked for as a stream by its query, on every wire.
func (x *exchange) ask(q question, route askRoute) {
	if q.about != nil {
		x.req = q.about.gen.req
	}
	x.req.wire, x.req.ask = route.wire, route.ask
	x.req.stream = route.ask == AskRetrieve && q.URL.Query().Get("stream") == "true"
	if x.req.stream {
		x.req.ask = AskResume
	}
}

// resume streams a reply once more, without the events that the client has read.
func (x *exchange) resume(r *keptReply, after int) End {
	x.gen = r.gen
	x.gen.attach()
	defer x.gen.leave(false)
	x.voice = x.voiceFor(x.gen, after)
	return x.follow()
}

// snapshot is a reply as it is now, as the body of an answer.
func (x *exchange) snapshot(g *generation) []byte {
	v := x.voiceFor(g, -1)
	var sum totals
	outcome, failure, items := g.now()
	begun := false
	for _, it := range items {
		switch it.kind {
		case itemBegin:
			begun = true
		case itemPiece:
			v.piece(it.piece)
		case itemWrapUp:
			sum = it.totals
		}
	}
	if s, ok := v.(snapshotter); ok {
		return s.snapshot(sum, outcome, failure, begun)
	}
	return v.whole(sum)
}

// snapshotter is a voice that can say what a reply is that is not whole.
type snapshotter interface {
	snapshot(sum totals, o outcome, failure string, begun bool) []byte
}

// tell answers with a body of the vendor's shape.
func (x *exchange) tell(status int, body []byte) End {
	header := x.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	x.writeHeader(status)
	if _, err := x.w.Write(body); err != nil {
		return x.left()
	}
	return EndFinished
}

// wireNamed returns a wire by its name.
func wireNamed(name string) *wire {
	for i := range wires {
		if wires[i].name == name {
			return &wires[i]
		}
	}
	panic("scripted: no wire " + name)
}

// validateAsk holds a rule for asking to what has an effect: faults, and of a stream alone those in it.
func (r Rule) validateAsk(path string) error {
	if r.Plan.Reply != nil || len(r.Plan.Blocks) > 0 {
		return &FieldError{path + ".plan", "a rule that matches on ask has no reply: the one that is asked for has its own"}
	}
	if r.Plan.hasAccept() {
		return &FieldError{path + ".match", "a rule with accept steps can match on nth alone: no request is read yet"}
	}
	for _, step := range r.Plan.Steps {
		if r.Match.Ask != AskResume && step.At != AtRequestRead {
			return &FieldError{path + ".plan.steps", "what is asked for is no stream: steps can be at request_read alone"}
		}
	}
	return r.Plan.validateStepsWithin(path+".plan", maxDeltas)
}
