package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"
)

// provider is a scripted provider in a process of its own, steered over HTTP.
type provider struct {
	*process
	url  string
	http *http.Client
}

// object is JSON.
type object = map[string]any

func (l *lab) provider(script object) (*provider, error) {
	file := filepath.Join(l.dir, fmt.Sprintf("provider-%d.json", len(l.procs)))
	p, err := l.start("scripted-provider", l.bin, "scripted-provider", "--listen", "127.0.0.1:0", "--ready-file", file)
	if err != nil {
		return nil, err
	}
	r, err := l.awaitReady(p, file)
	if err != nil {
		return nil, err
	}
	pr := &provider{process: p, url: "http://" + r.Listen, http: &http.Client{Timeout: time.Minute}}
	return pr, pr.call(http.MethodPut, "/_scripted/script", script, nil)
}

// call makes one control request; 408 of a wait is an error like any other.
func (p *provider) call(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, p.url+path, body)
	if err != nil {
		return err
	}
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("provider answers %s %s with %d: %s", method, path, res.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
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
