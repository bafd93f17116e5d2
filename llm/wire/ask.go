package wire

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/turnd/turnd/turns"
)

// Bounds of a question: it is small, and nothing is generated for it.
const (
	maxAnswer = 32 << 20
	askTime   = 30 * time.Second
)

// ErrTooLarge says that an answer was larger than any a vendor gives.
var ErrTooLarge = errors.New("the answer is too large")

// Ask makes one request that is answered by a body and no stream, such as a question about a call, and returns the body. A
// failure is a *turns.CallError, classified as that of a call is: an answer that was cut is ClassAmbiguous, though it was
// only a question.
func (c *Client) Ask(ctx context.Context, post Post, vendor Vendor) ([]byte, error) {
	if post.Limits.Total == 0 || post.Limits.Total > askTime {
		post.Limits.Total = askTime
	}
	call := &call{client: c, post: post, vendor: vendor, phase: turns.PhaseNone, accept: "application/json"}
	return call.ask(ctx)
}

func (c *call) ask(parent context.Context) ([]byte, error) {
	c.ctx, c.cancel = context.WithCancelCause(parent)
	defer c.cancel(nil)
	defer c.limit(c.post.Limits.Total, ErrTotalLimit)()
	resp, err := c.send()
	if err != nil {
		return nil, c.failed(err)
	}
	defer func() { _ = resp.Body.Close() }()
	c.phase, c.status, c.requestID = turns.PhaseHeaders, resp.StatusCode, c.idOf(resp.Header)
	if c.trace.wrote.Load() > 1 {
		return nil, c.failed(ErrResent)
	}
	if resp.StatusCode >= 300 {
		return nil, c.refused(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(&body{call: c, r: resp.Body}, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.failed(err)
	case len(answer) > maxAnswer:
		return nil, c.failed(ErrTooLarge)
	}
	return answer, nil
}
