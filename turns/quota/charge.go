package quota

import (
	"maps"
	"slices"
	"time"

	"github.com/turnd/turnd/turns"
)

// Ask is one reservation that is asked for.
type Ask struct {
	turns.ReservationKey
	Tenant  turns.Tenant
	Reserve turns.Reservation
	// Old is what is stored of it, nil if nothing is, and Spent are the tokens of its calls until now, by the ledger.
	Old   *Share
	Spent int64
}

// charge is what one reservation would write.
type charge struct {
	ask   Ask
	share Share
	moves moves
}

// Charges are the reservations of one transaction.
type Charges struct {
	day     string
	charges []charge
}

// Plan works out what reservations would charge on a day.
func Plan(asks []Ask, day string) Charges {
	c := Charges{day: day, charges: make([]charge, len(asks))}
	for i, a := range asks {
		c.charges[i] = a.charge(day)
	}
	return c
}

// charge works out the share that is asked for, and moves the rows by the difference to what is stored. What is still charged
// with a turn takes no other. What was charged on another day comes over to this one, except for the tokens that the ledger
// has of that day.
func (a Ask) charge(day string) charge {
	l := a.Reserve.Limits
	share := Share{
		ReservationKey: a.ReservationKey, Tenant: a.Tenant, Subject: a.Reserve.Subject, Day: day, Open: true,
		OfSubject: l.SubjectTurns > 0 || l.SubjectTokens > 0, OfTenant: l.TenantTurns > 0 || l.TenantTokens > 0,
		Turns: 1, Tokens: max(a.Reserve.Tokens, 0), Before: a.Spent,
	}
	m := moves{}
	if old := a.Old; old != nil {
		m.add(old.names(), -old.Turns, -old.Tokens)
		taken := max(a.Spent-old.Before, 0)
		if old.Day == day {
			share.Subject, share.Before, share.Tokens = old.Subject, old.Before, max(old.Tokens, share.Tokens+taken)
			share.OfSubject, share.OfTenant = share.OfSubject || old.OfSubject, share.OfTenant || old.OfTenant
		} else if old.Open {
			m.add(old.names(), 0, taken)
		} else {
			m.add(old.names(), 0, old.Tokens)
		}
	}
	m.add(share.names(), share.Turns, share.Tokens)
	maps.DeleteFunc(m, func(_ Name, v Move) bool { return v.Turns == 0 && v.Tokens == 0 })
	return charge{a, share, m}
}

// bucket is the row that counts the submissions of an ask; ok is false if none is counted.
func (a Ask) bucket() (n Name, ok bool) {
	return Name{a.Tenant, turns.CountedAs(a.Reserve.Subject), BucketDay}, a.Reserve.Submission && a.Reserve.Limits.PerMinute > 0
}

// Names are the rows that the charges look at and move, in the order in which they are to be locked. Those that are to be
// made first, where they are not there, come in Missing's order too.
func (c Charges) Names() []Name {
	all := map[Name]bool{}
	for _, one := range c.charges {
		for n := range one.moves {
			all[n] = true
		}
		if n, ok := one.ask.bucket(); ok {
			all[n] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), Name.Compare)
}

// Made are those of the names that are to be made where they are not there: a former day's row that is gone stays gone.
func (c Charges) Made() []Name {
	return slices.DeleteFunc(c.Names(), func(n Name) bool { return n.Day != c.day && n.Day != BucketDay })
}

// Refusal is a charge that met a limit.
type Refusal struct {
	// N is its place among those that were planned.
	N   int
	Met turns.LimitMet
	// Alone says that it would have met it without the others of the transaction too.
	Alone bool
}

// Admit decides the charges, one after the other, by the rows as they are stored and locked. Refused ones are not in what is to
// be written.
func (c Charges) Admit(rows []Row, now time.Time) (w Writes, refused []Refusal) {
	b := book{day: c.day, now: now, stored: map[Name]Row{}, moves: moves{}}
	for _, r := range rows {
		b.stored[r.Name] = r
	}
	for n, one := range c.charges {
		if met := b.meets(one, b.moves); met != nil {
			refused = append(refused, Refusal{n, *met, b.meets(one, nil) != nil})
			continue
		}
		b.charge(one)
		w.Shares = append(w.Shares, one.share)
	}
	w.Moves = slices.SortedFunc(maps.Values(b.moves), func(x, y Move) int { return x.Compare(y.Name) })
	return w, refused
}
