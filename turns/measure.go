package turns

// believedPart is how much smaller than an estimate a provider's count may be: a quarter. Servers exist that report nothing,
// or only what was not cached, and a window measured by them would grow past what the model takes.
// No prompt takes mostTokens.
const (
	believedPart = 4
	mostTokens   = 1 << 32
)

// believable reports whether a count can be of what is estimated at so many tokens.
func believable(counted, estimated int64) bool {
	return counted > 0 && counted < mostTokens && counted*believedPart >= estimated
}

// measure is what the steps of a path take of a window, and what a prompt takes besides.
type measure struct {
	steps []step
	// own is the system text, the tools and the new turn; excess what the provider counted of an earlier prompt beyond the
	// sum of its parts (below zero: less), which is mostly what it adds to each prompt by itself.
	own, excess int64
	// from is the start of the window that excess was found for.
	from RowID
}

// measured gives each step of a question's path its tokens: by what the same model's own replies reported, as far as they
// did, else by estimates. A reply's input is all from its window's start to its user turn. So where two replies after each
// other have the same start, the difference is what lies between them: the first reply, as it is sent back, and the turns
// after it.
//
// Nothing is used but the path and the question, so the same ones give the same window on any worker.
func measured(path []PathRow, q Question) measure {
	m := measure{steps: toSteps(path), own: q.overhead()}
	var older *sample
	for i := len(m.steps) - 1; i >= 0; i-- {
		s := m.sample(i, q)
		if s == nil {
			continue
		}
		if visible := s.usage.Output - s.usage.Reasoning; believable(visible, m.steps[i].tokens) {
			m.steps[i].tokens = visible
		}
		if older != nil && older.start == s.start && older.overhead == s.overhead {
			m.share(s.input-older.input, i, older.at)
		}
		older = s
	}
	if older != nil {
		m.anchor(*older, q)
	}
	return m
}

// sample is a reply whose usage says what its prompt took.
type sample struct {
	at       int // its place among the steps
	usage    Usage
	input    int64
	start    RowID
	overhead int64
}

// sample is the step as a sample, nil if it is none: a reply that counts, by the same model of the same vendor, from the same
// defaults, of one call whose usage was reported, and that did not go on from another.
func (m *measure) sample(i int, q Question) *sample {
	s := m.steps[i]
	r := s.row.Reply
	if !s.counts || r == nil || !r.by(q.Route) || r.Usage.Source != SourceReported || r.Usage.Calls != 1 ||
		!believable(r.Usage.Input, 0) || !believable(r.Usage.Output, 0) || r.OnPartial == OnPartialContinue && r.Attempt > 1 {
		return nil
	}
	if r.DefaultsVersion != q.DefaultsVersion {
		return nil // what its defaults took is not known here
	}
	var asked Options
	if i+1 < len(m.steps) && m.steps[i+1].row.User != nil {
		asked = m.steps[i+1].row.User.Options
	}
	return &sample{at: i, usage: r.Usage, input: r.Usage.Input, start: r.WindowStart, overhead: r.options(asked, q.Defaults).overhead()}
}

// by reports whether the reply is of the model that a route leads to: tokens of two models are not alike.
func (r *Reply) by(route Route) bool {
	return r.Model == route.Model && r.Provider == route.Provider && r.ProviderModel == route.ProviderModel
}

// share gives the steps from an older sample up to a newer one what the provider counted for them together: to the older
// reply what it said, and the rest to what lies between. Where that can't be, all of it is shared by the estimates.
func (m *measure) share(counted int64, newer, older int) {
	reply := m.steps[older : older+1]
	between := m.steps[newer+1 : older]
	switch rest := counted - reply[0].tokens; {
	case believable(rest, sum(between)):
		spread(rest, between)
	case believable(counted, sum(between)+reply[0].tokens):
		spread(counted, m.steps[newer+1:older+1])
	}
}

// spread gives steps a sum of tokens in proportion to what they have. What is lost by rounding goes to the oldest that
// counts.
func spread(tokens int64, steps []step) {
	all, left := sum(steps), tokens
	last := -1
	for i := range steps {
		if all == 0 || steps[i].tokens == 0 {
			continue
		}
		steps[i].tokens = int64(float64(tokens) * float64(steps[i].tokens) / float64(all))
		left -= steps[i].tokens
		last = i
	}
	if last >= 0 {
		steps[last].tokens += left
	}
}

func sum(steps []step) (tokens int64) {
	for _, s := range steps {
		tokens += s.tokens
	}
	return tokens
}

// anchor holds the newest sample's prompt to the sum of its parts.
func (m *measure) anchor(s sample, q Question) {
	if answersCalls(q.Turn.Content) {
		m.steps[s.at].tokens = max(m.steps[s.at].tokens, s.usage.Output) // its thoughts go back too while its calls are open
	}
	parts, found := m.own-EstimateContent(q.Turn.Content), false
	for _, step := range m.steps[s.at+1:] {
		parts += step.tokens
		if found = step.row.ID == s.start; found {
			break
		}
	}
	counted := s.input + q.Options.overhead() - s.overhead
	if found && believable(counted, parts) {
		m.excess, m.from = counted-parts, s.start
	}
}

// total is what a prompt takes whose window holds the first n steps. What was counted too low for one window may have been so
// for the part that is not in another, so it is taken off only where the window starts at the same row.
func (m *measure) total(n int, tokens int64) int64 {
	if n > 0 && (m.excess > 0 || m.steps[n-1].row.ID == m.from) {
		tokens += m.excess
	}
	return m.own + tokens
}

// overhead is what a question takes besides its history.
func (q Question) overhead() int64 { return q.Options.overhead() + EstimateContent(q.Turn.Content) }

// overhead is what the system text and the tools take.
func (o Options) overhead() int64 {
	size := len(o.System)
	for _, t := range o.Tools {
		size += len(t.Name) + len(t.Description) + len(t.InputSchemaJSON)
	}
	return EstimateTokens(size)
}
