package turns

import (
	"context"
	"math"
	"strconv"
	"time"
)

// unknownOutput is what a reply is thought to take where neither its options nor its endpoint bound it.
const unknownOutput = 4096

// outputLimit is the most that a reply may take, as its request says.
func outputLimit(o Options, l Limits) int64 {
	asked, limit := int64(o.MaxOutputTokens), int64(l.MaxOutputTokens)
	switch {
	case asked == 0 && limit == 0:
		return int64(o.ThinkingBudgetTokens) + unknownOutput
	case asked == 0 || limit == 0:
		return max(asked, limit)
	}
	return min(asked, limit)
}

// reservation is what is asked of the quotas for an attempt that may take so many tokens; nil if nothing is bounded. The start
// of a turn in line was counted as a submission when that was sent.
func (a *arrival) reservation(tokens int64) *Reservation {
	if a.set.Submissions == (SubmissionLimits{}) {
		return nil
	}
	return &Reservation{Subject: a.caller.Subject, Tokens: tokens, Limits: a.set.Submissions, Submission: !a.starts}
}

// again is the reservation for a reply that was let in before and whose row was lost: it is charged again and meets nothing.
func (r *Reservation) again() *Reservation {
	if r == nil {
		return nil
	}
	free := *r
	free.Submission = false
	for _, limit := range []*int64{&free.Limits.SubjectTurns, &free.Limits.SubjectTokens, &free.Limits.TenantTurns, &free.Limits.TenantTokens} {
		if *limit > 0 {
			*limit = math.MaxInt64
		}
	}
	return &free
}

// met acts on a limit that a reservation has met: the first time that is a quota, what has ended and still counts in full is
// settled, and nil asks to look again; else it refuses.
func (a *arrival) met(ctx context.Context, m LimitMet) error {
	if m.Limit == LimitSubmissions {
		return tooManySubmissions(m.Max, m.Wait)
	}
	if !a.settledOpen && m.Asked <= m.Max {
		a.settledOpen = true
		return a.settleOpen(ctx, a.caller, m.OfTenant)
	}
	return quotaExceeded(m, a.caller)
}

// settleOpen settles what has ended of a subject, or of its whole tenant.
func (s *Service) settleOpen(ctx context.Context, c Caller, ofTenant bool) error {
	if ofTenant {
		c.Subject = ""
	}
	for range settlePages {
		n, err := s.store.SettleOpen(ctx, c.Tenant, c.Subject, settlePage)
		if err != nil || n < settlePage {
			return err
		}
	}
	return nil
}

// quotaExceeded says which quota is used up, and what helps.
func quotaExceeded(m LimitMet, c Caller) *Error {
	scope, whose := scopeSubject, scopeSubject+":"+c.Subject
	if m.OfTenant {
		scope, whose = scopeTenant, scopeTenant
	}
	e := &Error{Code: CodeQuotaExceeded, RetryAfter: m.Wait, Meta: map[string]string{
		"quota": string(m.Limit), "scope": scope, "subject": whose, "limit": strconv.FormatInt(m.Max, 10),
		"used": strconv.FormatInt(m.Used, 10), "asked": strconv.FormatInt(m.Asked, 10)}}
	switch {
	case m.Asked > m.Max:
		e.Final, e.RetryAfter = true, 0
		e.Problem = "the turn alone may take more tokens than this " + scope + " has for a whole day, so that waiting does not help; ask for less output, or send less"
	case m.Limit == LimitTurns:
		e.Problem = "this " + scope + " has used up its turns of the day; send the same turn again once the day has turned"
	default:
		e.Problem = "this " + scope + " has too few tokens left of the day; send the same turn again once the day has turned, or ask for less"
	}
	return e
}

// checkQuota looks whether a turn's reservation will be let in, before a reply is stopped for it: what is refused stops
// nothing. Only the claim decides, so that two turns at the same moment may both pass here and one of them there.
func (a *arrival) checkQuota(ctx context.Context) error {
	r := a.pending.claim.Reserve
	if r == nil || a.stopped {
		return nil
	}
	for {
		m, err := a.wouldMeet(ctx, a.caller.Tenant, *r)
		if m == nil || err != nil {
			return err
		}
		if err := a.met(ctx, *m); err != nil {
			return err
		}
	}
}

// wouldMeet is the quota that a reservation would meet now, nil if none.
func (s *Service) wouldMeet(ctx context.Context, tenant Tenant, r Reservation) (*LimitMet, error) {
	l := r.Limits
	if !r.Submission {
		l.PerMinute = 0
	}
	for _, of := range []struct {
		subject             string
		rate, turns, tokens int64
	}{{"", 0, l.TenantTurns, l.TenantTokens}, {r.Subject, l.PerMinute, l.SubjectTurns, l.SubjectTokens}} {
		if of.rate <= 0 && of.turns <= 0 && of.tokens <= 0 {
			continue
		}
		used, err := s.store.QuotaUsed(ctx, tenant, of.subject)
		if err != nil {
			return nil, err
		}
		m := LimitMet{OfTenant: of.subject == "", Wait: used.Left}
		switch early := earlyBy(used.Ahead, of.rate); {
		case early > 0:
			m.Limit, m.Max, m.Wait = LimitSubmissions, of.rate, early
		case of.turns > 0 && used.Turns+1 > of.turns:
			m.Limit, m.Max, m.Used, m.Asked = LimitTurns, of.turns, used.Turns, 1
		case of.tokens > 0 && used.Tokens+r.Tokens > of.tokens:
			m.Limit, m.Max, m.Used, m.Asked = LimitTokens, of.tokens, used.Tokens, r.Tokens
		default:
			continue
		}
		return &m, nil
	}
	return nil, nil
}

// earlyBy is how long a submission that would come now is to wait, of a subject that is so far ahead of its minute: as many as
// the limit may come at once.
func earlyBy(ahead time.Duration, perMinute int64) time.Duration {
	if perMinute <= 0 {
		return 0
	}
	return max(ahead-time.Duration(perMinute-1)*(time.Minute/time.Duration(perMinute)), 0)
}
