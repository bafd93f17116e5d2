package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lines is all that is on record, one thing a line, with times in seconds since the run began.
func (e *evidence) lines() []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, o := range e.rec.ops {
		add("request %d %s turn=%s w%d sent=%s answered=%s over=%s result=%s reply=%s attempt=%d generation=%d replayed=%t ended=%q err=%q", o.n, o.kind, o.turn.id, o.worker+1,
			e.since(&o.call), e.since(&o.answered), e.since(&o.done), strings.TrimPrefix(o.result.String(), "DELIVERY_RESULT_"), o.reply, o.attempt, o.generation, o.replayed, o.ended, o.err)
	}
	for _, r := range e.stored.replies {
		add("reply %s turn=%s attempt=%d generation=%d epoch=%d %s(%s) length=%d settled=%t owner=%s claimed=%s ended=%s", r.ID, r.Turn, r.Attempt, r.Generation,
			r.Epoch, r.Status, r.Reason, r.LogLen, r.Settled, r.Owner, e.since(&r.CreateTime), e.since(r.EndTime))
	}
	for _, c := range e.stored.calls {
		add("row %s reply=%s turn=%s number=%d epoch=%d class=%q phase=%q response=%s tokens=%d+%d %s wasted=%d %s made=%s closed=%s", c.ID, c.Reply, c.Turn, c.Number,
			c.Epoch, c.Class, c.Phase, c.ResponseID, c.Input, c.Output, c.Source, c.Wasted, c.Waste, e.since(&c.CreateTime), e.since(c.EndTime))
	}
	for _, c := range e.journal {
		add("call %d key=%s rule=%s response=%s status=%d deltas=%d/%d tokens=%d+%d reported=%t end=%s accepted=%s ended=%s", c.N, c.IdempotencyKey, c.Rule, c.ResponseID,
			c.Status, c.DeltasSent, c.DeltasGenerated, c.InputTokens, c.OutputTokens, c.UsageReported, c.End, e.since(&c.AcceptedAt), e.since(c.EndedAt))
	}
	for _, w := range e.stored.workers {
		add("worker %s %s dead=%t draining=%t lease_until=%s", w.ID, w.Name, w.Dead, w.Draining, e.since(&w.LeaseUntil))
	}
	return all
}

func (e *evidence) since(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%.3f", t.Sub(e.rec.begun).Seconds())
}

// keepEvidence writes it into the work dir, for whoever wants to find out what happened.
func keepEvidence(dir string, lines []string) error {
	return os.WriteFile(filepath.Join(dir, "evidence.txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}
