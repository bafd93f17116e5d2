package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/turnd/turnd/turns"
)

// shrinkTries bounds the builds that a failure is made smaller with.
const shrinkTries = 3000

// report shows for each kind of failure the smallest history that fails so, and says what is wrong in one line.
func (r *run) report() (verdict string) {
	for _, kind := range slices.Sorted(maps.Keys(r.failures)) {
		f := r.failures[kind]
		f.shrink()
		f.show()
		var at []string
		for _, found := range f.o.findings {
			at = append(at, strings.TrimSpace(found.kind+" "+found.at))
		}
		verdict = fmt.Sprintf("seed=%d history=%d wire=%s rows=%d found: %s", r.seed, f.h.number, f.subject.name, len(f.h.rows), strings.Join(at, "; "))
		fmt.Println(verdict)
	}
	return verdict
}

// show prints the history and what came of it.
func (f *failure) show() {
	fmt.Print(show(f.h))
	if f.subject.builder == nil {
		return
	}
	fmt.Printf("window %d tokens, pinned %v, %s of %s\n", f.window.tokens, f.window.pinned, f.subject.name, f.subject.route.ProviderModel)
	built, err := f.subject.build(f.h, f.window)
	if err != nil {
		fmt.Printf("error %v\n", err)
		return
	}
	fmt.Printf("body %s\nhealed %v\n", cutTo(string(built.Request.Body), 4000), built.Request.Healed)
}

// shrink takes rows, blocks and options out for as long as the same is wrong. Of what is said of healing only the poison
// knows, which is bound to its row: such a history stays as it is.
func (f *failure) shrink() {
	if f.subject.builder == nil || slices.Contains(f.kinds, problemHealed) || slices.Contains(f.kinds, problemUnhealed) {
		return
	}
	tries := shrinkTries
	fails := func(h *history) bool {
		if tries--; tries < 0 || !h.possible() {
			return false
		}
		stored, err := h.stored()
		if err != nil {
			return false
		}
		o := f.subject.check(h, stored, f.window)
		if !slices.Equal(o.kinds(), f.kinds) {
			return false
		}
		f.h, f.o = h, o
		return true
	}
	plain := *f.h
	plain.poisons = append(plain.poisons, planted{poison: &poisons[0]}, planted{poison: &poisons[0]}) // says nothing of healing
	if !fails(&plain) {
		return
	}
	for size := max(1, len(f.h.rows)/2); size > 0; size /= 2 {
		for from := 0; from+size <= len(f.h.rows); {
			if !fails(f.h.without(from, from+size)) {
				from += size
			}
		}
	}
	f.shrinkBlocks(fails)
	f.shrinkOptions(fails)
}

func (f *failure) shrinkBlocks(fails func(*history) bool) {
	for i := 0; i <= len(f.h.rows); i++ {
		for j := 0; j < len(f.h.contentAt(i)); {
			c := *f.h
			c.rows = slices.Clone(f.h.rows)
			c.setContentAt(i, slices.Delete(c.contentAt(i), j, j+1))
			if !fails(&c) {
				j++
			}
		}
	}
}

func (f *failure) shrinkOptions(fails func(*history) bool) {
	for _, drop := range []func(*turns.Options){
		func(o *turns.Options) { o.System = "" }, func(o *turns.Options) { o.MaxOutputTokens = 0 },
		func(o *turns.Options) { o.Temperature = nil }, func(o *turns.Options) { o.StopSequences = nil },
		func(o *turns.Options) { o.ToolChoice = nil }, func(o *turns.Options) { o.Tools, o.ToolChoice = nil, nil },
		func(o *turns.Options) { o.ThinkingBudgetTokens = 0 },
	} {
		c := *f.h
		drop(&c.options)
		fails(&c)
	}
}

// show is a history as text, for a person.
func show(h *history) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "history %d from %s %s, poisons %v\n", h.number, h.home.wire, h.home.model, names(h.poisons))
	for _, row := range h.rows {
		if row.User != nil {
			fmt.Fprintf(&sb, "  user %s\n", row.ID)
		} else {
			fmt.Fprintf(&sb, "  reply %s %s %s\n", row.ID, row.Reply.Status, row.Reply.Reason)
		}
		showBlocks(&sb, contentOf(row))
	}
	fmt.Fprintf(&sb, "  asked %s\n", h.turn.ID)
	showBlocks(&sb, h.turn.Content)
	o := h.options
	fmt.Fprintf(&sb, "  options system=%q max=%d stops=%q tools=%d choice=%+v thinking=%d lenient=%v\n", o.System, o.MaxOutputTokens, o.StopSequences,
		len(o.Tools), o.ToolChoice, o.ThinkingBudgetTokens, h.lenient)
	return sb.String()
}

func names(all []planted) (out []string) {
	for _, p := range all {
		out = append(out, p.poison.name)
	}
	return out
}

func showBlocks(sb *strings.Builder, blocks []turns.Block) {
	for _, b := range blocks {
		fmt.Fprintf(sb, "    %s\n", cutTo(fmt.Sprintf("%T %+q", b, fmt.Sprint(b)), 300))
	}
}

func cutTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// possible reports whether a store could hold a history: below a reply hangs a user turn, and each turn says something.
func (h *history) possible() bool {
	for i, row := range h.rows {
		switch {
		case row.User == nil && i > 0 && h.rows[i-1].User == nil:
			return false
		case row.User != nil && len(row.User.Content) == 0:
			return false
		}
	}
	return len(h.turn.Content) > 0
}
