// Package quota decides what reservations charge and what settlements leave of them, for every engine alike. It is told what
// is stored, by a caller who holds the locks of it, and says what is to be stored.
package quota

import (
	"cmp"
	"time"

	"github.com/turnd/turnd/turns"
)

// BucketDay is the day of a subject's row that counts its submissions, and no turns and tokens.
const BucketDay = "1970-01-01"

// Name names a row of quotas. Day is as DayOf gives it, Subject empty for the tenant as a whole.
type Name struct {
	Tenant  turns.Tenant
	Subject string
	Day     string
}

// Compare orders names as rows are locked: a tenant's own row before those of its subjects.
func (n Name) Compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Tenant, o.Tenant), cmp.Compare(n.Subject, o.Subject), cmp.Compare(n.Day, o.Day))
}

// DayOf is the day of a time.
func DayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Row is a row of quotas as it is stored.
type Row struct {
	Name
	Turns  int64
	Tokens int64
	// NextAt is zero where it was never set.
	NextAt time.Time
}

// Share is a reservation as it is stored: what its turn and generation is charged with on a day.
type Share struct {
	turns.ReservationKey
	Tenant  turns.Tenant
	Subject string
	Day     string
	// OfSubject and OfTenant say which rows are charged: those that some limit bounded.
	OfSubject bool
	OfTenant  bool
	Turns     int64
	Tokens    int64
	// Before are the ledger's tokens that earlier days were charged with.
	Before int64
	Open   bool
}

// Move is what is to be added to a row of quotas. NextAt is zero if it stays.
type Move struct {
	Name
	Turns  int64
	Tokens int64
	NextAt time.Time
}

// Writes are the reservations to store, and the rows of quotas to move, in the order of their names.
type Writes struct {
	Shares []Share
	Moves  []Move
}

// ReservedBy is the subject of shares that are counted under a name.
func ReservedBy(counted string) string {
	if counted == turns.CountedAs("") {
		return ""
	}
	return counted
}

// names are the rows that a share is charged in.
func (s Share) names() []Name {
	var names []Name
	if s.OfTenant {
		names = append(names, Name{Tenant: s.Tenant, Day: s.Day})
	}
	if s.OfSubject {
		names = append(names, Name{s.Tenant, turns.CountedAs(s.Subject), s.Day})
	}
	return names
}

// moves gathers what is to be added, by row.
type moves map[Name]Move

func (m moves) add(names []Name, turns, tokens int64) {
	for _, n := range names {
		v := m[n]
		v.Name, v.Turns, v.Tokens = n, v.Turns+turns, v.Tokens+tokens
		m[n] = v
	}
}
