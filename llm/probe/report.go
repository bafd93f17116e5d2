package probe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/turns"
)

// What is claimed and seen of a capability. That of idempotency has the words of turns.Idempotency.
const (
	Yes = "yes"
	No  = "no"
	// Unclear is seen where a step did not get as far as to tell.
	Unclear = "unclear"
)

// Finding is what is claimed of one capability and what was seen. Evidence has ids and figures, and no text of an answer.
type Finding struct {
	Capability string
	Claimed    string
	Seen       string
	Evidence   string
}

func seen(what, format string, args ...any) Finding {
	return Finding{Seen: what, Evidence: fmt.Sprintf(format, args...)}
}

// IsRefuted reports a claim that does not hold. An advisory key claims nothing.
func (f Finding) IsRefuted() bool {
	if f.Seen == Unclear || f.Seen == f.Claimed {
		return false
	}
	return f.Claimed == Yes || f.Claimed == string(turns.IdempotencyEnforced)
}

// Report is what a probe found and spent.
type Report struct {
	Endpoint llm.Endpoint
	Findings []Finding
	// Calls were made, and the tokens are those that their providers reported.
	Calls        int
	InputTokens  int64
	OutputTokens int64
}

func (r *Report) add(u turns.Usage) {
	r.InputTokens += u.Input
	r.OutputTokens += u.Output
}

// Refuted are the claims that do not hold.
func (r Report) Refuted() []string {
	var names []string
	for _, f := range r.Findings {
		if f.IsRefuted() {
			names = append(names, f.Capability)
		}
	}
	return names
}

// Capabilities are those that were seen. Where seen ones exclude each other, resume wins: an answer that can be had again
// from where it broke off is worth more than one that can be found once it is whole.
func (r Report) Capabilities() (c turns.Capabilities, leftOut []string) {
	have := make(map[string]string)
	for _, f := range r.Findings {
		have[f.Capability] = f.Seen
	}
	c = turns.Capabilities{
		Idempotency: turns.Idempotency(have["idempotency"]), UsageOnAbort: have["usage_on_abort"] == Yes,
		Resume: have["resume"] == Yes, Lookup: have["lookup"] == Yes, Fence: have["fence"] == Yes,
	}
	c.Cancel = c.Resume && have["cancel"] == Yes
	switch c.Idempotency {
	case turns.IdempotencyEnforced:
		c.Retention = max(r.Endpoint.Capabilities.Retention, seenRetention)
	case turns.IdempotencyAdvisory:
	default:
		c.Idempotency = turns.IdempotencyNone
	}
	if c.Resume {
		for _, other := range []struct {
			name string
			has  *bool
		}{{"lookup", &c.Lookup}, {"fence", &c.Fence}} {
			if *other.has {
				leftOut, *other.has = append(leftOut, other.name), false
			}
		}
	}
	return c, leftOut
}

// seenRetention is written for an enforced key whose retention nobody said: a probe takes about as long.
const seenRetention = time.Minute

// YAML is the endpoint's part of a models file with what was seen.
func (r Report) YAML() string {
	c, leftOut := r.Capabilities()
	var out strings.Builder
	fmt.Fprintf(&out, "endpoints:\n  %s:\n    capabilities:\n", r.Endpoint.Name)
	if len(leftOut) > 0 {
		fmt.Fprintf(&out, "      # seen too, and left out since they can't go with resume: %s\n", strings.Join(leftOut, ", "))
	}
	line := func(key string, value any) {
		if r.isUnclear(key) {
			fmt.Fprintf(&out, "      # %s: it was not seen whether; leave it as it is\n", key)
			return
		}
		fmt.Fprintf(&out, "      %s: %v\n", key, value)
	}
	line("idempotency", c.Idempotency)
	if c.Idempotency == turns.IdempotencyEnforced {
		if r.Endpoint.Capabilities.Retention == 0 {
			fmt.Fprint(&out, "      # a probe can't see how long a key is kept: put here what the provider promises\n")
		}
		line("retention", c.Retention)
	}
	line("resume", c.Resume)
	line("lookup", c.Lookup)
	line("cancel", c.Cancel)
	line("fence", c.Fence)
	line("usage_on_abort", c.UsageOnAbort)
	if r.Endpoint.DisconnectStops != "" {
		line("disconnect_stops", r.Endpoint.DisconnectStops)
	}
	return out.String()
}

func (r Report) isUnclear(capability string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Capability == capability && f.Seen == Unclear })
}

func yesOrNo(b bool) string {
	if b {
		return Yes
	}
	return No
}
