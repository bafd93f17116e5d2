package main

import (
	"fmt"
	"strings"
)

// object is JSON.
type object = map[string]any

// models are those of the models file, each at an endpoint of its own name: what happens at one does not touch another's
// breaker.
var models = []string{"quick", "slow", "gated", "busy", "down", "cut", "unknown", "away", "killed", "lost", "doubled"}

// modelsFile names the models; prices are those of nobody.
func modelsFile(base string) string {
	var endpoints, routes strings.Builder
	for _, m := range models {
		policy := ""
		if m == "unknown" {
			policy = ", on_ambiguous: hold"
		}
		fmt.Fprintf(&endpoints, "  %s: {wire: openai.chat, base_url: %q, prices: {input: 3, output: 15}%s}\n", m, base, policy)
		fmt.Fprintf(&routes, "  %s: {route: [{endpoint: %s, model: %s}]}\n", m, m, m)
	}
	return "version: 1\ndefault_model: quick\nendpoints:\n" + endpoints.String() + "models:\n" + routes.String()
}

// reply is a plan of some deltas, with steps.
func reply(deltas, pace int, steps ...object) object {
	return object{"reply": object{"deltas": deltas, "delta_bytes": 16, "seed": 1}, "pace_ms": pace, "steps": append([]object{}, steps...)}
}

// script is what the provider plays for each model.
func script() object {
	of := func(model string, plan object) object {
		return object{"name": model, "match": object{"model": model}, "plan": plan}
	}
	waits := func(gate string) object {
		return reply(12, 0, object{"at": "delta:4", "do": "wait", "gate": gate})
	}
	var rules []any
	// Of each two requests to the busy one the first is sent away.
	for nth := 1; nth < 400; nth += 2 {
		rules = append(rules, object{"match": object{"model": "busy", "nth": nth}, "plan": object{"steps": []object{
			{"at": "request_read", "do": "status", "status": 429, "headers": object{"retry-after": "0"}},
		}}})
	}
	return object{"rules": append(rules,
		of("slow", reply(6, 300)),
		of("gated", waits("gated")),
		of("down", object{"steps": []object{{"at": "request_read", "do": "status", "status": 500}}}),
		of("cut", reply(12, 0, object{"at": "delta:6", "do": "reset"})),
		of("unknown", reply(12, 0, object{"at": "before_headers", "do": "reset"})),
		of("away", waits("away")),
		of("killed", waits("killed")),
		of("lost", waits("lost")),
		of("doubled", waits("doubled")),
		object{"name": "quick", "plan": reply(8, 0)},
	)}
}
