package llm

import (
	"slices"

	"github.com/turnd/turnd/turns"
)

// scopeKey says that an idempotency key is unique for one credential. It is the only scope: a call that was sent under
// another credential always counts as sent without a key.
const scopeKey = "key"

// able is which questions about a response a wire has words for. What an endpoint's idempotency and usage are like is a
// fact about the endpoint, which no wire rules out.
type able struct {
	resume, lookup, cancel, fence bool
	// why is said where an endpoint claims what its wire can't have.
	why string
}

// wires are those that there are, and what each can have at best.
var wires = map[Wire]able{
	WireAnthropicMessages: {why: "a message can't be asked for again, found or stopped on this wire"},
	WireOpenAIChat: {
		lookup: true,
		why:    "a stored completion can be found by its metadata once it is whole, and no more",
	},
	WireOpenAIResponses: {resume: true, lookup: true, cancel: true, fence: true},
	WireGeminiGenerate:  {why: "nothing that is made on this wire can be asked for again, found or stopped"},
	WireGeminiInteractions: {
		resume: true, cancel: true,
		why: "an interaction is known by its own id alone, and it keeps nobody from beginning a second one",
	},
}

// wireNames are the names of all wires, in order.
func wireNames() []string {
	var names []string
	for w := range wires {
		names = append(names, string(w))
	}
	slices.Sort(names)
	return names
}

// MostOf is what an endpoint of a wire can have at best, as far as the wire decides it. Not all of it goes together.
func MostOf(w Wire) turns.Capabilities {
	a := wires[w]
	return turns.Capabilities{Resume: a.resume, Lookup: a.lookup, Cancel: a.cancel, Fence: a.fence}
}

// checkCapabilities refuses what can't be kept. An operator would count on it.
func (e Endpoint) checkCapabilities(path string, report reporter) {
	can, known := wires[e.Wire]
	c := e.Capabilities
	for _, claim := range []struct {
		key           string
		claimed, able bool
	}{
		{"resume", c.Resume, can.resume},
		{"lookup", c.Lookup, can.lookup},
		{"cancel", c.Cancel, can.cancel},
		{"fence", c.Fence, can.fence},
	} {
		if known && claim.claimed && !claim.able {
			report(path+"."+claim.key, "%s can't have it: %s", e.Wire, can.why)
		}
	}
	if c.Cancel && can.cancel && !c.Resume {
		report(path+".cancel", "needs resume: only a response in the background can be stopped, and resume asks for one")
	}
	if c.Resume && can.resume && (c.Lookup && can.lookup || c.Fence && can.fence) {
		report(path+".resume", "can't go with lookup or fence: a response in the background and a conversation of its own are "+
			"two ways to ask for it, and one request takes one of them")
	}
	if c.Idempotency == turns.IdempotencyEnforced && c.Retention == 0 {
		report(path+".retention", "missing; an enforced key is trusted for as long as the endpoint keeps it, so say how long that is")
	}
}
