package floor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxIdle is more connections than any load has clients, so that none is dialled twice.
const maxIdle = 1 << 14

// Provider is the bare client of a provider.
type Provider struct {
	http    *http.Client
	url     string
	body    string
	readers sync.Pool
}

// NewProvider makes a client of the provider at an address; ask is what each turn says.
func NewProvider(addr, ask string) *Provider {
	body, _ := json.Marshal(map[string]any{ // of strings and numbers alone, which always encode
		"model": "demo", "stream": true, "max_tokens": 4096,
		"messages": []map[string]string{{"role": "user", "content": ask}},
	})
	return &Provider{
		http:    &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxIdle, DisableCompression: true}},
		url:     "http://" + addr + "/v1/messages",
		body:    string(body),
		readers: sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 8<<10) }},
	}
}

// Generate makes one request and hands on the text of each delta, until the last event.
func (p *Provider) Generate(ctx context.Context, each func(string) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, strings.NewReader(p.body))
	if err != nil {
		return err
	}
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answers %s", res.Status)
	}
	in := p.readers.Get().(*bufio.Reader)
	defer p.readers.Put(in)
	in.Reset(res.Body)
	return events(in, each)
}

func events(in *bufio.Reader, each func(string) error) error {
	stopped := false
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) && stopped {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a reply: %w", err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		stopped = stopped || bytes.HasPrefix(data, []byte(`{"type":"message_stop"`))
		text, ok, err := textOf(data)
		if err == nil && ok {
			err = each(text)
		}
		if err != nil {
			return err
		}
	}
}

var (
	delta = []byte(`"type":"text_delta"`)
	field = []byte(`"text":"`)
)

// textOf is the text of a delta. One without an escape, which most are, needs no decoder.
func textOf(data []byte) (text string, ok bool, err error) {
	at := bytes.Index(data, delta)
	if at < 0 {
		return "", false, nil
	}
	if from := bytes.Index(data[at:], field); from >= 0 {
		rest := data[at+from+len(field):]
		if n := bytes.IndexAny(rest, `"\`); n >= 0 && rest[n] == '"' {
			return string(rest[:n]), true, nil
		}
	}
	var event struct {
		Delta struct {
			Text string `json:"text"`
		} `json:"delta"`
	}
	err = json.Unmarshal(data, &event)
	return event.Delta.Text, err == nil, err
}
