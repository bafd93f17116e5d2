package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// Finished is a reply that is over, as it is delivered.
type Finished struct {
	Turn
	ReplyID string `json:"replyId"`
	// End is completed, or abandoned for a Reason.
	End    string `json:"end"`
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text"`
}

// Deliver hands a finished reply on. It returns once that is done, or its context has ended. It can be called again for a
// reply that was delivered, if this process ended in between.
type Deliver func(context.Context, Finished) error

// printTo delivers to a writer, a line each.
func printTo(w io.Writer) Deliver {
	var mu sync.Mutex
	return func(_ context.Context, reply Finished) error {
		line, err := json.Marshal(reply)
		if err != nil {
			return fmt.Errorf("encode a reply: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := w.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("print a reply: %w", err)
		}
		return nil
	}
}

// postTo delivers to a URL, until that accepts. The reply's id tells it what it has had already.
func postTo(url string, client *http.Client) Deliver {
	return func(ctx context.Context, reply Finished) error {
		body, err := json.Marshal(reply)
		if err != nil {
			return fmt.Errorf("encode a reply: %w", err)
		}
		for wait := time.Second; ; wait = min(2*wait, time.Minute) {
			if post(ctx, client, url, reply.ReplyID, body) {
				return nil
			}
			if err := pause(ctx, wait); err != nil {
				return err
			}
		}
	}
}

func post(ctx context.Context, client *http.Client, url, key string, body []byte) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode < http.StatusMultipleChoices
}

// pause waits for a time, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
