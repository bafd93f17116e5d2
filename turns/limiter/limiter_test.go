package limiter

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func someone(name string) turns.Caller { return turns.Caller{Tenant: "acme", Subject: name} }

func newLimiter(t *testing.T, cfg Config) *Limiter {
	t.Helper()
	l, err := New(cfg)
	require.NoError(t, err)
	return l
}

func TestAMinutesWorthIsLetInAtOnceAndThenOneEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Config{Submissions: 4})
		for range 4 {
			require.Zero(t, l.Submit(someone("ann")))
		}
		wait := l.Submit(someone("ann"))
		require.InDelta(t, 15*time.Second, wait, float64(time.Microsecond))
		require.Zero(t, l.Submit(someone("bob")), "others have a bucket of their own")
		require.Zero(t, l.Submit(turns.Caller{Tenant: "other", Subject: "ann"}), "as has who has the same name elsewhere")
	})
}

func TestWhoWaitsAsLongAsToldIsLetInAndNobodyIsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int64{1, 3, 7, 60, 999, 6000} {
			l := newLimiter(t, Config{Submissions: rate, Lookups: rate})
			for l.Submit(someone("ann")) == 0 {
			}
			for range 3 {
				wait := l.Submit(someone("ann"))
				require.Positive(t, wait)
				time.Sleep(wait - time.Microsecond)
				require.Positive(t, l.Submit(someone("ann")), "%d a minute", rate)
				time.Sleep(time.Microsecond)
				require.Zero(t, l.Submit(someone("ann")), "%d a minute, after %s", rate, wait)
			}
		}
	})
}

func TestARefusalCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Config{Submissions: 1})
		require.Zero(t, l.Submit(someone("ann")))
		for range 1000 {
			require.InDelta(t, time.Minute, l.Submit(someone("ann")), float64(time.Microsecond))
		}
	})
}

func TestWhatIsGivenBackCanBeHadAgainAndNoMoreThanAMinutesWorth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Config{Submissions: 2})
		require.Zero(t, l.Submit(someone("ann")))
		require.Zero(t, l.Submit(someone("ann")))
		l.GiveBack(someone("ann"))
		require.Zero(t, l.Submit(someone("ann")))
		require.Positive(t, l.Submit(someone("ann")))
		for range 9 {
			l.GiveBack(someone("ann"))
		}
		require.Zero(t, l.Submit(someone("ann")))
		require.Zero(t, l.Submit(someone("ann")))
		require.Positive(t, l.Submit(someone("ann")))
	})
}

func TestLooksAreBoundedByTheirRateAndByHowManyAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Config{Lookups: 5, AtOnce: 2})
		first, _ := l.Look(someone("ann"))
		second, _ := l.Look(someone("ann"))
		third, wait := l.Look(someone("ann"))
		require.Nil(t, third)
		require.Equal(t, busyPause, wait)
		other, _ := l.Look(someone("bob"))
		require.NotNil(t, other)
		first()
		first() // twice is once
		for range 3 {
			done, _ := l.Look(someone("ann"))
			require.NotNil(t, done)
			third, _ := l.Look(someone("ann"))
			require.Nil(t, third, "the second is under way still")
			done()
		}
		second()
		none, wait := l.Look(someone("ann"))
		require.Nil(t, none)
		require.InDelta(t, 12*time.Second, wait, float64(time.Microsecond))
	})
}

func TestZeroBoundsNothing(t *testing.T) {
	l := newLimiter(t, Config{})
	for range 10_000 {
		require.Zero(t, l.Submit(someone("ann")))
		done, wait := l.Look(someone("ann"))
		require.NotNil(t, done)
		require.Zero(t, wait)
	}
}

func TestNoMoreSubjectsAreKeptThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Config{Submissions: 1, Subjects: 10})
		for i := range 1000 {
			require.Zero(t, l.Submit(someone(fmt.Sprint(i))))
			require.LessOrEqual(t, l.subjects.Len(), 10)
		}
		require.Positive(t, l.Submit(someone("999")))
	})
}
