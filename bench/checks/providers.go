package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// wireRow is an endpoint of a wire.
type wireRow struct {
	name string
	wire string
	// capabilities as the models file has them.
	capabilities string
	// overloaded is the status by which the vendor says so.
	overloaded int
	// resumes says that a stream that broke off is gone on with.
	resumes bool
}

var wireRows = []wireRow{
	{name: "anthropic.messages", wire: "anthropic.messages", overloaded: 529},
	{name: "openai.chat", wire: "openai.chat", overloaded: 503},
	{name: "openai.responses", wire: "openai.responses", overloaded: 503},
	{name: "responses-background", wire: "openai.responses", overloaded: 503, resumes: true, capabilities: "resume: true, cancel: true"},
	{name: "gemini.generate", wire: "gemini.generate", overloaded: 503},
	{name: "gemini.interactions", wire: "gemini.interactions", overloaded: 503, resumes: true, capabilities: "resume: true, cancel: true"},
}

// faultCell is what goes wrong once.
type faultCell struct {
	name string
	plan func(wireRow, *provider) object
	// ends is how the turn ends, and resumed how where the stream is gone on with, each with the requests that takes.
	ends, resumed string
}

// Everything is cut at mostOutput bytes. A usual reply is shorter, and one that does not end is longer by far.
const (
	mostOutput  = 2048
	usualDeltas = 64
	ownBudget   = 5
	// endlessDeltas is how long the reply that is cut would be.
	endlessDeltas = 8000
)

// askedWords are the words of each prompt: enough for the rest of a request to weigh little beside them.
var askedWords = strings.Repeat("what could go wrong here ", 40)

var faultCells = []faultCell{
	{"whole", nil, "complete/1", ""},
	{"429", at("request_read", object{"do": "status", "status": 429, "headers": object{"retry-after": "1"}}), "complete/2", ""},
	{"overload", func(w wireRow, _ *provider) object {
		return faulty(object{"at": "request_read", "do": "status", "status": w.overloaded})
	}, "complete/2", ""},
	{"error event", at("delta:0", object{"do": "error_event", "error": "overloaded_error"}), "complete/2", ""},
	{"no headers", at("before_headers", object{"do": "reset"}), "ambiguous/1", ""},
	{"reset at 20", at("delta:20", object{"do": "reset"}), "ambiguous/1", "complete/1"},
	{"no terminal", at("before_terminal", object{"do": "close"}), "ambiguous/1", "complete/1"},
	{"endless", func(wireRow, *provider) object {
		return object{"reply": object{"deltas": endlessDeltas, "delta_bytes": 16, "seed": 3}, "pace_ms": 2, "on_client_gone": "stop"}
	}, "complete/1", ""},
	{"not SSE", at("before_headers", object{"do": "status", "status": 200}), "ambiguous/1", ""},
	{"redirect", func(_ wireRow, p *provider) object {
		return faulty(object{"at": "request_read", "do": "status", "status": 307, "headers": object{"Location": p.url + "/v1/elsewhere"}})
	}, "provider_refused/1", ""},
}

// at is a usual reply with one fault.
func at(point string, step object) func(wireRow, *provider) object {
	step["at"] = point
	return func(wireRow, *provider) object { return faulty(step) }
}

func faulty(step object) object {
	return object{"reply": object{"deltas": usualDeltas, "delta_bytes": 16, "seed": 3}, "steps": []object{step}}
}

// expects is how a cell must end.
func (c faultCell) expects(w wireRow) string {
	if w.resumes && c.resumed != "" {
		return c.resumed
	}
	return c.ends
}

// model names a cell's model, at turnd and at the provider: each has a breaker of its own, so that one fault is not the
// next one's matter.
func (c faultCell) model(w wireRow) string {
	return w.name + "-" + strings.ReplaceAll(c.name, " ", "-")
}

