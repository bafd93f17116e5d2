// Package probe finds out what an endpoint can do about a call whose answer was lost, by losing some: it sends twice under
// one key, cuts streams and asks for them again, stops a response, and looks one up by our own id. It compares what it sees
// with what the models file claims.
//
// It spends tokens, of which Plan says the most there can be; nothing is sent before Run. Each call asks for a short answer
// under a bound of its own. What an endpoint has not been configured for is tried on a copy of it that has it switched on.
//
// What surprises: a probe sees what happened once. How long a key or a response is kept it can't see, and a "no" may be an
// endpoint that was slow: Unclear and the evidence say which. Two capabilities that exclude each other may both be seen.
package probe

import (
	"context"
	"time"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

// defaultPatience is how long an answer is asked for that is not there yet.
const defaultPatience = 20 * time.Second

// Config says what is probed.
type Config struct {
	// Endpoint is as the models file has it, and Model a name that it knows.
	Endpoint llm.Endpoint
	Model    string
	// Options are those of the routers that the probe makes, one for each step.
	Options llm.Options
	// Patience bounds the asking for an answer that is not there yet; 0 is 20 s.
	Patience time.Duration
}

// step is one capability, and how it is tried.
type step struct {
	name  string
	calls int // at most
	// needs are the capabilities that the copy of the endpoint has.
	needs turns.Capabilities
	// claimed is what the models file says.
	claimed string
	try     func(context.Context, *session) (Finding, error)
}

// steps are those that the endpoint's wire has words for, the one that also tells whether the endpoint answers at all first.
func (c Config) steps() (steps []step, impossible []Finding) {
	claims, most := c.Endpoint.Capabilities, llm.MostOf(c.Endpoint.Wire)
	idempotency := claims.Idempotency
	if idempotency == "" {
		idempotency = turns.IdempotencyNone
	}
	steps = []step{
		{"idempotency", 3, turns.Capabilities{}, string(idempotency), tryKey},
		{"usage_on_abort", 1, turns.Capabilities{}, yesOrNo(claims.UsageOnAbort), tryUsage},
	}
	background := turns.Capabilities{Resume: true, Cancel: most.Cancel}
	for _, s := range []struct {
		step
		possible bool
	}{
		{step{"resume", 1, background, yesOrNo(claims.Resume), tryResume}, most.Resume},
		{step{"cancel", 1, background, yesOrNo(claims.Cancel), tryCancel}, most.Cancel},
		{step{"lookup", 2, turns.Capabilities{Lookup: true}, yesOrNo(claims.Lookup), tryLookup}, most.Lookup},
		{step{"fence", 2, turns.Capabilities{Fence: true}, yesOrNo(claims.Fence), tryFence}, most.Fence},
	} {
		if s.possible {
			steps = append(steps, s.step)
		} else {
			impossible = append(impossible, Finding{s.name, s.claimed, No, "nothing of this wire does it"})
		}
	}
	return steps, impossible
}

// Run tries everything. It ends early with an error if ctx does, or if the endpoint does not even answer the first call.
func Run(ctx context.Context, c Config) (Report, error) {
	if c.Patience == 0 {
		c.Patience = defaultPatience
	}
	report := Report{Endpoint: c.Endpoint}
	steps, impossible := c.steps()
	for _, s := range steps {
		found, err := c.run(ctx, s, &report)
		if err != nil {
			return report, err
		}
		report.Findings = append(report.Findings, found)
	}
	report.Findings = append(report.Findings, impossible...)
	return report, nil
}

// run tries one step on an endpoint of its own.
func (c Config) run(ctx context.Context, s step, report *Report) (Finding, error) {
	open, err := c.open(s.needs, report)
	if err != nil {
		return Finding{}, err
	}
	defer open.router.Close()
	found, err := s.try(ctx, open)
	if err == nil {
		err = ctx.Err()
	}
	found.Capability, found.Claimed = s.name, s.claimed
	return found, err
}
