package main

import (
	"slices"
	"strings"

	"github.com/turnd/turnd/bench/history/arrays"
	"github.com/turnd/turnd/turns"
)

// judgeHealing compares what the builder says that it put right with what was planted. Of a history with one poison that is
// its kind; of a clean one nothing, besides thoughts and pieces of another vendor.
func (r *reading) judgeHealing(o *outcome) {
	if len(r.h.poisons) > 1 || r.w.pinned != (turns.RowID{}) {
		return // several poisons are in each other's way, and a pin may cut where no window would
	}
	foreign, opaque := r.foreign()
	r.said(o, turns.HealedReasoning, foreign)
	if len(r.h.poisons) == 0 || r.h.poisons[0].poison.heals != turns.HealedOpaque {
		r.said(o, turns.HealedOpaque, opaque)
	}
	may := []turns.Healing{turns.HealedReasoning, turns.HealedOpaque, turns.HealedMedia}
	if len(r.h.poisons) == 1 {
		p := r.h.poisons[0]
		inside := slices.ContainsFunc(r.rows, func(row turns.PathRow) bool { return row.ID == p.row })
		may = append(append(may, p.poison.heals), p.poison.also...) // a result that came late lies in a row of its own
		if inside && p.poison.heals != "" && o.healed[p.poison.heals] == 0 {
			o.find(problemHealed, "%s after %s", p.poison.heals, p.poison.name)
		}
	}
	for kind, n := range o.healed {
		if n > 0 && !slices.Contains(may, kind) {
			o.find(problemUnhealed, "%s", kind)
		}
	}
}

// said checks that a healing is said if, and only if, there was something of it.
func (r *reading) said(o *outcome, kind turns.Healing, there bool) {
	switch {
	case there && o.healed[kind] == 0:
		o.find(problemHealed, "%s", kind)
	case !there && o.healed[kind] > 0:
		o.find(problemUnhealed, "%s", kind)
	}
}

// foreign reports whether the window has thoughts, and other pieces, of another vendor or model.
func (r *reading) foreign() (thoughts, pieces bool) {
	for _, row := range r.rows {
		if !counts(row) || !says(row) {
			continue
		}
		for _, b := range contentOf(row) {
			switch b := b.(type) {
			case turns.Thinking:
				own := strings.HasPrefix(b.Seal, string(r.wire)+"/"+r.route.ProviderModel+"\n")
				thoughts = thoughts || !own && (b.Seal != "" || b.Text != "")
			case turns.Opaque:
				own := r.wire == arrays.AnthropicMessages && strings.HasPrefix(b.Seal, string(r.wire)+"/")
				pieces = pieces || !own
			}
		}
	}
	return thoughts, pieces
}
