package main

import (
	"errors"

	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/limiter"
)

// Limits are of each subject, and its quotas of the tenant too. Unset is not 0: without authentication all callers are one
// subject unless they say otherwise, so that a limit nobody asked for would be one for all of them together.
type Limits struct {
	SubmissionsPerMinute *int64 `env:"TURND_SUBMISSIONS_PER_MINUTE" placeholder:"N" help:"Turns and regenerates a minute and subject; 0 is no limit. Default 60, or no limit with --auth none."`
	LookupsPerMinute     *int64 `env:"TURND_LOOKUPS_PER_MINUTE" placeholder:"N" help:"Requests a minute and subject that may make a reply, replays among them, on this worker; 0 is no limit. Default 6000, or no limit with --auth none."`
	SubjectTurnsPerDay   *int64 `env:"TURND_SUBJECT_TURNS_PER_DAY" placeholder:"N" help:"Turns and regenerates of a subject a day (UTC); 0 is no limit. Default 1000, or no limit with --auth none."`
	SubjectTokensPerDay  *int64 `env:"TURND_SUBJECT_TOKENS_PER_DAY" placeholder:"N" help:"Tokens of a subject a day (UTC), input and output together; 0 is no limit. Default 5000000, or no limit with --auth none."`
	TenantTurnsPerDay    *int64 `env:"TURND_TENANT_TURNS_PER_DAY" placeholder:"N" help:"Turns and regenerates of a tenant a day (UTC); 0, the default, is no limit."`
	TenantTokensPerDay   *int64 `env:"TURND_TENANT_TOKENS_PER_DAY" placeholder:"N" help:"Tokens of a tenant a day (UTC), input and output together; 0, the default, is no limit."`
	MaxSubjectInFlight   *int64 `env:"TURND_MAX_SUBJECT_IN_FLIGHT" placeholder:"N" help:"Replies of a subject that run or wait for a place here at once; 0 is no limit. Default 16, or no limit with --auth none."`
}

// What an unset limit is where callers are told apart.
const (
	defaultSubmissions     = 60
	defaultLookups         = 6_000
	defaultSubjectTurns    = 1_000
	defaultSubjectTokens   = 5_000_000
	defaultSubjectInFlight = 16
)

// maxPerMinute is more than one process serves, and far from the end of what a bucket counts.
const maxPerMinute = 100_000_000

// limit is what a flag says, or what stands for it where it is unset.
func (c Config) limit(flag *int64, otherwise int64) int64 {
	switch {
	case flag != nil:
		return *flag
	case !c.tellsApart():
		return 0
	}
	return otherwise
}

// tellsApart says that callers show who they are.
func (c Config) tellsApart() bool { return c.Auth != "" && c.Auth != server.AuthNone }

// submissions are the limits that the store keeps.
func (c Config) submissions() turns.SubmissionLimits {
	l := c.Limits
	return turns.SubmissionLimits{
		PerMinute:    c.limit(l.SubmissionsPerMinute, defaultSubmissions),
		SubjectTurns: c.limit(l.SubjectTurnsPerDay, defaultSubjectTurns), SubjectTokens: c.limit(l.SubjectTokensPerDay, defaultSubjectTokens),
		TenantTurns: c.limit(l.TenantTurnsPerDay, 0), TenantTokens: c.limit(l.TenantTokensPerDay, 0),
	}
}

// limiter are the limits that this worker keeps.
func (c Config) limiter() limiter.Config {
	return limiter.Config{Submissions: c.submissions().PerMinute, Lookups: c.limit(c.Limits.LookupsPerMinute, defaultLookups)}
}

// newLimits makes what this worker asks before it makes anything: its own limits, and who is suspended.
func (a *app) newLimits() (*limiter.Limiter, *limiter.Suspensions, error) {
	limits, err := limiter.New(a.cfg.limiter())
	if err != nil {
		return nil, nil, err
	}
	suspended, err := limiter.NewSuspensions(a.store.access, a.cfg.AuthCache, limiter.DefaultSubjects)
	return limits, suspended, err
}

// check looks at the limits. One below zero would be none, or all.
func (l Limits) check() error {
	var problems []error
	for _, of := range []struct {
		flag  string
		value *int64
		most  int64
	}{
		{"--submissions-per-minute", l.SubmissionsPerMinute, maxPerMinute}, {"--lookups-per-minute", l.LookupsPerMinute, maxPerMinute},
		{"--subject-turns-per-day", l.SubjectTurnsPerDay, maxPerDay}, {"--subject-tokens-per-day", l.SubjectTokensPerDay, maxPerDay},
		{"--tenant-turns-per-day", l.TenantTurnsPerDay, maxPerDay}, {"--tenant-tokens-per-day", l.TenantTokensPerDay, maxPerDay},
		{"--max-subject-in-flight", l.MaxSubjectInFlight, maxPlaces},
	} {
		if of.value != nil {
			problems = append(problems, within(of.flag, *of.value, 0, of.most))
		}
	}
	return errors.Join(problems...)
}

// maxPerDay leaves a sum of charges room in the columns that keep it.
const maxPerDay = 1 << 50
