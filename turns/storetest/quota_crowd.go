package storetest

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func quotasAtOnce() []promise {
	return []promise{
		{"the last places of a quota go to as many of many claims at once", theLastPlacesGoOnce},
		{"the last place goes to one of a batch and others beside it", theLastPlaceAcrossBatches},
		{"no more are submitted at once than a minute has", aMinuteAtOnce},
		{"of a settlement and a further attempt at once, the attempt has its share", aSettlementAndAnAttemptAtOnce},
		{"batches of the same subjects in opposite orders all end", batchesOfSubjectsAllEnd},
		{"what is charged is the sum of the reservations, whatever a crowd does", theChargeIsTheSum},
	}
}

// oneConversationEach are claims of new conversations, by subjects in turn.
func (w *world) oneConversationEach(n int, limits turns.SubmissionLimits, subjects ...string) []turns.Claim {
	claims := make([]turns.Claim, n)
	for i := range claims {
		c := w.first(newConversation())
		c.Subject = subjects[i%len(subjects)]
		claims[i] = reserving(c, limits)
	}
	return claims
}

func theLastPlacesGoOnce(t *testing.T, w *world) {
	limits := bounds()
	limits.TenantTurns = 3
	require.EqualValues(t, 3, w.tryClaims(w.oneConversationEach(12, limits, "a", "b")))
	require.EqualValues(t, 3, w.count("SELECT turns FROM quotas WHERE subject = ''"))
	require.EqualValues(t, 3, w.count("SELECT count(*) FROM quota_reservations"))
	require.EqualValues(t, 3, w.count("SELECT count(*) FROM conversations"))
	limits.SubjectTokens = 450
	require.LessOrEqual(t, w.tryClaims(w.oneConversationEach(12, turns.SubmissionLimits{SubjectTokens: 450}, "c")), int64(4))
	require.EqualValues(t, 400, w.count("SELECT tokens FROM quotas WHERE subject = 'c'"))
}

func theLastPlaceAcrossBatches(t *testing.T, w *world) {
	limits := turns.SubmissionLimits{SubjectTurns: 5}
	var won, failed, met atomic.Int64
	atOnce(6, func(int) {
		results, err := w.Store.Claim(w.ctx, w.oneConversationEach(4, limits, "a", "b"))
		if err != nil {
			failed.Add(1)
		}
		for _, r := range results {
			if r.Won {
				won.Add(1)
			}
			if r.Met != nil {
				met.Add(1)
			}
		}
	})
	require.Zero(t, failed.Load())
	require.EqualValues(t, 10, won.Load())
	require.EqualValues(t, 14, met.Load(), "nobody is left without an answer")
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM quotas WHERE turns = 5"))
}

func aMinuteAtOnce(t *testing.T, w *world) {
	require.EqualValues(t, 3, w.tryClaims(w.oneConversationEach(12, turns.SubmissionLimits{PerMinute: 3}, "a")))
}

func aSettlementAndAnAttemptAtOnce(t *testing.T, w *world) {
	c := newConversation()
	claim := w.win(reserving(w.first(c), bounds()))
	for range 10 {
		w.finish(abandoning(claim, 0, turns.ReasonProviderError))
		next := reserving(w.again(c, claim.Turn), bounds())
		var failed error
		var won bool
		atOnce(2, func(i int) {
			if i == 0 {
				failed = w.Store.SettleReservations(w.ctx, []turns.ReservationKey{reservationOf(claim)})
			} else {
				results, err := w.Store.Claim(w.ctx, []turns.Claim{next})
				won = err == nil && results[0].Won
			}
		})
		require.NoError(t, failed)
		require.True(t, won)
		claim = next
		require.EqualValues(t, 1, w.count("SELECT count(*) FROM quota_reservations WHERE open AND turns = 1"))
		w.sumsHold()
	}
}

