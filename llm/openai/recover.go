package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// maxListed bounds how many replies of one turn's generation are looked at: there are as many as calls were made for it.
const maxListed = 20

// completion is a reply that the vendor keeps.
type completion struct {
	ID       string            `json:"id"`
	Created  int64             `json:"created"` // seconds of Unix time
	Choices  []wholeChoice     `json:"choices"`
	Usage    *usage            `json:"usage"`
	Metadata map[string]string `json:"metadata"`
}

// wholeChoice has the whole message where a chunk's choice has a delta of it; the fields are the same.
type wholeChoice struct {
	Index        int    `json:"index"`
	Message      delta  `json:"message"`
	FinishReason string `json:"finish_reason"`
}

// isWhole reports whether the reply came to its end.
func (c *completion) isWhole() bool { return len(c.Choices) > 0 && c.Choices[0].FinishReason != "" }

// Recover implements turns.Recoverer's method for this endpoint. The reply is found by its id, or, where that never came, by
// whose it is: the newest to the generation, since the call that is lost is the last one that was made for it. One that was
// begun before the call is an earlier call's, which has a row of its own in the ledger.
func (c *Client) Recover(ctx context.Context, lost turns.LostCall) iter.Seq2[turns.Delta, error] {
	return func(yield func(turns.Delta, error) bool) {
		deltas, err := c.recover(ctx, lost)
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

func (c *Client) recover(ctx context.Context, lost turns.LostCall) ([]turns.Delta, error) {
	if !lost.Request.Route.Capabilities.Lookup {
		return nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseNone, Cause: errNotKept}
	}
	id, limits := lost.ResponseID, lost.Request.Route.Limits
	if id == "" {
		var err error
		if id, err = c.find(ctx, lost, limits); err != nil {
			return nil, err
		}
	}
	kept, err := c.get(ctx, id, limits)
	switch {
	case err != nil:
		return nil, err
	case !kept.isWhole():
		return nil, notThere()
	}
	return kept.deltas(lost.Request.Route.ProviderModel)
}

// errNotKept says that an endpoint was not asked to keep its replies.
var errNotKept = errors.New("the endpoint keeps no replies")

func notThere() *turns.CallError {
	return &turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseDone, HTTPStatus: http.StatusNotFound, Cause: turns.ErrNotThere}
}

// clockSkew is how far a vendor's clock may be behind ours.
const clockSkew = 30 * time.Second

// callName is the name in a reply's metadata of the call that it answers.
const callName = "turnd_call"

// metadataEnd is how the body of a request with metadata ends.
var metadataEnd = []byte(`"}}`)

// named is the body of a call, with the call's id in its metadata where the reply is to be found by that: several calls for
// one generation have the same origin. It is added when the call is sent, so that what is built stays the same for each.
// Where the endpoint enforces keys the bytes must stay the same too.
func named(call turns.Call) []byte {
	body, caps := call.Request.Body, call.Request.Route.Capabilities
	if !caps.Lookup || caps.Idempotency == turns.IdempotencyEnforced || call.ID == (turns.CallID{}) ||
		!bytes.HasSuffix(body, metadataEnd) || !bytes.Contains(body, []byte(`,"metadata":{"turnd_`)) {
		return body
	}
	out := make([]byte, 0, len(body)+64)
	out = append(out, body[:len(body)-2]...)
	return append(out, `,"`+callName+`":"`+call.ID.String()+`"}}`...)
}

// find looks for a whole reply to a turn's generation. Servers exist that neither filter nor sort, so what is listed is
// looked at.
func (c *Client) find(ctx context.Context, lost turns.LostCall, limits turns.Limits) (id string, err error) {
	want := wire.Metadata(lost.Origin)
	if want == nil {
		return "", notThere()
	}
	query := url.Values{"limit": {strconv.Itoa(maxListed)}, "order": {"desc"}}
	for name, value := range want {
		query.Set("metadata["+name+"]", value)
	}
	var list struct {
		Data []completion `json:"data"`
	}
	if err := c.ask(ctx, c.url+"?"+query.Encode(), limits, &list); err != nil {
		return "", err
	}
	newest := int64(-1)
	if lost.Age > 0 {
		newest = time.Now().Add(-lost.Age - clockSkew).Unix()
	}
	for i := range list.Data {
		reply := &list.Data[i]
		whose, ok := wire.OriginOf(reply.Metadata)
		if named := reply.Metadata[callName]; named != "" && lost.ID != (turns.CallID{}) && named != lost.ID.String() {
			continue
		}
		if ok && whose == lost.Origin && reply.isWhole() && reply.ID != "" && reply.Created > newest {
			id, newest = reply.ID, reply.Created
		}
	}
	if id == "" {
		return "", notThere()
	}
	return id, nil
}

// get asks for one reply. That there is none of this id is turns.ErrNotThere.
func (c *Client) get(ctx context.Context, id string, limits turns.Limits) (*completion, error) {
	var kept completion
	err := c.ask(ctx, c.url+"/"+url.PathEscape(id), limits, &kept)
	var refused *turns.CallError
	if errors.As(err, &refused) && refused.HTTPStatus == http.StatusNotFound {
		return nil, notThere()
	}
	if err != nil {
		return nil, err
	}
	return &kept, nil
}

func (c *Client) ask(ctx context.Context, target string, limits turns.Limits, into any) error {
	answer, err := c.http.Ask(ctx, wire.Post{Method: http.MethodGet, URL: target, Header: c.header, Limits: limits}, vendor(""))
	if err != nil {
		return err
	}
	if json.Unmarshal(answer, into) != nil {
		return &turns.CallError{Class: turns.ClassAmbiguous, Phase: turns.PhaseBody, HTTPStatus: http.StatusOK, Cause: wire.ErrMalformed}
	}
	return nil
}

// deltas is a kept reply as its stream would have given it, but for where its text is cut: it is read as a stream of one
// chunk.
func (c *completion) deltas(model string) ([]turns.Delta, error) {
	s, whole := &stream{model: model}, c.Choices[0]
	for i := range whole.Message.ToolCalls {
		whole.Message.ToolCalls[i].Index = &i // a message has them in a row, and calls without ids are told apart by it
	}
	out := s.start(c.ID, []turns.Delta{turns.Responded{HTTPStatus: http.StatusOK}})
	out, err := s.choice(&choice{Delta: whole.Message, FinishReason: whole.FinishReason}, out)
	if err == nil {
		out, _, err = s.done(s.report(c.Usage, out))
	}
	var broke *wire.EventError
	switch {
	case errors.As(err, &broke):
		failed := &turns.CallError{Class: broke.Verdict.Class, Phase: turns.PhaseDone, HTTPStatus: http.StatusOK, Code: broke.Verdict.Word}
		return nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseDone, HTTPStatus: http.StatusOK, Cause: &turns.OutcomeError{Call: failed}}
	case err != nil:
		return nil, &turns.CallError{Class: turns.ClassTerminal, Phase: turns.PhaseDone, HTTPStatus: http.StatusOK, Cause: wire.ErrMalformed}
	}
	return out, nil
}

// OriginOf implements turns.Recoverer's method for this endpoint.
func (c *Client) OriginOf(ctx context.Context, responseID string) (turns.Origin, error) {
	kept, err := c.get(ctx, responseID, turns.Limits{})
	if err != nil {
		return turns.Origin{}, err
	}
	origin, ok := wire.OriginOf(kept.Metadata)
	if !ok {
		return turns.Origin{}, notThere()
	}
	return origin, nil
}
