package probe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

// cutAfter is how many parts of an answer are read before its stream is cut.
const cutAfter = 3

// session is an endpoint with some capabilities, for one step.
type session struct {
	router   *llm.Router
	route    turns.Route
	report   *Report
	patience time.Duration
}

// open makes a copy of the endpoint that has what a step needs, and who speaks to it.
func (c Config) open(needs turns.Capabilities, report *Report) (*session, error) {
	e := c.Endpoint
	e.Capabilities = needs
	router, err := llm.New(llm.Config{
		Endpoints: []llm.Endpoint{e},
		Models:    []llm.Model{{Name: c.Model, Route: []llm.Target{{Endpoint: e.Name, Model: c.Model}}}},
	}, c.Options)
	if err != nil {
		return nil, err
	}
	routes, err := router.Routes("")
	if err != nil {
		router.Close()
		return nil, err
	}
	return &session{router: router, route: routes[0], report: report, patience: c.Patience}, nil
}

// prepare builds a call that has not been sent. Each has an origin of its own, so that none is found in another's place.
func (s *session) prepare(ctx context.Context) (turns.LostCall, error) {
	origin := turns.Origin{Turn: turns.TurnID{UUID: uuid.New()}, Generation: 1}
	if _, err := rand.Read(origin.Conversation[:]); err != nil {
		return turns.LostCall{}, err
	}
	request, err := s.router.Build(s.route, turns.Prompt{
		Options:  turns.Options{MaxOutputTokens: outputMost},
		Messages: []turns.Message{{Role: turns.RoleUser, Content: []turns.Block{turns.Text{Text: question}}}},
		Origin:   origin,
	})
	if err != nil {
		return turns.LostCall{}, err
	}
	lost := turns.LostCall{ID: turns.CallID{UUID: uuid.New()}, Request: request, Origin: origin}
	lost.Key = turns.KeyFor(origin.Turn, origin.Generation, request.Hash)
	lost.Session, err = s.router.Prepare(ctx, callOf(lost))
	if err != nil {
		return turns.LostCall{}, fmt.Errorf("prepare a call: %w", err)
	}
	return lost, nil
}

func callOf(l turns.LostCall) turns.Call {
	return turns.Call{ID: l.ID, Request: l.Request, Key: l.Key, Session: l.Session}
}

// got is what came of a call, or of asking for one.
type got struct {
	responseID string
	text       string
	usage      turns.Usage
	// late says that usage was reported after some content was.
	late bool
	// whole says that it ended with the provider's terminal event, cut that it was ended here.
	whole bool
	cut   bool
	err   *turns.CallError
}

// send makes a call and reads its answer: all of it, or only the beginning.
func (s *session) send(ctx context.Context, call turns.Call, cut bool) got {
	s.report.Calls++
	var g got
	parts := 0
	for d, err := range s.router.Generate(ctx, call) {
		g.take(d, err)
		if _, more := d.(turns.BlockDelta); more {
			parts++
		}
		if cut && parts > cutAfter {
			g.cut = true
			break
		}
	}
	s.report.add(g.usage)
	return g
}

func (g *got) take(d turns.Delta, err error) {
	if err != nil && !errors.As(err, &g.err) {
		g.err = &turns.CallError{Class: turns.ClassTerminal, Cause: err}
	}
	switch d := d.(type) {
	case turns.ResponseStarted:
		g.responseID = d.ResponseID
	case turns.BlockDelta:
		g.text += d.Text
	case turns.UsageReported:
		g.usage, g.late = d.Usage, g.text != ""
	case turns.Finished:
		g.whole = true
	}
}

// failure says how a call failed, without its text.
func (g got) failure() string {
	switch {
	case g.err == nil:
		return "no error"
	case g.err.HTTPStatus != 0:
		return fmt.Sprintf("class %s, status %d, code %q", g.err.Class, g.err.HTTPStatus, g.err.Code)
	}
	return fmt.Sprintf("class %s", g.err.Class)
}

// askPause is the wait before the first repeat of a question; it doubles.
const askPause = 250 * time.Millisecond

// ask asks for the answer of a call until it is there, or it is clear that it will not be.
func (s *session) ask(ctx context.Context, lost turns.LostCall) got {
	until := time.Now().Add(s.patience)
	for pause := askPause; ; pause *= 2 {
		var g got
		for d, err := range s.router.Recover(ctx, lost) {
			g.take(d, err)
		}
		if g.whole || g.err == nil || isFinal(g.err) || time.Now().Add(pause).After(until) {
			return g
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return g
		}
	}
}

// isFinal reports an answer to a question after which asking again does not help.
func isFinal(err *turns.CallError) bool {
	if errors.Is(err, turns.ErrNotThere) {
		return false
	}
	return isOutcome(err) || err.Class == turns.ClassTerminal || err.Class == turns.ClassAlreadyDone
}

// isOutcome reports that the provider said how the call itself had failed.
func isOutcome(err *turns.CallError) bool {
	var outcome *turns.OutcomeError
	return errors.As(err.Cause, &outcome)
}
