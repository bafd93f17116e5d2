package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/turnd/turnd/bench/rig"
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

func (l *lab) provider(script object) (*provider, error) {
	p, err := rig.StartProvider(l.ctx, l.dir, fmt.Sprintf("scripted-provider-%d", len(l.procs)), l.bin, script)
	if err != nil {
		return nil, err
	}
	return &provider{process: l.keep(p.Process), rig: p, url: "http://" + p.Addr, ctx: l.ctx}, nil
}

// call makes one control request; 408 of a wait is an error like any other.
func (p *provider) call(method, path string, in, out any) error {
	return p.rig.Control(p.ctx, method, path, in, out)
}

// counts are the provider's own.
type counts struct {
	Requests     int `json:"requests"`
	Generations  int `json:"generations"`
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

func (p *provider) counts() (c counts, err error) {
	return c, p.call(http.MethodGet, "/_scripted/counts", nil, &c)
}

func (p *provider) open(gate string) error {
	return p.call(http.MethodPost, "/_scripted/gates/"+gate+"/open", nil, nil)
}

func (p *provider) arrived(gate string, n int) error {
	return p.call(http.MethodGet, fmt.Sprintf("/_scripted/wait?gate=%s&arrived=%d&timeout=30s", gate, n), nil, nil)
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
