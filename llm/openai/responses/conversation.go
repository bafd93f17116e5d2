package responses

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// maxPages bounds how much of a conversation is read, 100 items a page. Answers are far shorter.
const maxPages = 16

// itemPage is a part of what was said in a conversation.
type itemPage struct {
	Data    []output `json:"data"`
	LastID  string   `json:"last_id"`
	HasMore bool     `json:"has_more"`
}

// lookUp gives the answer of a call that was made in a conversation. By the id of the response it has its usage, so where that
// is known it is tried first.
func (c *Client) lookUp(ctx context.Context, lost turns.LostCall, yield func(turns.Delta, error) bool) {
	if lost.ResponseID != "" {
		deltas, err := c.retrieved(ctx, lost, lost.ResponseID)
		if lost.Session == "" || !errors.Is(err, turns.ErrNotThere) {
			give(deltas, err, yield)
			return
		}
	}
	c.lookUpItems(ctx, lost, yield)
}

// lookUpItems gives the answer that a conversation holds. The vendor adds it when the response is completed, and all at once.
func (c *Client) lookUpItems(ctx context.Context, lost turns.LostCall, yield func(turns.Delta, error) bool) {
	said, err := c.newest(ctx, lost)
	if err != nil {
		yield(nil, err)
		return
	}
	if len(said) == 0 {
		yield(nil, wire.Answered(turns.ClassTerminal, turns.ErrNotThere))
		return
	}
	s := &stream{model: lost.Request.Route.ProviderModel, last: -1}
	deltas := []turns.Delta{turns.Responded{HTTPStatus: http.StatusOK}}
	reason := turns.StopReason("")
	for i := range said {
		deltas = s.begin(i, &said[i], deltas)
		deltas = s.finish(&said[i], deltas)
		if said[i].Status == "incomplete" {
			reason = turns.StopLength
		}
	}
	if reason == "" {
		reason = s.stopReason()
	}
	give(append(deltas, turns.Finished{StopReason: reason}), nil, yield)
}

// newest are the items at the end of a conversation that are an answer, in their order: all behind what was sent last.
func (c *Client) newest(ctx context.Context, lost turns.LostCall) (said []output, err error) {
	path := "conversations/" + url.PathEscape(lost.Session) + "/items?order=desc&limit=100"
	after := ""
	for range maxPages {
		var page itemPage
		if err := c.ask(ctx, c.post(http.MethodGet, path+after, nil, lost.Request.Route.Limits), &page); err != nil {
			return nil, err
		}
		for _, o := range page.Data {
			if o.Type == "function_call_output" || o.Type == kindMessage && o.Role != string(turns.RoleAssistant) {
				slices.Reverse(said)
				return said, nil
			}
			said = append(said, o)
		}
		if !page.HasMore || page.LastID == "" {
			slices.Reverse(said)
			return said, nil
		}
		after = "&after=" + url.QueryEscape(page.LastID)
	}
	return nil, wire.Answered(turns.ClassTerminal, errTooManyOut)
}
