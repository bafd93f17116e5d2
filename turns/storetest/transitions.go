package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func transitions() []promise {
	return []promise{
		{"an ending that the table has is written as it says", endingsOfTheTable},
		{"an ending that the table does not have is a typed error and changes nothing", endingsOutsideTheTable},
		{"a sweep that the table has is written as it says", sweepsOfTheTable},
		{"a sweep that the table does not have is a typed error and changes nothing", sweepsOutsideTheTable},
		{"a takeover leads where the table says", takeoversOfTheTable},
		{"a replacement that the table has is written as it says", replacesOfTheTable},
		{"what is over comes back, settles, is chosen or superseded exactly as the table has it", anEndMovesByTheTable},
		{"no write in the table's name changes a reply that is not in flight", nothingLeavesAnEnd},
	}
}

// step is what a write says it does to a reply in flight.
type step struct {
	verb   turns.Verb
	to     turns.Status
	reason turns.Reason
}

// steps is every step that can be written down, sorted by whether a method with these verbs must take it.
func steps(verbs ...turns.Verb) (within, outside []step) {
	for _, verb := range allVerbs() {
		for _, to := range []turns.Status{turns.StatusInFlight, turns.StatusComplete, turns.StatusHeld, turns.StatusAbandoned} {
			for _, reason := range append([]turns.Reason{""}, turns.Reasons...) {
				_, ok := turns.Allowed(turns.StatusInFlight, "", verb, to, reason)
				ok = ok && slices.Contains(verbs, verb) && (reason != "") == (to == turns.StatusAbandoned)
				if s := (step{verb, to, reason}); ok {
					within = append(within, s)
				} else {
					outside = append(outside, s)
				}
			}
		}
	}
	return within, outside
}

func allVerbs() (verbs []turns.Verb) {
	for _, t := range turns.Transitions {
		if !slices.Contains(verbs, t.Verb) {
			verbs = append(verbs, t.Verb)
		}
	}
	return verbs
}

func endingSteps() (within, outside []step) {
	return steps(turns.VerbComplete, turns.VerbAbandon, turns.VerbHold)
}

func sweepSteps() (within, outside []step) {
	return steps(turns.VerbSweep, turns.VerbExpire, turns.VerbCancel)
}

func (s step) ending(c turns.Claim) turns.Ending {
	e := completing(c, 0, whole("a"))
	e.Verb, e.Status, e.Reason = s.verb, s.to, s.reason
	return e
}

func (s step) sweeping(c turns.Claim) turns.Sweeping {
	sw := sweeping(c, 0)
	sw.Verb, sw.Status, sw.Reason = s.verb, s.to, s.reason
	return sw
}

func typed(t *testing.T, err error, s step) {
	t.Helper()
	var typed *turns.Error
	require.True(t, errors.As(err, &typed), "%v: %v", s, err)
}

func endingsOfTheTable(t *testing.T, w *world) {
	within, _ := endingSteps()
	for _, s := range within {
		c, claim := w.fresh()
		w.finish(s.ending(claim))
		r := w.read(c, claim.Reply.ID)
		require.Equal(t, s, step{s.verb, r.Status, r.Reason})
	}
}

func endingsOutsideTheTable(t *testing.T, w *world) {
	_, claim := w.fresh()
	_, outside := endingSteps()
	w.unchanged(func() {
		for _, s := range outside {
			_, err := w.Store.End(w.ctx, []turns.Ending{s.ending(claim)})
			typed(t, err, s)
		}
	})
}

func sweepsOfTheTable(t *testing.T, w *world) {
	within, _ := sweepSteps()
	for _, s := range within {
		c, claim := w.fresh()
		w.askToStop(claim.Reply.ID)
		w.bury(w.worker)
		require.True(t, w.sweep(s.sweeping(claim)), s)
		r := w.read(c, claim.Reply.ID)
		require.Equal(t, s, step{s.verb, r.Status, r.Reason})
		require.Equal(t, s.to != turns.StatusAbandoned, r.EndTime.IsZero())
		w.worker = w.register()
	}
}

