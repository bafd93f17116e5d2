package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/turnd/turnd/llm/scripted"
)

// Provider is a scripted provider in a process of its own, steered over HTTP.
type Provider struct {
	*Process
	// Addr is where it listens.
	Addr string
	http *http.Client
}

// StartProvider starts the scripted provider of the binary with a script: a scripted.Script, or what is that as JSON.
func StartProvider(ctx context.Context, dir, name, binary string, script any) (*Provider, error) {
	return StartProviderAt(ctx, dir, name, binary, "127.0.0.1:0", script)
}

// StartProviderAt is StartProvider at an address, such as that of one that has ended.
func StartProviderAt(ctx context.Context, dir, name, binary, listen string, script any) (*Provider, error) {
	file := filepath.Join(dir, name+".json")
	p, err := Start(dir, name, binary, "scripted-provider", "--listen", listen, "--ready-file", file)
	if err != nil {
		return nil, err
	}
	pr := &Provider{Process: p, http: &http.Client{Timeout: time.Minute}}
	r, err := AwaitReady(ctx, p, file)
	if err == nil {
		pr.Addr = r.Listen
		err = pr.Control(ctx, http.MethodPut, "/_scripted/script", script, nil)
	}
	if err != nil {
		_ = p.End(syscall.SIGKILL, time.Second)
		return nil, err
	}
	return pr, nil
}

// Control makes one control request.
func (p *Provider) Control(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+p.Addr+path, body)
	if err != nil {
		return err
	}
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
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

// Calls is the provider's journal, whole.
func (p *Provider) Calls(ctx context.Context) ([]scripted.Call, error) {
	var all []scripted.Call
	for after := 0; ; {
		var page scripted.CallPage
		if err := p.Control(ctx, http.MethodGet, fmt.Sprintf("/_scripted/calls?after=%d", after), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Calls...)
		if !page.More || len(page.Calls) == 0 {
			return all, nil
		}
		after = page.Calls[len(page.Calls)-1].N
	}
}

// Counts are the provider's sums.
func (p *Provider) Counts(ctx context.Context) (c scripted.Counts, err error) {
	return c, p.Control(ctx, http.MethodGet, "/_scripted/counts", nil, &c)
}
