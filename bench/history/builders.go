package main

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/turnd/turnd/bench/history/arrays"
	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/gemini/interactions"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/openai/responses"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// subject is one of the service's builders, towards one endpoint.
type subject struct {
	wire    arrays.Wire
	name    string
	builder turns.Builder
	route   turns.Route
}

// subjects are the builders of all wires, and of each the ways in which its endpoints differ.
func subjects() (all []subject) {
	adapters := []llm.Adapter{anthropic.Adapter(), openai.Adapter(), responses.Adapter(), gemini.Adapter(), interactions.Adapter()}
	http := wire.NewClient(wire.Options{}) // no call is made
	for i, a := range adapters {
		for variant := range 2 {
			dialect := llm.DialectVendor
			if variant == 1 && a.Wire == llm.WireOpenAIChat {
				dialect = llm.DialectCompatible
			}
			s := subject{wire: arrays.Wires[i], name: fmt.Sprintf("%s.%d", a.Wire, variant),
				builder: a.Open(http, llm.Endpoint{Name: "e", Wire: a.Wire, BaseURL: "http://127.0.0.1:1", Dialect: dialect}),
				route:   turns.Route{Model: "m", Endpoint: "e", Provider: a.Provider, ProviderModel: models[0], Wire: string(a.Wire)}}
			if variant == 1 {
				s.route.Capabilities = turns.Capabilities{Resume: a.Wire != llm.WireOpenAIChat, Lookup: true}
				s.route.Limits.MaxOutputTokens = 8000
			}
			all = append(all, s)
		}
	}
	return all
}

// origin is what requests are made for.
var origin = turns.Origin{
	Conversation: turns.ConversationKey(uuid.MustParse("0192a1b0-0000-8000-8000-000000000001")),
	Turn:         turns.TurnID{UUID: uuid.MustParse("0192a1b0-0000-7000-8000-000000000002")}, Generation: 1,
}

// build makes the request of a history. A panic is an error like any other, and never a typed one.
func (s subject) build(h *history, w window) (built turns.Built, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	route := s.route
	route.Limits.WindowTokens = w.tokens
	return turns.BuildRequest(s.builder, turns.Question{Path: h.path(), Turn: h.turn, Options: h.optionsFor(s.wire, route.Limits.MaxOutputTokens), Route: route,
		Pinned: w.pinned, Origin: origin})
}