func batchesOfSubjectsAllEnd(t *testing.T, w *world) {
	var failed atomic.Int64
	atOnce(6, func(i int) {
		subjects := []string{"a", "b", "c", "d"}
		if i%2 == 1 {
			subjects = []string{"d", "c", "b", "a"}
		}
		if _, err := w.Store.Claim(w.ctx, w.oneConversationEach(4, bounds(), subjects...)); err != nil {
			failed.Add(1)
		}
	})
	require.Zero(t, failed.Load())
	require.EqualValues(t, 24, w.count("SELECT turns FROM quotas WHERE subject = ''"))
	w.sumsHold()
}

// sumsHold demands that each row of quotas is the sum of the reservations that are charged in it.
func (w *world) sumsHold() {
	w.t.Helper()
	sum := func(column string) string {
		return "(SELECT COALESCE(sum(r." + column + "), 0) FROM quota_reservations r WHERE r.tenant = q.tenant AND r.day = q.day" +
			" AND CASE WHEN q.subject = '' THEN r.of_tenant ELSE r.of_subject AND r.subject = q.subject END)"
	}
	require.Zero(w.t, w.count("SELECT count(*) FROM quotas q WHERE q.day <> '1970-01-01' AND (q.turns <> "+sum("turns")+
		" OR q.tokens <> "+sum("tokens")+")"), "a day's quota is not the sum of its reservations")
}

// quotaCrowd is workers who claim, end, hold, settle and delete in few conversations at once.
type quotaCrowd struct {
	*world
	convs  []conversation
	failed atomic.Value
}

// step does one thing to one of the conversations, as it stands; what it loses it leaves to the others.
func (q *quotaCrowd) step(r *rand.Rand) error {
	c := q.convs[r.IntN(len(q.convs))]
	st, err := q.Store.Lookup(q.ctx, turns.LookupQuery{Key: c.key})
	if err != nil || st.LastTurn == (turns.TurnID{}) {
		return errors.Join(err, q.claimOne(r, c, turns.TurnID{}))
	}
	key := turns.ReservationKey{Key: c.key, Turn: st.LastTurn, Generation: 1 + int32(r.IntN(2))}
	switch n := r.IntN(20); {
	case n < 5:
		return q.claimOne(r, c, turns.TurnID{})
	case n < 8:
		return q.claimOne(r, c, st.LastTurn)
	case n < 13:
		return q.endOne(r, c, st)
	case n < 15:
		return q.Store.SettleReservations(q.ctx, []turns.ReservationKey{key})
	case n < 17:
		_, err = q.Store.SettleOpen(q.ctx, "tenant", []string{"", "a", "b"}[r.IntN(3)], 3)
	case n < 19:
		e := q.enqueueing(c, 3)
		e.Reserve = &turns.Reservation{Subject: "a", Tokens: 50, Limits: crowdLimits}
		_, err = q.Store.Enqueue(q.ctx, e)
	default:
		_, err = q.Store.DeleteTurn(q.ctx, c.key, st.LastTurn, manyRows)
	}
	return err
}

var crowdLimits = turns.SubmissionLimits{SubjectTurns: 20, TenantTurns: 30, TenantTokens: 100_000}

// claimOne claims a new turn or, of a stored one, a further attempt or another generation.
func (q *quotaCrowd) claimOne(r *rand.Rand, c conversation, turn turns.TurnID) error {
	st, err := q.Store.Lookup(q.ctx, turns.LookupQuery{Key: c.key, Turn: turn})
	if err != nil || st.Running != nil {
		return err
	}
	claim := q.first(c)
	claim.ExpectVersion, claim.NextSeq, claim.Subject = st.Version, max(1, st.NextSeq), []string{"a", "b"}[r.IntN(2)]
	if claim.NewTurn.Parent = st.Leaf; st.Turn != nil && st.Newest != nil {
		claim.NewTurn, claim.Turn, claim.Reply.Attempt, claim.Reply.Generation = nil, st.Turn.ID, st.Newest.Attempt+1, st.Turn.Generation
		if st.Live != nil {
			claim.Supersede = st.Live.ID
			claim.Reply.Generation++
		}
	}
	_, err = q.Store.Claim(q.ctx, []turns.Claim{reserving(claim, crowdLimits)})
	return err
}

