package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// bounded by both quotas, as most reservations are.
func lanesFor(tenant turns.Tenant, subject string) []lane {
	return lanesOf(tenant, &turns.Reservation{Subject: subject, Limits: turns.SubmissionLimits{SubjectTurns: 1, TenantTokens: 1}})
}

func TestAReservationWaitsForTheRowsThatItLocks(t *testing.T) {
	subject, tenant := lane{ofSubject, "t", "s"}, lane{ofTenant, "t", ""}
	for _, c := range []struct {
		limits     turns.SubmissionLimits
		submission bool
		want       []lane
	}{
		{turns.SubmissionLimits{}, true, nil},
		{turns.SubmissionLimits{PerMinute: 1}, false, nil},
		{turns.SubmissionLimits{PerMinute: 1}, true, []lane{subject}},
		{turns.SubmissionLimits{SubjectTokens: 1}, false, []lane{subject}},
		{turns.SubmissionLimits{TenantTurns: 1}, true, []lane{tenant}},
		{turns.SubmissionLimits{SubjectTurns: 1, TenantTokens: 1}, true, []lane{subject, tenant}},
	} {
		require.Equal(t, c.want, lanesOf("t", &turns.Reservation{Subject: "s", Limits: c.limits, Submission: c.submission}), "%+v", c)
	}
	require.Equal(t, turns.CountedAs(""), lanesFor("t", "")[0].subject, "a caller without a subject is not its tenant")
}

func TestWhoeverWaitsForItsSubjectKeepsNobodyElseOfItsTenantOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLanes(8) // two for each row
		var all sync.WaitGroup
		release := make(chan struct{})
		for range 20 {
			all.Go(func() {
				leave, err := l.enter(t.Context(), lanesFor("t", "busy"), time.Hour)
				if err == nil {
					<-release
					leave()
				}
			})
		}
		synctest.Wait()
		_, err := l.enter(t.Context(), lanesFor("t", "other"), time.Second)
		require.ErrorIs(t, err, errSlow, "both of the tenant's places are taken")
		leave, err := l.enter(t.Context(), lanesFor("u", "other"), time.Second)
		require.NoError(t, err, "another tenant has its own")
		leave()

		for range 2 {
			leave, err := l.enter(t.Context(), []lane{{ofSubject, "v", "busy"}}, time.Second)
			require.NoError(t, err)
			defer leave()
		}
		for range 20 {
			all.Go(func() {
				_, err := l.enter(t.Context(), lanesFor("v", "busy"), time.Minute)
				if !errors.Is(err, errSlow) {
					t.Errorf("both of the subject's places are taken: %v", err)
				}
			})
		}
		synctest.Wait()
		leave, err = l.enter(t.Context(), lanesFor("v", "other"), time.Second)
		require.NoError(t, err, "those who wait for their subject have nothing of their tenant")
		leave()
		close(release)
		all.Wait()
		require.Len(t, l.used, 2, "nothing is kept of who has left, but what two have still")
	})
}

func TestClaimsLeaveConnectionsToOthersWhoeverTheyAreOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for conns, most := range map[int]int64{1: 1, 2: 2, 5: 4, 13: 10, 100: 75} {
			l := newLanes(conns)
			var in atomic.Int64
			var all sync.WaitGroup
			release := make(chan struct{})
			for i := range 200 {
				all.Go(func() {
					leave, err := l.enter(t.Context(), lanesFor(turns.Tenant(rune('a'+i)), "s"), time.Hour)
					if err == nil {
						in.Add(1)
						<-release
						leave()
					}
				})
			}
			synctest.Wait()
			require.Equal(t, most, in.Load(), "of %d", conns)
			close(release)
			all.Wait()
			require.Empty(t, l.used)
		}
	})
}

func TestWhoeverGivesUpGivesBackWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lanes
		stay, err := l.enter(t.Context(), []lane{{ofTenant, "t", ""}}, time.Second)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = l.enter(ctx, lanesFor("t", "s"), time.Hour)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, errSlow)
		stay()
		require.Empty(t, l.used)
	})
}

func TestBatchesOfTheSameRowsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lanes{each: 1, all: 8}
		forth := append(lanesFor("t", "a"), lanesFor("u", "b")...)
		back := slices.Clone(append(forth, forth...)) // and each of them twice
		slices.Reverse(back)
		var all sync.WaitGroup
		for i := range 50 {
			of := [][]lane{forth, back}[i%2]
			all.Go(func() {
				leave, err := l.enter(t.Context(), slices.Clone(of), time.Hour)
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond) // of a clock that nobody waits for
				leave()
			})
		}
		all.Wait()
		require.Empty(t, l.used)
	})
}
