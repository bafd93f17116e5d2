package storetest

import (
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/turns"
)

var modelSubjects = []string{"a", "b"}

// reservation is one of a subject, now and then none.
func (d *driver) reservation(rt *rapid.T) *turns.Reservation {
	if rapid.IntRange(0, 3).Draw(rt, "unbounded") == 0 {
		return nil
	}
	return &turns.Reservation{Subject: rapid.SampledFrom(modelSubjects).Draw(rt, "subject"), Tokens: 100, Limits: modelLimits}
}

// admits says whether what would win is let in by its reservation, which is charged then; else it must have met the limit.
func (d *driver) admits(key turns.ReservationKey, r *turns.Reservation, met *turns.LimitMet) bool {
	if r == nil {
		require.Nil(d.t, met)
		return true
	}
	want := d.m.meets(key, r)
	equal(d.t, want, met, cmpopts.IgnoreFields(turns.LimitMet{}, "Wait"))
	if want == nil {
		d.m.charge(key, r)
	}
	return want == nil
}

// pickShare is a reservation's name, now and then one that nothing is reserved under.
func (d *driver) pickShare(rt *rapid.T) turns.ReservationKey {
	if len(d.m.replies) == 0 {
		rt.Skip("no reply yet")
	}
	r := rapid.SampledFrom(d.m.replies).Draw(rt, "reply")
	return turns.ReservationKey{Key: r.claim.Key, Turn: r.claim.Turn,
		Generation: r.claim.Reply.Generation + rapid.SampledFrom([]int32{0, 0, 0, 1}).Draw(rt, "generation")}
}

func (d *driver) settleShares(rt *rapid.T) {
	keys := []turns.ReservationKey{d.pickShare(rt), d.pickShare(rt)}
	require.NoError(d.t, d.Store.SettleReservations(d.ctx, keys))
	for _, key := range keys {
		d.m.settleShare(key)
	}
	d.compareQuotas()
}

func (d *driver) settleEnded(rt *rapid.T) {
	subject := rapid.SampledFrom(append([]string{""}, modelSubjects...)).Draw(rt, "subject")
	settled, err := d.Store.SettleOpen(d.ctx, d.convs[0].tenant, subject, manyRows)
	require.NoError(d.t, err)
	require.Equal(d.t, d.m.settleOpen(subject), settled)
	d.compareQuotas()
}

// compareQuotas asks what everybody is charged with.
func (d *driver) compareQuotas() {
	for _, subject := range append([]string{""}, modelSubjects...) {
		require.Equal(d.t, d.m.charged(subject), d.world.charged(d.convs[0].tenant, subject).Turns, "of %q", subject)
		settled, err := d.Store.QuotaSettled(d.ctx, d.convs[0].tenant, subject)
		require.NoError(d.t, err)
		require.Equal(d.t, d.m.settled(subject), settled.Turns, "settled of %q", subject)
	}
}
