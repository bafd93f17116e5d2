package scripted

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// defaultKept is how long after its end a reply can be asked for.
const defaultKept = 10 * time.Minute

// keeping is what a request says about the keeping of its reply. Wires whose replies can be asked for set it.
type keeping struct {
	// stored replies can be asked for at all.
	stored bool
	// background ones go on without their client and are known from their beginning.
	background bool
	// streamed ones can be read again as a stream.
	streamed bool
	metadata map[string]string
	// session is the conversation that it runs in; empty is none.
	session string
	// input is what the conversation gains besides the reply.
	input []json.RawMessage
}

// keptReply is a reply that can be asked for.
type keptReply struct {
	keeping
	wire  string
	gen   *generation
	bytes int
}

// kept remembers replies by their ids and the sessions they run in, the oldest of each forgotten first.
type kept struct {
	mu       sync.Mutex
	byID     map[string]*keptReply
	order    []*keptReply
	bytes    int
	sessions sessions
}

// begin starts a generation by create, unless its session is taken, and keeps it. It is one step: of two requests in one
// session the second is refused.
func (k *kept) begin(want keeping, wire string, create func() (*generation, verdict)) (*generation, verdict, *refusal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	in, refused := k.sessions.enter(want.session)
	if refused != nil {
		return nil, verdictNew, refused
	}
	g, what := create()
	if what == verdictNew {
		r := &keptReply{keeping: want, wire: wire, gen: g}
		if in != nil {
			in.replies = append(in.replies, r)
		}
		k.remember(r)
	}
	return g, what, nil
}

// remember is called with the mutex held.
func (k *kept) remember(r *keptReply) {
	if k.byID == nil {
		k.byID = make(map[string]*keptReply)
	}
	r.bytes = r.gen.plan.bytes()
	for _, item := range r.input {
		r.bytes += len(item)
	}
	k.byID[r.gen.id] = r
	k.order = append(k.order, r)
	k.bytes += r.bytes
	for len(k.order) > maxStored || k.bytes > maxStoredBytes && len(k.order) > 1 {
		oldest := k.order[0]
		k.order[0] = nil
		k.order = k.order[1:]
		k.bytes -= oldest.bytes
		delete(k.byID, oldest.gen.id)
		k.sessions.forget(oldest)
	}
}

// find returns a reply of a wire by its id, or nil for one that is not known now.
func (k *kept) find(wire, id string, e Endpoint, now time.Time) *keptReply {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.byID[id]; r != nil && r.wire == wire && r.isKnown(e, now) {
		return r
	}
	return nil
}

// list returns the replies of a wire that are known now, the oldest first.
func (k *kept) list(wire string, e Endpoint, now time.Time) (known []*keptReply) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.order {
		if r.wire == wire && r.isKnown(e, now) {
			known = append(known, r)
		}
	}
	return known
}

// isKnown says whether whoever asks learns of the reply. Of one that is no background work only a whole one is kept, and
// it takes the endpoint some time.
func (r *keptReply) isKnown(e Endpoint, now time.Time) bool {
	r.gen.mu.Lock()
	defer r.gen.mu.Unlock()
	since := now.Sub(r.gen.ended)
	switch {
	case !r.stored:
		return false
	case r.gen.outcome == outcomeNone:
		return r.background
	case since >= e.kept():
		return false
	case r.background:
		return true
	}
	return r.gen.outcome == outcomeWhole && since >= e.lookupDelay()
}

// wasSettled says that a reply which is over has been so for long enough to be looked up.
func (r *keptReply) wasSettled(e Endpoint, now time.Time) bool {
	r.gen.mu.Lock()
	defer r.gen.mu.Unlock()
	return now.Sub(r.gen.ended) >= e.lookupDelay()
}

func (e Endpoint) lookupDelay() time.Duration {
	return time.Duration(e.LookupDelayMS) * time.Millisecond
}

func (e Endpoint) kept() time.Duration {
	if e.KeptS == 0 {
		return defaultKept
	}
	return time.Duration(e.KeptS) * time.Second
}

// isDetached says that the answer to the request is a receipt, and its reply is to be asked for.
func (r request) isDetached() bool { return r.keep != nil && r.keep.background && !r.stream }

// receipt answers with what the reply is now, which is not much.
func (x *exchange) receipt() End {
	x.reached(-1)
	return x.tell(http.StatusOK, x.snapshot(x.gen))
}
