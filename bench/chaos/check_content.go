package main

import (
	"slices"
	"strings"
	"time"

	"github.com/turnd/turnd/llm/scripted"
)

// streamedIsStored is P6: what anybody saw of a reply is stored, and what is stored is what the provider said.
func (e *evidence) streamedIsStored() {
	for id, r := range e.stored.replies {
		log, err := r.log()
		if err != nil {
			e.rec.broke("P6", "%v", err)
			continue
		}
		if r.Status != "in_flight" && int64(len(log)) != r.LogLen {
			e.rec.broke("P6", "reply %s is stored with %d bytes and says %d", id, len(log), r.LogLen)
		}
		e.agrees(r, log)
		if r.Status == "complete" || r.Reason == "superseded" {
			e.isWhole(r, log)
		} else {
			e.isPrefix(r, log)
		}
	}
}

// agrees compares what is stored with what was seen. What a dead worker had told and not stored may be missing.
func (e *evidence) agrees(r storedReply, log []int16) {
	seen := e.rec.replies[r.ID]
	if seen == nil {
		return
	}
	for at, b := range seen.log[:min(len(seen.log), len(log))] {
		if b != unseen && b != log[at] {
			e.rec.broke("P6", "reply %s: request %d saw %q at offset %d, where %q is stored", r.ID, seen.by[at], show(b), at, show(log[at]))
			return
		}
	}
	if len(seen.log) > len(log) && (r.Status == "complete" || r.Reason == "superseded" || r.Settled) {
		e.rec.broke("P6", "reply %s is %s(%s) with %d bytes, request %d saw %d", r.ID, r.Status, r.Reason, len(log), seen.by[len(seen.log)-1], len(seen.log))
	}
}

// isWhole demands the text of the call that the reply's last row names.
func (e *evidence) isWhole(r storedReply, log []int16) {
	rows := e.rowsOf[r.ID]
	if len(rows) == 0 {
		return // broken already
	}
	call, ok := e.byResponse[rows[len(rows)-1].ResponseID]
	if !ok {
		e.rec.broke("P6", "reply %s is complete, and the provider knows no call with the response id of its row", r.ID)
		return
	}
	if want := e.said(call); !slices.Equal(log, want) {
		e.rec.broke("P6", "reply %s is complete with %d bytes, the provider's call %d (%s) said %d others", r.ID, len(log), call.N, call.Rule, len(want))
	}
}

// said is the log of what a call says when nothing stops it.
func (e *evidence) said(c scripted.Call) []int16 {
	return append(append([]int16{blockStart}, widen(e.stories.text[c.Rule])...), blockEnd)
}

// isPrefix demands the beginning of what one of the turn's calls said.
func (e *evidence) isPrefix(r storedReply, log []int16) {
	if len(log) == 0 {
		return
	}
	for _, row := range e.rowsOf[r.ID] {
		for _, c := range e.callsOf(row) {
			said := e.said(c)
			if len(log) <= len(said) && slices.Equal(log, said[:len(log)]) || cutShort(log, said) {
				return
			}
		}
	}
	e.rec.broke("P6", "reply %s holds %d bytes that are the beginning of nothing the provider said for it", r.ID, len(log))
}

// cutShort tells a log whose open block was closed where it was cut.
func cutShort(log, said []int16) bool {
	n := len(log) - 1
	return log[n] == blockEnd && n <= len(said) && slices.Equal(log[:n], said[:n])
}

// callsOf are the calls of the journal that a row can stand for.
func (e *evidence) callsOf(row storedCall) []scripted.Call {
	if c, ok := e.byResponse[row.ResponseID]; ok {
		return []scripted.Call{c}
	}
	var calls []scripted.Call
	for _, c := range e.journal {
		if c.IdempotencyKey == row.Key {
			calls = append(calls, c)
		}
	}
	return calls
}

// paidIsKept is P10: what was read whole is whole in store, and what the provider said whole to a worker in no trouble
// was read.
func (e *evidence) paidIsKept() {
	for _, row := range e.stored.calls {
		r := e.stored.replies[row.Reply]
		call, known := e.byResponse[row.ResponseID]
		if row.Class != "ok" || !known {
			continue
		}
		if whole := int64(len(e.said(call))); r.Status != "complete" && r.Reason != "superseded" && r.LogLen != whole {
			e.rec.broke("P10", "call %s was read to its end, and its reply %s is %s(%s) with %d of %d bytes", row.ID, r.ID, r.Status, r.Reason, r.LogLen, whole)
		}
	}
	for _, row := range e.stored.calls {
		call, known := e.byResponse[row.ResponseID]
		if !known || !heardOut(call) || slices.Contains([]string{"ok", "cancelled"}, row.Class) {
			continue
		}
		r := e.stored.replies[row.Reply]
		owner, ours := e.ownerOf[r.Owner]
		if r.Epoch == row.Epoch && ours && !e.inTrouble(owner, call.AcceptedAt, *call.EndedAt) {
			e.rec.broke("P10", "the provider's call %d (%s) ended well at %s, worker w%d was in no trouble, and the ledger says %s(%s)", call.N, call.Rule, call.EndedAt, owner+1, row.Class, row.Phase)
		}
	}
}

// heardOut tells calls that said everything, of stories in which nothing goes wrong.
func heardOut(c scripted.Call) bool {
	return c.End == scripted.EndFinished && c.ClientGoneAt == nil && c.DeltasSent == c.DeltasGenerated &&
		c.EndedAt != nil && !strings.HasPrefix(c.Rule, classRough)
}

// inTrouble reports whether a worker was, around a time.
func (e *evidence) inTrouble(worker int, from, to time.Time) bool {
	return slices.ContainsFunc(e.spans, func(s span) bool {
		return (s.worker == worker || s.worker == everybody) && s.begin.Before(to.Add(2*time.Second)) && s.end.After(from.Add(-2*time.Second))
	})
}
