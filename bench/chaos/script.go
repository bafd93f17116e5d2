package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/turnd/turnd/llm/scripted"
)

// The classes of turns. A turn's text begins with its class, by which the provider picks a story.
const (
	classCalm  = "calm"  // short, nothing goes wrong at the provider
	classLong  = "long"  // several seconds
	classRough = "rough" // most things that go wrong at a provider
)

// classes are drawn from in this order of weight.
var classes = []string{classCalm, classCalm, classCalm, classRough, classRough, classRough, classLong, classLong}

// stories are what the provider will say: a text for each rule, so that what a call generated is known by its rule.
type stories struct {
	script scripted.Script
	text   map[string]string
}

// poolSizes say how many stories a class has. Each is told once, so that no two calls say the same.
var poolSizes = map[string]int{classCalm: 1600, classLong: 700, classRough: 1600}

func newStories(random *rand.Rand) *stories {
	s := &stories{text: map[string]string{}}
	for _, class := range []string{classCalm, classLong, classRough} {
		n := poolSizes[class]
		for i := range n {
			rule := s.rule(random, class, fmt.Sprintf("%s-%d", class, i))
			rule.Times = 1
			s.script.Rules = append(s.script.Rules, rule)
		}
		s.script.Rules = append(s.script.Rules, s.rule(random, class, class+"-last"))
	}
	return s
}

func (s *stories) rule(random *rand.Rand, class, name string) scripted.Rule {
	words, pace := 15+random.IntN(40), 10+random.IntN(30)
	if class == classLong {
		words, pace = 120+random.IntN(120), 20+random.IntN(15)
	}
	s.text[name] = storyText(random, name, words)
	plan := scripted.Plan{Blocks: []scripted.Block{{Text: s.text[name]}}, PaceMS: pace}
	if random.IntN(3) == 0 {
		plan.OnClientGone = scripted.ClientGoneStop
	}
	if class == classRough {
		trouble(random, &plan, words)
	}
	return scripted.Rule{Name: name, Match: scripted.Match{Text: "^" + class + " "}, Plan: plan}
}

var vocabulary = strings.Fields("and the turn that came again late über naïve 你好 世界 🦀🦀 ends where it began ключ один reply")

// storyText is a text of words, some of them of runes that take several bytes. It begins with its own name.
func storyText(random *rand.Rand, name string, words int) string {
	var b strings.Builder
	b.WriteString(name)
	for range words {
		fmt.Fprintf(&b, " %s%d", vocabulary[random.IntN(len(vocabulary))], random.IntN(100))
	}
	return b.String()
}

// trouble lets one thing go wrong in a plan, or in one of five nothing.
func trouble(random *rand.Rand, plan *scripted.Plan, words int) {
	step := func(at scripted.Point, do scripted.Action) {
		plan.Steps = append(plan.Steps, scripted.Step{At: at, Do: do})
	}
	status := func(code int, kind string, headers map[string]string) {
		plan.Steps = append(plan.Steps, scripted.Step{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: code, Error: kind, Headers: headers})
	}
	middle := scripted.AfterDelta(1 + random.IntN(words-1))
	troubles := []func(){
		func() { status(429, "rate_limit_error", map[string]string{"retry-after": "1"}) },
		func() { status(429, "rate_limit_error", nil) },
		func() { status(500, "api_error", nil) },
		func() { status(529, "overloaded_error", nil) },
		func() { step(scripted.AtBeforeHeaders, scripted.DoReset) },
		func() { step(scripted.AtAfterHeaders, scripted.DoReset) },
		func() { step(scripted.AfterDelta(1), scripted.DoReset) },
		func() { step(middle, scripted.DoReset) },
		func() { step(middle, scripted.DoClose) },
		func() { step(scripted.AtBeforeTerminal, scripted.DoReset) },
		func() { step(scripted.AtAfterTerminal, scripted.DoReset) },
		func() {
			plan.Steps = append(plan.Steps, scripted.Step{At: middle, Do: scripted.DoErrorEvent, Error: "overloaded_error"})
		},
		func() {
			plan.Steps = append(plan.Steps, scripted.Step{At: scripted.AfterDelta(0), Do: scripted.DoErrorEvent, Error: "overloaded_error"})
		},
		func() { step(middle, scripted.DoSilence) },
		func() { step(middle, scripted.DoGarbage) },
		func() { step(middle, scripted.DoComment) },
		func() { step(scripted.AtAfterTerminal, scripted.DoRepeatTerminal) },
		func() { step(scripted.AtAfterTerminal, scripted.DoKeepOpen) },
		func() { plan.Write, plan.PaceMS = scripted.WriteByte, 2 },
		func() { plan.Write, plan.PaceMS = scripted.WriteOnce, 5 },
		func() { plan.LineEnd = scripted.LineEndCRLF },
		func() { plan.Usage = scripted.UsageNone },
		func() { plan.Usage = scripted.UsageZero },
		func() { plan.Usage = scripted.UsageStartOnly },
	}
	if random.IntN(5) == 0 {
		return
	}
	troubles[random.IntN(len(troubles))]()
}