func sweepsOutsideTheTable(t *testing.T, w *world) {
	_, claim := w.fresh()
	w.bury(w.worker)
	_, outside := sweepSteps()
	w.unchanged(func() {
		for _, s := range outside {
			_, err := w.Store.Sweep(w.ctx, s.sweeping(claim))
			typed(t, err, s)
		}
	})
}

// takeFromNobody makes a reply one of an unknown owner, and takes it over.
func (w *world) takeFromNobody(c turns.Claim) turns.TakeoverResult {
	w.t.Helper()
	v := w.takingOver(c, 0)
	v.Fence.Owner = turns.WorkerID(newReplyID())
	w.exec("UPDATE turns SET owner = %s WHERE id = %s", v.Fence.Owner.UUID, c.Reply.ID.UUID)
	return w.takeOver(v)
}

func takeoversOfTheTable(t *testing.T, w *world) {
	c, claim := w.fresh()
	require.True(t, w.takeFromNobody(claim).Won)
	r := w.read(c, claim.Reply.ID)
	_, allowed := turns.Allowed(turns.StatusInFlight, "", turns.VerbTakeOver, r.Status, r.Reason)
	require.True(t, allowed, "%s %s", r.Status, r.Reason)
}

func replacesOfTheTable(t *testing.T, w *world) {
	within, _ := steps(turns.VerbReplace)
	require.NotEmpty(t, within)
	for _, s := range within {
		c, claim := w.fresh()
		r := w.replacing(claim, 0)
		r.Ending.Reason = s.reason
		require.True(t, w.replace(r), s)
		old := w.read(c, claim.Reply.ID)
		require.Equal(t, s, step{s.verb, old.Status, old.Reason})
	}
}

// ended brings a reply to each status that is not in flight, with each reason.
func (w *world) ended() (claims []turns.Claim) {
	_, complete := w.fresh()
	w.finish(completing(complete, 0))
	_, held := w.fresh()
	w.hold(held.Reply.ID)
	claims = append(claims, complete, held)
	for _, reason := range turns.Reasons {
		_, claim := w.fresh()
		w.finish(abandoning(claim, 0, turns.ReasonShutdown))
		w.exec("UPDATE turns SET reason = '"+string(reason)+"' WHERE id = %s", claim.Reply.ID.UUID)
		claims = append(claims, claim)
	}
	return claims
}

// move is a verb by which the port moves a reply that is over, with what it leads to.
type move struct {
	verb   turns.Verb
	to     turns.Status
	reason func(from turns.Reason) turns.Reason
	act    func(w *world, claim turns.Claim) bool
}

func reasonIs(r turns.Reason) func(turns.Reason) turns.Reason {
	return func(turns.Reason) turns.Reason { return r }
}

