package scripted

import (
	"regexp"
	"sync"
)

// program is a script being played: its rules with how often each was seen and taken.
type program struct {
	endpoint  Endpoint
	hasAccept bool

	mu    sync.Mutex
	rules []*playedRule
}

// playedRule is a rule with what has become of it. It is guarded by the program's mutex.
type playedRule struct {
	Rule
	text, key *regexp.Regexp
	accept    bool
	seen      int // requests that matched all but nth
	taken     int
}

// newProgram compiles a script that Validate accepts.
func newProgram(script Script) *program {
	p := &program{endpoint: script.Endpoint}
	for _, rule := range script.Rules {
		played := &playedRule{
			Rule: rule, accept: rule.Plan.hasAccept(),
			text: regexp.MustCompile(rule.Match.Text), key: regexp.MustCompile(rule.Match.Key),
		}
		p.hasAccept = p.hasAccept || played.accept
		p.rules = append(p.rules, played)
	}
	return p
}

// pick returns the rule for a request; without one, the zero rule, whose plan says the default text.
func (p *program) pick(req request, key string) Rule {
	rule, _ := p.take(func(r *playedRule) bool { return !r.accept && r.matches(req, key) })
	return rule
}

// pickAccept returns the rule for a connection.
func (p *program) pickAccept() (Rule, bool) {
	return p.take(func(r *playedRule) bool { return r.accept })
}

// take counts a sighting in every rule that matches and takes the first one it may.
func (p *program) take(matches func(*playedRule) bool) (Rule, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var taken *playedRule
	for _, r := range p.rules {
		if !matches(r) {
			continue
		}
		r.seen++
		if taken == nil && (r.Match.Nth == 0 || r.Match.Nth == r.seen) && (r.Times == 0 || r.taken < r.Times) {
			taken = r
		}
	}
	if taken == nil {
		return Rule{}, false
	}
	taken.taken++
	return taken.Rule, true
}

// matches asks all but nth.
func (r *playedRule) matches(req request, key string) bool {
	m := r.Match
	return m.Ask == req.ask && (m.Wire == "" || m.Wire == req.wire) && (m.Model == "" || m.Model == req.model) &&
		r.text.MatchString(req.userText) && r.key.MatchString(key)
}