// endOne ends the reply in flight in some way, or takes the first turn out of line.
func (q *quotaCrowd) endOne(r *rand.Rand, c conversation, st turns.Standing) error {
	if st.Running == nil {
		if len(st.Line) == 0 {
			return nil
		}
		_, err := q.Store.LeaveLine(q.ctx, turns.Departure{Key: c.key, ExpectVersion: st.Version, Turn: st.Line[0].Turn,
			Verb: turns.VerbCancel, Reason: turns.ReasonCancelled, Reply: newReplyID(), Owner: q.worker, Model: "demo"})
		return err
	}
	claim := turns.Claim{Key: c.key, Reply: turns.NewReply{ID: st.Running.ID, Owner: st.Running.Owner}}
	reasons := []turns.Reason{turns.ReasonProviderError, turns.ReasonEmpty, turns.ReasonShutdown, turns.ReasonAmbiguous}
	e := abandoning(claim, 0, reasons[r.IntN(len(reasons))])
	switch r.IntN(3) {
	case 0:
		e = completing(claim, 0, whole("a"))
	case 1:
		e = holding(claim, 0)
	}
	e.Call = nil // what was open of it is closed by a guess
	_, err := q.Store.End(q.ctx, []turns.Ending{e})
	return err
}

func theChargeIsTheSum(t *testing.T, w *world) {
	q := &quotaCrowd{world: w}
	for range 4 {
		q.convs = append(q.convs, newConversation())
	}
	atOnce(6, func(i int) {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		for range 60 {
			if err := q.step(r); err != nil && turns.CodeOf(err) != turns.CodeNotFound {
				q.failed.CompareAndSwap(nil, err.Error())
			}
		}
	})
	require.Nil(t, q.failed.Load())
	w.sumsHold()
	require.Zero(t, w.count("SELECT count(*) FROM quotas WHERE subject = '' AND (turns > 30 OR tokens > 100000)"))
	w.exec("UPDATE turns SET status = 'abandoned', reason = 'shutdown', next_lookup_at = NULL, end_time = create_time WHERE status IN ('in_flight', 'held')")
	w.exec("UPDATE turns SET waiting = ''")
	for settled := 1; settled > 0; {
		var err error
		settled, err = w.Store.SettleOpen(w.ctx, "", "", 7)
		require.NoError(t, err)
	}
	require.Zero(t, w.open())
	w.sumsHold()
	w.chargesFollow()
	require.Greater(t, w.count("SELECT count(*) FROM quota_reservations"), int64(5), "the crowd did something")
}

// chargesFollow demands that each closed reservation of a turn that is stored is what its rows say, in words of its own.
func (w *world) chargesFollow() {
	w.t.Helper()
	const newest = "(SELECT a.reason FROM turns a WHERE a.conversation_key = q.conversation_key AND a.responds_to = q.turn_id AND" +
		" a.generation = q.generation ORDER BY CASE WHEN a.status = 'abandoned' THEN 1 ELSE 0 END, a.attempt DESC LIMIT 1)"
	const taken = "(SELECT sum(p.input_tokens + p.output_tokens) FROM provider_calls p WHERE p.conversation_key = q.conversation_key AND" +
		" p.turn_id = q.turn_id AND p.generation = q.generation)"
	require.Zero(w.t, w.count("SELECT count(*) FROM quota_reservations q JOIN turns u ON u.conversation_key = q.conversation_key AND"+
		" u.id = q.turn_id AND NOT u.erased WHERE NOT q.open AND (q.tokens <> COALESCE("+taken+", 0) OR q.turns <> CASE WHEN "+taken+
		" IS NULL OR "+newest+" IN ('provider_error', 'provider_refused', 'empty') THEN 0 ELSE 1 END)"))
}
