package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/llm/scripted"
)

// provider is a scripted provider in a process of its own, steered over HTTP.
type provider struct {
	*process
	rig *rig.Provider
	url string
	ctx context.Context
}

// object is JSON.
type object = map[string]any

func (l *lab) provider(script object) (*provider, error) { return l.providerAt("127.0.0.1:0", script) }

// providerAt starts a provider at an address, such as that of one that was stopped.
func (l *lab) providerAt(address string, script object) (*provider, error) {
	p, err := rig.StartProviderAt(l.ctx, l.dir, fmt.Sprintf("scripted-provider-%d", len(l.procs)), l.bin, address, script)
	if err != nil {
		return nil, err
	}
	return &provider{process: l.keep(p.Process), rig: p, url: "http://" + p.Addr, ctx: l.ctx}, nil
}

// call makes one control request; 408 of a wait is an error like any other.
func (p *provider) call(method, path string) error {
	return p.rig.Control(p.ctx, method, path, nil, nil)
}

// counts and calls are the provider's own.
func (p *provider) counts() (scripted.Counts, error) { return p.rig.Counts(p.ctx) }

func (p *provider) calls() ([]scripted.Call, error) { return p.rig.Calls(p.ctx) }

func (p *provider) open(gate string) error {
	return p.call(http.MethodPost, "/_scripted/gates/"+gate+"/open")
}

func (p *provider) arrived(gate string, n int) error {
	return p.call(http.MethodGet, fmt.Sprintf("/_scripted/wait?gate=%s&arrived=%d&timeout=30s", gate, n))
}

// gated is a rule for turns whose text matches: a reply of some deltas that stops at a gate in its middle.
func gated(text, gate string, deltas, at int) object {
	return object{"name": gate, "match": object{"text": text}, "plan": object{
		"reply": object{"deltas": deltas, "delta_bytes": 16, "seed": 1},
		"steps": []object{{"at": fmt.Sprintf("delta:%d", at), "do": "wait", "gate": gate}},
	}}
}

// plain is a rule for all turns: a reply without a stop.
func plain(deltas int) object {
	return object{"name": "plain", "plan": object{"reply": object{"deltas": deltas, "delta_bytes": 16, "seed": 2}}}
}
