package postgres

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// reserving is a claim of a new turn that asks for 100 tokens of its subject's and tenant's day.
func reserving(owner turns.WorkerID, limits turns.SubmissionLimits) turns.Claim {
	c := newClaim(owner)
	c.Subject = "subject"
	c.Reserve = &turns.Reservation{Subject: "subject", Tokens: 100, Limits: limits}
	return c
}

func reservationOf(c turns.Claim) []turns.ReservationKey {
	return []turns.ReservationKey{{Key: c.Key, Turn: c.Turn, Generation: c.Reply.Generation}}
}

func TestAClaimThatWaitedForTheLastPlaceOfAQuotaMeetsIt(t *testing.T) {
	d := open(t)
	limits := turns.SubmissionLimits{TenantTurns: 2}
	first := d.win(t, reserving(d.worker(t), limits))

	s := d.begin(t, `UPDATE quotas SET turns = turns + 1 WHERE subject = ''`)
	result := afterWait(t, d, s, func() (turns.ClaimResult, error) {
		results, err := d.store.Claim(t.Context(), []turns.Claim{reserving(first.Reply.Owner, limits)})
		return results[0], err
	})
	require.False(t, result.Won)
	require.NotNil(t, result.Met)
	require.EqualValues(t, 2, result.Met.Used)
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM conversations`), "nothing of it is written")
}

func TestAClaimThatWaitedForTheFirstRowOfADayCountsBesideIt(t *testing.T) {
	d := open(t)
	limits := turns.SubmissionLimits{SubjectTurns: 1}
	s := d.begin(t, `INSERT INTO quotas (tenant, subject, day, turns) VALUES ('tenant', 'subject', (now() AT TIME ZONE 'UTC')::date, 1)`)
	worker := d.worker(t)
	result := afterWait(t, d, s, func() (turns.ClaimResult, error) {
		results, err := d.store.Claim(t.Context(), []turns.Claim{reserving(worker, limits)})
		return results[0], err
	})
	require.NotNil(t, result.Met)
	require.Zero(t, d.count(t, `SELECT count(*) FROM turns`))
}

func TestASettlementThatWaitedForAFurtherAttemptSeesIt(t *testing.T) {
	d := open(t)
	limits := turns.SubmissionLimits{SubjectTurns: 5}
	c := d.win(t, reserving(d.worker(t), limits))
	e := completing(c)
	e.Verb, e.Status, e.Reason, e.StopReason = turns.VerbAbandon, turns.StatusAbandoned, turns.ReasonProviderError, ""
	_, err := d.store.End(t.Context(), []turns.Ending{e})
	require.NoError(t, err)

	again := newClaim(c.Reply.Owner)
	again.Key, again.Conversation, again.Turn, again.NewTurn = c.Key, c.Conversation, c.Turn, nil
	again.ExpectVersion, again.NextSeq, again.Reply.Attempt = 1, 3, 2
	s := d.uncommittedClaim(t, again)
	s.exec(`UPDATE quota_reservations SET open = true`)
	afterWait(t, d, s, func() (int, error) { return 0, d.store.SettleReservations(t.Context(), reservationOf(c)) })
	require.Equal(t, 1, d.count(t, `SELECT count(*) FROM quota_reservations WHERE open AND turns = 1 AND tokens = 100`))
	require.Equal(t, 1, d.count(t, `SELECT turns FROM quotas`))
}

// batches counts how often a pool sends several statements at once.
type batches struct {
	recorder
	batches int
}

func (b *batches) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	b.batches++
	return ctx
}

// A batch takes one message each way for the claim, the rows, and the writes with their commit. The first use of a connection
// describes the statements.
func TestAClaimWithAReservationIsThreeMessagesAndOneWithoutIsOne(t *testing.T) {
	d := open(t)
	config, err := pgxpool.ParseConfig(d.dsn)
	require.NoError(t, err)
	counted := &batches{}
	config.ConnConfig.Tracer, config.MaxConns = counted, 1
	conns, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(conns.Close)
	worker := d.worker(t)
	p := &pool{Pool: conns, limits: defaultLimits}
	d.store = &Store{pool: p, vital: p, lease: p}
	d.store.groups.open(d.store)
	limits := turns.SubmissionLimits{SubjectTurns: 5}
	for range 2 {
		counted.recorder, counted.batches = recorder{}, 0
		d.win(t, reserving(worker, limits))
		require.Equal(t, 3, counted.batches)
		require.Len(t, counted.statements, 8, "begin, claim, reservation; rows made and locked; both written, commit")
		counted.recorder, counted.batches = recorder{}, 0
		d.win(t, newClaim(worker))
		require.Zero(t, counted.batches)
		require.Len(t, counted.statements, 1)
	}
}

func TestAClaimSentAgainAfterItWasWonChargesNothingAndMeetsNothing(t *testing.T) {
	d := open(t)
	c := reserving(d.worker(t), turns.SubmissionLimits{SubjectTurns: 1})
	d.win(t, c)
	results, err := d.store.Claim(t.Context(), []turns.Claim{c})
	require.NoError(t, err)
	require.False(t, results[0].Won)
	require.Nil(t, results[0].Met)
	require.Equal(t, 1, d.count(t, `SELECT turns FROM quotas`))
}

func TestWhatWasBegunIsTakenBackWhereItWasNotCommitted(t *testing.T) {
	d := open(t)
	spoiled := errors.New("spoiled")
	err := d.store.inOne(t.Context(), func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, "begin")
		require.NoError(t, err)
		_, err = c.Exec(ctx, `INSERT INTO quotas (tenant, subject, day) VALUES ('t', 's', '2001-01-01')`)
		require.NoError(t, err)
		return spoiled
	})
	require.ErrorIs(t, err, spoiled)
	require.Zero(t, d.count(t, `SELECT count(*) FROM quotas`))
	require.NoError(t, d.exec(t.Context(), `SELECT 1`))
}
