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

// heldPause is when to come again for what running turns hold: a reply takes from seconds to minutes, and each time costs a
// look.
const heldPause = 10 * time.Second

// met acts on a limit that a reservation has met: the first time that is a quota, what has ended and still counts in full is
// settled, and nil asks to look again; else it refuses.
func (a *arrival) met(ctx context.Context, m LimitMet) error {
	switch {
	case m.Limit == LimitSubmissions:
		return tooManySubmissions(m.Max, m.Wait)
	case m.Asked > m.Max:
		return tooLargeForADay(m, a.caller)
	case !a.settledOpen:
		a.settledOpen = true
		return a.settleEnded(ctx, a.caller, m.OfTenant)
	}
	settled, err := a.settledOf(ctx, a.caller, m)
	if err != nil {
		return err
	}
	return quotaExceeded(m, a.caller, settled)
}

// comesBack says that a limit would not be met if the turns that hold something of it gave it all back.
func (m LimitMet) comesBack(settled QuotaUse) bool { return settled.of(m.Limit)+m.Asked <= m.Max }

// of is the part of a use that a kind of limit bounds.
func (u QuotaUse) of(kind LimitKind) int64 {
	if kind == LimitTurns {
		return u.Turns
	}
	return u.Tokens
}

// quotaError is a refusal for a quota, without its words.
func quotaError(m LimitMet, c Caller) (e *Error, scope string) {
	scope, whose := scopeSubject, scopeSubject+":"+c.Subject
	if m.OfTenant {
		scope, whose = scopeTenant, scopeTenant
	}
	return &Error{Code: CodeQuotaExceeded, Meta: map[string]string{
		"quota": string(m.Limit), "scope": scope, "subject": whose, "limit": strconv.FormatInt(m.Max, 10),
		"used": strconv.FormatInt(m.Used, 10), "asked": strconv.FormatInt(m.Asked, 10)}}, scope
}

// tooLargeForADay refuses what no day has room for.
func tooLargeForADay(m LimitMet, c Caller) *Error {
	e, scope := quotaError(m, c)
	e.Final = true
	e.Problem = "the turn alone may take more tokens than this " + scope + " has for a whole day, so that waiting does not help; ask for less output, or send less"
	return e
}

// quotaExceeded says which quota is used up, and what helps: the next day or, where running turns hold what is missing, a moment.
func quotaExceeded(m LimitMet, c Caller, settled QuotaUse) *Error {
	e, scope := quotaError(m, c)
	e.Meta["held"] = strconv.FormatInt(max(m.Used-settled.of(m.Limit), 0), 10)
	e.RetryAfter = m.Wait
	comes := m.comesBack(settled)
	if comes {
		e.RetryAfter = min(heldPause, m.Wait)
	}
	switch {
	case comes && m.Limit == LimitTurns:
		e.Problem = "this " + scope + " has no turn left of the day while its running turns hold theirs, which they give back if they fail; send the same turn again in a moment"
	case comes:
		e.Problem = "this " + scope + " has too few tokens left of the day while its running turns hold what they may take; send the same turn again in a moment, or ask for less"
	case m.Limit == LimitTurns:
		e.Problem = "this " + scope + " has used up its turns of the day; send the same turn again once the day has turned"
	default:
		e.Problem = "this " + scope + " has too few tokens left of the day; send the same turn again once the day has turned, or ask for less"
	}
	return e
}

// checkQuota looks whether a turn's reservation will be let in, before a reply is stopped for it: what is refused stops
// nothing. Only the claim decides, so that two turns at the same moment may both pass here and one of them there. It alone sees
// what a further attempt of a stored turn is charged with already, so that such a one meets no quota here.
func (a *arrival) checkQuota(ctx context.Context) error {
	claim := a.pending.claim
	if claim.Reserve == nil || a.stopped {
		return nil
	}
	r := *claim.Reserve
	if claim.NewTurn == nil {
		r.Limits = SubmissionLimits{PerMinute: r.Limits.PerMinute}
	}
	for {
		m, err := a.wouldMeet(ctx, r)
		if m == nil || err != nil {
			return err
		}
		if err := a.met(ctx, *m); err != nil {
			return err
		}
	}
}

// wouldMeet is the limit that a submission's reservation would meet now, nil if none.
func (a *arrival) wouldMeet(ctx context.Context, r Reservation) (*LimitMet, error) {
	l := r.Limits
	if l.PerMinute > 0 || l.SubjectTurns > 0 || l.SubjectTokens > 0 {
		used, err := a.store.QuotaUsed(ctx, a.caller.Tenant, CountedAs(r.Subject))
		if err != nil {
			return nil, err
		}
		if wait, before := l.Early(used.Ahead); wait > 0 {
			return &LimitMet{Limit: LimitSubmissions, Max: l.PerMinute, Used: before, Asked: 1, Wait: wait}, nil
		}
		if m := used.meets(l.SubjectTurns, l.SubjectTokens, r.Tokens); m != nil {
			return m, nil
		}
	}
	if l.TenantTurns <= 0 && l.TenantTokens <= 0 {
		return nil, nil
	}
	used, err := a.store.QuotaUsed(ctx, a.caller.Tenant, "")
	if err != nil {
		return nil, err
	}
	m := used.meets(l.TenantTurns, l.TenantTokens, r.Tokens)
	if m != nil {
		m.OfTenant = true
	}
	return m, nil
}

// meets is the quota that one more turn would meet, nil if none; one of zero bounds nothing.
func (u QuotaUse) meets(turns, tokens, asked int64) *LimitMet {
	switch {
	case turns > 0 && u.Turns+1 > turns:
		return &LimitMet{Limit: LimitTurns, Max: turns, Used: u.Turns, Asked: 1, Wait: u.Left}
	case tokens > 0 && u.Tokens+asked > tokens:
		return &LimitMet{Limit: LimitTokens, Max: tokens, Used: u.Tokens, Asked: asked, Wait: u.Left}
	}
	return nil
}