// providers plays each fault on each wire, after a whole reply of the same model from which its tokens can be estimated,
// and holds how turns ended, how many requests there were, and the ledger to the provider's own count.
func providers(l *lab) error {
	e, err := l.postgres("providers")
	if err != nil {
		return err
	}
	ps, err := l.vendors()
	if err != nil {
		return err
	}
	models, err := l.write("wires.yaml", wiresFile(ps))
	if err != nil {
		return err
	}
	s, err := l.serve(e, models, "--max-output-bytes", fmt.Sprint(mostOutput), "--backoff", "50ms", "--max-calls", fmt.Sprint(ownBudget))
	if err != nil {
		return err
	}
	table := newWireTable()
	var wires errgroup.Group
	for _, w := range wireRows {
		wires.Go(func() error { return l.playWire(s, w, table) })
	}
	if err := wires.Wait(); err != nil {
		return err
	}
	for _, p := range ps {
		if err := l.until(func() (bool, error) { c, err := p.counts(); return c.Running == 0, err }); err != nil {
			return fmt.Errorf("a generation was not ended: %w", err)
		}
	}
	if err := table.reckon(l, e, ps); err != nil {
		return err
	}
	table.print()
	return table.judge()
}

// vendors starts a provider for each wire, in the order of the rows. They share nothing: a connection that one wire's fault
// closes behind a whole answer is in the pool of its address for a moment more, and may be given to another wire's call.
func (l *lab) vendors() ([]*provider, error) {
	var ps []*provider
	for _, w := range wireRows {
		p, err := l.provider(object{})
		if err != nil {
			return nil, err
		}
		if err := p.rig.Control(l.ctx, http.MethodPut, "/_scripted/script", faultScript(w, p), nil); err != nil {
			return nil, err
		}
		ps = append(ps, p)
	}
	return ps, nil
}

// faultScript has a rule for each cell: the second request to its model meets the fault.
func faultScript(w wireRow, p *provider) object {
	var rules []object
	for _, c := range faultCells {
		if c.plan != nil {
			rules = append(rules, object{"match": object{"model": c.model(w), "nth": 2}, "plan": c.plan(w, p)})
		}
	}
	return object{"rules": append(rules, plain(usualDeltas))}
}

func wiresFile(ps []*provider) string {
	var endpoints, models strings.Builder
	for i, w := range wireRows {
		fmt.Fprintf(&endpoints, "  %s: {wire: %s, base_url: %q, capabilities: {%s}}\n", w.name, w.wire, ps[i].url, w.capabilities)
		for _, c := range faultCells {
			fmt.Fprintf(&models, "  %s: {route: [{endpoint: %s, model: %s}]}\n", c.model(w), w.name, c.model(w))
		}
	}
	return "version: 1\ndefault_model: openai.chat-whole\nendpoints:\n" + endpoints.String() + "models:\n" + models.String()
}

func (l *lab) playWire(s *service, w wireRow, table *wireTable) error {
	for _, c := range faultCells {
		for _, first := range []bool{true, false} {
			if !first && c.plan == nil {
				break
			}
			in := textInput(uuid.NewString(), uuid.NewString(), askedWords, c.model(w))
			var h listener
			if err := h.send(l.ctx, s, in, nil); err != nil {
				return fmt.Errorf("%s, %s: %w", w.name, c.name, err)
			}
			if first && !h.completed {
				return fmt.Errorf("%s, %s: a whole reply did not complete: %s", w.name, c.name, h.ending())
			}
			if !first || c.plan == nil {
				table.note(w, c, in.GetTurnId(), &h)
			}
		}
	}
	return nil
}

// ending says in the words of the ledger how a turn ended.
func (h *heard) ending() string {
	switch {
	case h.completed:
		return "complete"
	case h.held != nil:
		return "held"
	case h.abandoned != nil:
		return strings.ToLower(strings.TrimPrefix(h.abandoned.GetReason().String(), "ABANDON_REASON_"))
	}
	return "unknown"
}

// hasAdvice reports whether an ending without a reply says what the client can do.
func (h *heard) hasAdvice() error {
	if h.abandoned != nil && h.abandoned.GetAdvice() == turnsv1.RetryAdvice_RETRY_ADVICE_UNSPECIFIED {
		return errors.New("a turn was abandoned without advice")
	}
	return nil
}

// records are the provider's calls once all of them have ended.
func (p *provider) records(l *lab) (calls []scripted.Call, err error) {
	err = l.until(func() (bool, error) {
		if calls, err = p.calls(); err != nil {
			return false, err
		}
		for _, c := range calls {
			if c.End == scripted.EndRunning {
				return false, nil
			}
		}
		return true, nil
	})
	return calls, err
}
