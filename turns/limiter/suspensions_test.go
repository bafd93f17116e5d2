package limiter

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// book is who is suspended, and how often it was asked.
type book struct {
	suspended map[string]bool
	asked     int
	err       error
}

func (b *book) Suspended(_ context.Context, tenant, subject string) (bool, error) {
	b.asked++
	return b.suspended[tenant+"/"+subject], b.err
}

func TestASuspensionIsInForceAndLiftedWithinTheLifetimeOfAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &book{suspended: map[string]bool{}}
		s, err := NewSuspensions(b, 30*time.Second, 0)
		require.NoError(t, err)
		says := func(want bool) {
			t.Helper()
			got, err := s.Suspended(t.Context(), "acme", "ann")
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		says(false)
		b.suspended["acme/ann"] = true
		time.Sleep(30*time.Second - 1)
		says(false)
		require.Equal(t, 1, b.asked)
		time.Sleep(1)
		says(true)
		delete(b.suspended, "acme/ann")
		time.Sleep(30 * time.Second)
		says(false)
		require.Equal(t, 3, b.asked)
	})
}

func TestWhatCouldNotBeFoundOutIsAskedAgain(t *testing.T) {
	b := &book{err: errors.New("away")}
	s, err := NewSuspensions(b, time.Hour, 0)
	require.NoError(t, err)
	for range 2 {
		_, err = s.Suspended(t.Context(), "acme", "ann")
		require.ErrorIs(t, err, b.err)
	}
	require.Equal(t, 2, b.asked)
}

func TestAnswersAreBoundedInNumber(t *testing.T) {
	s, err := NewSuspensions(&book{}, time.Hour, 10)
	require.NoError(t, err)
	for i := range 1000 {
		_, err := s.Suspended(t.Context(), "acme", fmt.Sprint(i))
		require.NoError(t, err)
	}
	require.Equal(t, 10, s.known.Len())
}

func TestWithoutALifetimeEachIsAsked(t *testing.T) {
	b := &book{}
	s, err := NewSuspensions(b, 0, 0)
	require.NoError(t, err)
	for range 3 {
		_, err := s.Suspended(t.Context(), "acme", "ann")
		require.NoError(t, err)
	}
	require.Equal(t, 3, b.asked)
}
