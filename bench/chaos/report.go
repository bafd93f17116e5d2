package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// shown bounds how many breaches of one promise are printed.
const shown = 8

// promises counts what was broken, by promise.
func (r *result) promises() map[string]int {
	n := map[string]int{}
	for _, b := range r.broken {
		n[b.promise]++
	}
	return n
}

// failure is one line that says what did not hold, empty if all did.
func (r *result) failure() string {
	if len(r.broken) == 0 {
		return ""
	}
	return fmt.Sprintf("seed %d: promises broken: %s", r.seed, pairs(r.promises()))
}

// showBroken prints the seed, the timeline and the evidence of each broken promise.
func (r *result) showBroken(begun time.Time) {
	fmt.Printf("--- seed %d, timeline\n%s\n", r.seed, strings.Join(r.timeline, "\n"))
	count := map[string]int{}
	slices.SortStableFunc(r.broken, func(a, b breach) int { return strings.Compare(a.promise, b.promise) })
	for _, b := range r.broken {
		if count[b.promise]++; count[b.promise] <= shown {
			fmt.Printf("--- broken %s, seen at %.2fs: %s\n", b.promise, b.at.Sub(begun).Seconds(), b.what)
		}
	}
}

// show prints the figures of one run.
func (r *result) show() {
	fmt.Printf("seed %d: faults: %s\n", r.seed, pairs(r.struck))
	fmt.Printf("seed %d: turns ended: %s\n", r.seed, pairs(r.endings))
	fmt.Printf("seed %d: clients: %s\n", r.seed, pairs(r.figures))
	fmt.Printf("seed %d: tokens wasted: %s\n", r.seed, pairs(r.wasted))
}

// figures prints the figures of the verdict.
func (r *result) verdict() {
	total := 0
	for _, n := range r.struck {
		total += n
	}
	var wasted int64
	for _, n := range r.wasted {
		wasted += n
	}
	for _, f := range []struct {
		name  string
		value any
	}{
		{"seed", r.seed}, {"promises_broken", len(r.broken)}, {"faults", total}, {"kinds", len(r.struck)}, {"faults_in_flight", r.caught},
		{"turns", r.turns}, {"duplicates_sent", r.figures["duplicates_sent"]}, {"provider_requests", r.requests},
		{"generations", r.generated}, {"tokens_wasted", wasted}, {"samples", r.samples}, {"histories", r.histories},
		{"histories_undecided", r.undecided},
	} {
		fmt.Printf("figure %s=%v\n", f.name, f.value)
	}
}

// pairs is a map in one line.
func pairs[V any](m map[string]V) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		name := strings.ReplaceAll(k, " ", "_")
		if name == "" {
			name = "open"
		}
		parts = append(parts, fmt.Sprintf("%s=%v", name, m[k]))
	}
	return strings.Join(parts, " ")
}

// keep writes all that is known into the work dir, for whoever wants to find out what happened.
func (e *evidence) keep(dir string) error {
	var b strings.Builder
	since := func(t time.Time) string {
		if t.IsZero() {
			return "-"
		}
		return fmt.Sprintf("%.3f", t.Sub(e.rec.begun).Seconds())
	}
	for _, o := range e.rec.ops {
		fmt.Fprintf(&b, "request %d %s turn=%s w%d sent=%s answered=%s over=%s result=%s reply=%s attempt=%d generation=%d replayed=%t ended=%q err=%q\n", o.n, o.kind, o.turn.id,
			o.worker+1, since(o.call), since(o.answered), since(o.done), o.result, o.reply, o.attempt, o.generation, o.replayed, o.ended, o.err)
	}
	for _, r := range e.stored.replies {
		end := time.Time{}
		if r.EndTime != nil {
			end = *r.EndTime
		}
		fmt.Fprintf(&b, "reply %s turn=%s attempt=%d generation=%d epoch=%d %s(%s) length=%d settled=%t owner=%s claimed=%s ended=%s\n", r.ID, r.Turn, r.Attempt, r.Generation,
			r.Epoch, r.Status, r.Reason, r.LogLen, r.Settled, r.Owner, since(r.CreateTime), since(end))
	}
	for _, c := range e.stored.calls {
		end := time.Time{}
		if c.EndTime != nil {
			end = *c.EndTime
		}
		fmt.Fprintf(&b, "row %s reply=%s turn=%s number=%d epoch=%d class=%q phase=%q response=%s tokens=%d+%d %s wasted=%d %s made=%s closed=%s\n", c.ID, c.Reply, c.Turn, c.Number,
			c.Epoch, c.Class, c.Phase, c.ResponseID, c.Input, c.Output, c.Source, c.Wasted, c.Waste, since(c.CreateTime), since(end))
	}
	for _, c := range e.journal {
		end := time.Time{}
		if c.EndedAt != nil {
			end = *c.EndedAt
		}
		fmt.Fprintf(&b, "call %d key=%s rule=%s response=%s status=%d deltas=%d/%d tokens=%d+%d reported=%t end=%s accepted=%s ended=%s\n", c.N, c.IdempotencyKey, c.Rule, c.ResponseID,
			c.Status, c.DeltasSent, c.DeltasGenerated, c.InputTokens, c.OutputTokens, c.UsageReported, c.End, since(c.AcceptedAt), since(end))
	}
	for _, w := range e.stored.workers {
		fmt.Fprintf(&b, "worker %s %s dead=%t draining=%t lease_until=%s\n", w.ID, w.Name, w.Dead, w.Draining, since(w.LeaseUntil))
	}
	return os.WriteFile(filepath.Join(dir, "evidence.txt"), []byte(b.String()), 0o600)
}
