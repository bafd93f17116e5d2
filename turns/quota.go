package turns

import (
	"cmp"
	"context"
	"time"
)

// SubmissionLimits bound what one subject, and all of a tenant together, may submit; a zero field bounds nothing. Replays are outside
// them.
type SubmissionLimits struct {
	// PerMinute bounds the submissions of one subject: the turns that it sends and the replies that it has made anew. As many
	// may come at once after a minute of silence.
	PerMinute int64
	// SubjectTurns and SubjectTokens are the quotas of one subject a day, TenantTurns and TenantTokens those of its tenant. A
	// day begins at midnight UTC, by the database's clock. Tokens are input and output together.
	SubjectTurns  int64
	SubjectTokens int64
	TenantTurns   int64
	TenantTokens  int64
}

// interval is the time that one submission takes of a minute.
func (l SubmissionLimits) interval() time.Duration {
	return max(time.Minute/time.Duration(l.PerMinute), time.Microsecond)
}

// NextInTime is when the submission after one would be in time, were there no burst, if that one was at a time.
func (l SubmissionLimits) NextInTime(at time.Time) time.Time { return at.Add(l.interval()) }

// Early is how long a submission that would come now is to wait, of a subject that is so far ahead of its minute: as many as
// the limit may come at once. Used is how many came before it that count still.
func (l SubmissionLimits) Early(ahead time.Duration) (wait time.Duration, used int64) {
	if l.PerMinute <= 0 {
		return 0, 0
	}
	each := l.interval()
	return max(ahead-time.Duration(l.PerMinute-1)*each, 0), int64((ahead + each - 1) / each)
}

// CountedAs is the name under which a subject's use is counted. The empty one is that of its tenant as a whole, so a caller
// without a subject has another.
func CountedAs(subject string) string { return cmp.Or(subject, " ") }

// Reservation asks for a share of a day's quotas for one turn and generation, in the transaction that stores the turn or
// claims its reply. There is one for each: an attempt that follows another within the generation uses what that one left.
type Reservation struct {
	Subject string
	// Tokens is the most that the attempt is thought to take, on top of what earlier ones of its generation took.
	Tokens int64
	Limits SubmissionLimits
	// Submission says that it counts against PerMinute: it was sent by a client now, and is no start of a turn from its line.
	Submission bool
}

// ReservationKey names a reservation.
type ReservationKey struct {
	Key        ConversationKey
	Turn       TurnID
	Generation int32
}

// LimitMet says which limit a reservation met. Nothing of the item was written then.
type LimitMet struct {
	// Limit is what was met: PerMinute, or turns or tokens a day.
	Limit LimitKind
	// OfTenant says that it is the tenant's quota and not the subject's.
	OfTenant bool
	// Max is the limit, Used what was charged before, and Asked what the reservation wanted on top.
	Max, Used, Asked int64
	// Wait is how long until the same submission may be let in: the rest of the day, or until the subject is in time again.
	Wait time.Duration
}

// LimitKind is a kind of limit.
type LimitKind string

// The kinds of limits.
const (
	LimitSubmissions LimitKind = "submissions_per_minute"
	LimitTurns       LimitKind = "turns_per_day"
	LimitTokens      LimitKind = "tokens_per_day"
)

// Quotas is the part of a Store that counts what subjects and tenants use a day. A charge is made with a claim that is won, or an
// enqueueing, under the limits that it names; a replacement makes none. Where no quota bounds a subject, or its tenant, its
// use is not counted. A settlement moves it, by the difference, to what the turn and generation has
// come to, so that settlements may come late, in any order, and again:
//
//   - in line, in flight or held, or without a word of what became of it: what was reserved;
//   - complete, or abandoned with an outcome that nobody knows or that a provider may have billed: one turn, and the tokens of
//     its calls by the ledger;
//   - refused by the provider, failed for certain, or empty: no turn, and the tokens of its calls by the ledger;
//   - taken out of line, or released from a hold: nothing.
type Quotas interface {
	// SettleReservations settles those named; one that does not exist, or is named again, is passed over.
	SettleReservations(ctx context.Context, keys []ReservationKey) error
	// SettleOpen settles reservations whose turns have come to an end, the oldest first and at most limit: those of a
	// tenant's subject, or of the whole tenant if subject is empty, or of all if tenant is empty too. It says how many it settled.
	SettleOpen(ctx context.Context, tenant Tenant, subject string, limit int) (settled int, err error)
	// QuotaUsed reads what a subject is charged with today, by the name that it is counted as, or the tenant if that is empty.
	// It locks nothing: by the time it is read a claim may have changed it.
	QuotaUsed(ctx context.Context, tenant Tenant, subject string) (QuotaUse, error)
	// QuotaSettled reads what of the same is settled. The rest is held for turns that run, are held or stand in line, or that
	// have ended and are not settled yet: what they turn out not to take is given back. It says nothing of Ahead.
	QuotaSettled(ctx context.Context, tenant Tenant, subject string) (QuotaUse, error)
	// ForgetQuotas removes quotas and settled reservations of days that ended longer than age ago, at most limit of each. It
	// says whether more are left.
	ForgetQuotas(ctx context.Context, age time.Duration, limit int) (more bool, err error)
}

// QuotaUse is what today's quota is charged with.
type QuotaUse struct {
	Turns  int64
	Tokens int64
	// Left is the rest of the day.
	Left time.Duration
	// Ahead is how far the subject's submissions are ahead of its minute: from then on one more would be in time, were there
	// no burst.
	Ahead time.Duration
}