func moves() []move {
	same := func(r turns.Reason) turns.Reason { return r }
	return []move{
		{turns.VerbRevive, turns.StatusInFlight, reasonIs(""), func(w *world, c turns.Claim) bool { return w.revive(reviving(c, w.worker)) }},
		{turns.VerbTakeOver, turns.StatusInFlight, reasonIs(""), func(w *world, c turns.Claim) bool { return w.takeFromNobody(c).Won }},
		{turns.VerbSalvage, turns.StatusComplete, reasonIs(""), func(w *world, c turns.Claim) bool { return w.salvage(salvaging(c)) }},
		{turns.VerbSettle, turns.StatusAbandoned, same, func(w *world, c turns.Claim) bool { return w.settle(settling(c, 0, whole("a"))) }},
		{turns.VerbSelect, turns.StatusComplete, reasonIs(""), func(w *world, c turns.Claim) bool {
			s := w.selection(conversationOf(c.Tenant, c.Conversation.UUID), c.Turn, c.Reply.ID)
			s.Supersede = turns.ReplyID{}
			return w.choose(s)
		}},
		{turns.VerbSupersede, turns.StatusAbandoned, reasonIs(turns.ReasonSuperseded), func(w *world, c turns.Claim) bool {
			claim := w.regenerate(conversationOf(c.Tenant, c.Conversation.UUID), c.Turn)
			claim.Supersede = c.Reply.ID
			return w.claim(claim).Won
		}},
		{turns.VerbRelease, turns.StatusAbandoned, reasonIs(turns.ReasonHeldReleased), resolvingAs(turns.VerbRelease, turns.ReasonHeldReleased)},
		{turns.VerbAdopt, turns.StatusComplete, reasonIs(""), resolvingAs(turns.VerbAdopt, "")},
		{turns.VerbFinish, turns.StatusComplete, reasonIs(""), resolvingAs(turns.VerbFinish, "")},
		{turns.VerbReplace, turns.StatusAbandoned, reasonIs(turns.ReasonAmbiguous), func(w *world, c turns.Claim) bool {
			return w.replace(w.replacing(c, 0))
		}},
		{turns.VerbCancel, turns.StatusAbandoned, reasonIs(turns.ReasonCancelled), func(w *world, c turns.Claim) bool {
			return w.stop(conversationOf(c.Tenant, c.Conversation.UUID), c.Turn).Reason == turns.ReasonCancelled
		}},
	}
}

// resolvingAs resolves a held reply of which nothing is stored.
func resolvingAs(verb turns.Verb, reason turns.Reason) func(*world, turns.Claim) bool {
	return func(w *world, c turns.Claim) bool {
		r := adopting(c)
		r.Fence, r.Verb, r.Reason = fenceOf(c), verb, reason
		if reason != "" {
			r.Status, r.StopReason = turns.StatusAbandoned, ""
		}
		return w.resolve(r)
	}
}

// A reply that has just been settled would bar what the reason allows, so each is made to look as a sweep leaves it.
func anEndMovesByTheTable(t *testing.T, w *world) {
	for _, m := range moves() {
		for _, claim := range w.ended() {
			w.exec("UPDATE turns SET settled_at = NULL WHERE id = %s", claim.Reply.ID.UUID)
			c := conversationOf(claim.Tenant, claim.Conversation.UUID)
			from := w.read(c, claim.Reply.ID)
			to := m.reason(from.Reason)
			_, allowed := turns.Allowed(from.Status, from.Reason, m.verb, m.to, to)
			moved := m.act(w, claim)
			if from.Reason == turns.ReasonCancelled && m.verb == turns.VerbCancel {
				moved = false // it says cancelled, as it did before
			}
			require.Equal(t, allowed, moved, "%s of %s %s", m.verb, from.Status, from.Reason)
			if r := w.read(c, claim.Reply.ID); moved {
				require.Equal(t, []any{m.to, to}, []any{r.Status, r.Reason})
			} else {
				require.Equal(t, []any{from.Status, from.Reason}, []any{r.Status, r.Reason})
			}
		}
	}
}

func nothingLeavesAnEnd(t *testing.T, w *world) {
	claims := w.ended()
	w.bury(w.worker)
	w.worker = w.register()
	ends, _ := endingSteps()
	outs, _ := sweepSteps()
	w.unchanged(func() {
		for _, claim := range claims {
			for _, s := range ends {
				require.False(t, w.end(s.ending(claim)).Won, s)
			}
			for _, s := range outs {
				require.False(t, w.sweep(s.sweeping(claim)), s)
			}
			require.False(t, w.checkpoint(fenceOf(claim), 0, opening("a")).Held)
			require.False(t, w.permit(permitFor(claim, 2)).Granted)
			require.Zero(t, w.takeOver(w.takingOver(claim, 0)))
			require.False(t, w.claim(claim).Won)
		}
	})
}
