package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
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

// StartProvider starts the scripted provider of the binary with a script.
func StartProvider(ctx context.Context, dir, binary string, script scripted.Script) (*Provider, error) {
	file := filepath.Join(dir, "provider.json")
	p, err := Start(dir, "provider", binary, "scripted-provider", "--listen", "127.0.0.1:0", "--ready-file", file)
	if err != nil {
		return nil, err
	}
	r, err := AwaitReady(ctx, p, file)
	if err != nil {
		return nil, err
	}
	pr := &Provider{Process: p, Addr: r.Listen, http: &http.Client{Timeout: time.Minute}}
	return pr, pr.Control(ctx, http.MethodPut, "/_scripted/script", script, nil)
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
