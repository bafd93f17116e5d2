package quota

import (
	"time"

	"github.com/turnd/turnd/turns"
)

// book is the rows as they are stored, and what is added to them so far.
type book struct {
	day    string
	now    time.Time
	stored map[Name]Row
	moves  moves
}

func (b *book) charge(c charge) {
	for n, v := range c.moves {
		b.moves.add([]Name{n}, v.Turns, v.Tokens)
	}
	if n, ok := c.ask.bucket(); ok {
		v := b.moves[n]
		v.Name, v.NextAt = n, c.ask.Reserve.Limits.NextInTime(b.nextAt(n, b.moves))
		b.moves[n] = v
	}
}

// meets says which limit a charge meets beside what is added already; nil if none.
func (b *book) meets(c charge, added moves) *turns.LimitMet {
	if met := b.early(c.ask, added); met != nil {
		return met
	}
	l := c.ask.Reserve.Limits
	for _, n := range c.share.names() {
		maxTurns, maxTokens := l.SubjectTurns, l.SubjectTokens
		if n.Subject == "" {
			maxTurns, maxTokens = l.TenantTurns, l.TenantTokens
		}
		row, a, more := b.stored[n], added[n], c.moves[n]
		if met := b.over(turns.LimitTurns, n, maxTurns, row.Turns+a.Turns, more.Turns); met != nil {
			return met
		}
		if met := b.over(turns.LimitTokens, n, maxTokens, row.Tokens+a.Tokens, more.Tokens); met != nil {
			return met
		}
	}
	return nil
}

// over says that a quota would be exceeded. What asks for nothing more is within what it has.
func (b *book) over(kind turns.LimitKind, n Name, most, used, asked int64) *turns.LimitMet {
	if most <= 0 || asked <= 0 || used+asked <= most {
		return nil
	}
	return &turns.LimitMet{Limit: kind, OfTenant: n.Subject == "", Max: most, Used: used, Asked: asked, Wait: b.untilMidnight()}
}

func (b *book) untilMidnight() time.Duration {
	begin, err := time.Parse(time.DateOnly, b.day)
	if err != nil {
		return 24 * time.Hour
	}
	return max(begin.AddDate(0, 0, 1).Sub(b.now), 0)
}

// nextAt is from when on a submission would be in time, were there no burst.
func (b *book) nextAt(n Name, added moves) time.Time {
	at := b.stored[n].NextAt
	if a := added[n].NextAt; !a.IsZero() {
		at = a
	}
	if at.Before(b.now) {
		return b.now
	}
	return at
}

// early says that a submission comes before its subject is in time again.
func (b *book) early(a Ask, added moves) *turns.LimitMet {
	n, ok := a.bucket()
	if !ok {
		return nil
	}
	wait, used := a.Reserve.Limits.Early(b.nextAt(n, added).Sub(b.now))
	if wait == 0 {
		return nil
	}
	return &turns.LimitMet{Limit: turns.LimitSubmissions, Max: a.Reserve.Limits.PerMinute, Used: used, Asked: 1, Wait: wait}
}
