package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// shown bounds how many breaches of one promise are printed.
const shown = 8

// shownLines bounds the lines of evidence that go with one.
const shownLines = 25

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
func (r *result) showBroken() {
	fmt.Printf("--- seed %d, timeline\n%s\n", r.seed, strings.Join(r.timeline, "\n"))
	count := map[string]int{}
	slices.SortStableFunc(r.broken, func(a, b breach) int { return strings.Compare(a.promise, b.promise) })
	for _, b := range r.broken {
		if count[b.promise]++; count[b.promise] <= shown {
			fmt.Printf("--- broken %s, seen at %.2fs: %s\n", b.promise, b.at.Sub(r.begun).Seconds(), b.what)
			r.showEvidence(b)
		}
	}
}

// ids finds what a breach is about.
var ids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// showEvidence prints what is on record about the ids in a breach.
func (r *result) showEvidence(b breach) {
	about := ids.FindAllString(b.what, 3)
	n := 0
	for _, line := range r.evidence {
		if n < shownLines && slices.ContainsFunc(about, func(id string) bool { return strings.Contains(line, id) }) {
			fmt.Println("    " + line)
			n++
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

// verdict prints the figures of the verdict.
func (r *result) verdict() {
	for _, f := range []struct {
		name  string
		value any
	}{
		{"seed", r.seed},
		{"promises_broken", len(r.broken)},
		{"faults", sum(r.struck)},
		{"kinds", len(r.struck)},
		{"faults_in_flight", r.caught},
		{"turns", r.turns},
		{"duplicates_sent", r.figures["duplicates_sent"]},
		{"provider_requests", r.requests},
		{"generations", r.generated},
		{"tokens_wasted", sum(r.wasted)},
		{"samples", r.samples},
		{"histories", r.histories},
		{"histories_undecided", r.undecided},
	} {
		fmt.Printf("figure %s=%v\n", f.name, f.value)
	}
}

func sum[N int | int64](m map[string]N) (all N) {
	for _, n := range m {
		all += n
	}
	return all
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
