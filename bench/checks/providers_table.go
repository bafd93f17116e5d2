package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"text/tabwriter"

	"github.com/turnd/turnd/llm/scripted"
)

// wireTable is what the wires did: a row each, a column a fault, and the ledger beside the provider's count.
type wireTable struct {
	mu    sync.Mutex
	cells map[string]*cellResult // by turn
	sums  map[string]*wireSums   // by wireRow.name
	wrong []error
}

type cellResult struct {
	wire     wireRow
	cell     faultCell
	ending   string
	requests int // by the provider's own count
}

// wireSums are sums over a wire's calls, on the ledger and by the provider.
type wireSums struct {
	reported, estimated, free tokenSums
}

// tokenSums compare tokens of calls of one kind.
type tokenSums struct {
	calls                                   int
	input, output, countedInput, countedOut int
}

func (t *tokenSums) add(p pair) {
	t.calls++
	t.input, t.output = t.input+p.input, t.output+p.output
	t.countedInput, t.countedOut = t.countedInput+p.counted.InputTokens, t.countedOut+p.counted.OutputTokens
}

// off is by how many percent the ledger is off the provider's count.
func off(ledger, counted int) string {
	if counted == 0 {
		return "-"
	}
	return fmt.Sprintf("%+.0f%%", 100*float64(ledger-counted)/float64(counted))
}

func newWireTable() *wireTable {
	t := &wireTable{cells: map[string]*cellResult{}, sums: map[string]*wireSums{}}
	for _, w := range wireRows {
		t.sums[w.name] = &wireSums{}
	}
	return t
}

func (t *wireTable) note(w wireRow, c faultCell, turn string, h *listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells[turn] = &cellResult{wire: w, cell: c, ending: h.ending()}
	whole := usualDeltas * 16
	if c.name == "endless" {
		whole = len(h.text)
	}
	if h.completed && (len(h.text) != whole || len(h.text) == 0 || len(h.text) > mostOutput) {
		t.fail(w, c, fmt.Errorf("a complete reply has %d bytes", len(h.text)))
	}
	if err := h.hasAdvice(); err != nil {
		t.fail(w, c, err)
	}
}

func (t *wireTable) fail(w wireRow, c faultCell, err error) {
	t.wrong = append(t.wrong, fmt.Errorf("%s, %s: %w", w.name, c.name, err))
}

// reckon holds the ledger to the provider's count.
func (t *wireTable) reckon(l *lab, e engine, ps []*provider) error {
	if err := l.until(func() (bool, error) { n, err := e.number(l.ctx, openCalls); return n == 0, err }); err != nil {
		return fmt.Errorf("calls were left open on the ledger: %w", err)
	}
	var calls []scripted.Call
	for _, p := range ps {
		counted, err := p.records(l)
		if err != nil {
			return err
		}
		calls = append(calls, counted...)
	}
	ledger, err := e.ledger(l.ctx)
	if err != nil {
		return err
	}
	all, err := pairs(ledger, calls)
	if err != nil {
		return err
	}
	for _, call := range all {
		t.count(call)
	}
	for _, r := range t.cells {
		if got, want := fmt.Sprintf("%s/%d", r.ending, r.requests), r.cell.expects(r.wire); got != want {
			t.fail(r.wire, r.cell, fmt.Errorf("it ended %s instead of %s", got, want))
		}
		if r.requests > ownBudget {
			t.fail(r.wire, r.cell, errors.New("more requests than the budget has"))
		}
	}
	return nil
}

func (t *wireTable) count(call pair) {
	if r := t.cells[call.turn]; r != nil {
		r.requests++
		t.endless(r, call.counted)
		if call.class == "ok" && call.source != "reported" {
			t.fail(r.wire, r.cell, errors.New("what a whole reply took was reported, and is estimated on the ledger"))
		}
	}
	sums := t.sums[call.endpoint]
	switch call.source {
	case "reported":
		sums.reported.add(call)
		if call.input != call.counted.InputTokens || call.output != call.counted.OutputTokens {
			t.wrong = append(t.wrong, fmt.Errorf("%s: a reported call has %d+%d tokens on the ledger, and the provider counted %d+%d",
				call.model, call.input, call.output, call.counted.InputTokens, call.counted.OutputTokens))
		}
	case "estimated":
		sums.estimated.add(call)
	default:
		sums.free.add(call)
	}
}

// endless demands that a reply which is cut is not made to its end.
func (t *wireTable) endless(r *cellResult, counted scripted.Call) {
	if r.cell.name == "endless" && counted.DeltasGenerated >= endlessDeltas {
		t.fail(r.wire, r.cell, errors.New("the provider was not told to stop"))
	}
}

func (t *wireTable) print() {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer out.Flush()
	fmt.Fprint(out, "how turns ended / requests by the provider's own count\nwire")
	for _, c := range faultCells {
		fmt.Fprint(out, "\t", c.name)
	}
	for _, w := range wireRows {
		fmt.Fprint(out, "\n", w.name)
		for _, c := range faultCells {
			fmt.Fprint(out, "\t", t.shown(w, c))
		}
	}
	fmt.Fprint(out, "\n\ntokens on the ledger / by the provider's own count\n",
		"wire\treported calls\tinput\toutput\testimated calls\tinput\toff\toutput\toff\tcalls without tokens\n")
	for _, w := range wireRows {
		s := t.sums[w.name]
		fmt.Fprintf(out, "%s\t%d\t%d/%d\t%d/%d\t%d\t%d/%d\t%s\t%d/%d\t%s\t%d\n", w.name,
			s.reported.calls, s.reported.input, s.reported.countedInput, s.reported.output, s.reported.countedOut,
			s.estimated.calls, s.estimated.input, s.estimated.countedInput, off(s.estimated.input, s.estimated.countedInput),
			s.estimated.output, s.estimated.countedOut, off(s.estimated.output, s.estimated.countedOut), s.free.calls)
	}
}

func (t *wireTable) shown(w wireRow, c faultCell) string {
	for _, r := range t.cells {
		if r.wire.name == w.name && r.cell.name == c.name {
			return fmt.Sprintf("%s/%d", r.ending, r.requests)
		}
	}
	return "-"
}

// judge prints the figures, or gives what did not hold.
func (t *wireTable) judge() error {
	if len(t.wrong) > 0 {
		return errors.Join(t.wrong...)
	}
	var reported, estimated tokenSums
	for _, s := range t.sums {
		reported.join(s.reported)
		estimated.join(s.estimated)
	}
	figure("wires", len(wireRows))
	figure("cells", len(t.cells))
	figure("reported_calls", reported.calls)
	figure("reported_tokens", reported.input+reported.output)
	figure("estimated_calls", estimated.calls)
	figure("estimated_off_percent", math.Round(100*float64(estimated.input+estimated.output)/float64(estimated.countedInput+estimated.countedOut)-100))
	return nil
}

func (t *tokenSums) join(o tokenSums) {
	t.calls += o.calls
	t.input, t.output = t.input+o.input, t.output+o.output
	t.countedInput, t.countedOut = t.countedInput+o.countedInput, t.countedOut+o.countedOut
}
