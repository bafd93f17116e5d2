package storetest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/storetest"
)

// counting is a store of which only two methods may be called.
type counting struct {
	turns.Store
	buried int
}

func (c *counting) BuryWorkers(context.Context, ...turns.WorkerID) ([]turns.WorkerID, error) {
	c.buried++
	return []turns.WorkerID{{}}, nil
}

func (c *counting) CreateConversation(_ context.Context, v turns.Conversation) (turns.Conversation, bool, error) {
	return v, true, nil
}

func TestAFailingCallDoesNothingAndTheOneAfterItDoes(t *testing.T) {
	store := &counting{}
	f := storetest.NewFaults(store)
	boom := errors.New("boom")
	f.FailNext("BuryWorkers", boom)
	_, err := f.BuryWorkers(t.Context())
	require.ErrorIs(t, err, boom)
	require.Zero(t, store.buried)
	_, err = f.BuryWorkers(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, store.buried)
	require.Equal(t, 2, f.Calls("BuryWorkers"))
}

func TestACallWhoseAnswerIsLostIsDoneAndOfUnknownOutcome(t *testing.T) {
	store := &counting{}
	f := storetest.NewFaults(store)
	f.LoseAnswer("BuryWorkers")
	buried, err := f.BuryWorkers(t.Context())
	require.ErrorIs(t, err, turns.ErrUnknownOutcome)
	require.ErrorIs(t, err, turns.ErrStoreUnavailable)
	require.Nil(t, buried)
	require.Equal(t, 1, store.buried)
	f.LoseAnswer("CreateConversation")
	stored, created, err := f.CreateConversation(t.Context(), turns.Conversation{Title: "t"})
	require.ErrorIs(t, err, turns.ErrUnknownOutcome)
	require.Zero(t, stored)
	require.False(t, created)
}

func TestACallWaitsAtItsGate(t *testing.T) {
	store := &counting{}
	f := storetest.NewFaults(store)
	arrived, open := f.Gate("BuryWorkers")
	done := make(chan error)
	go func() {
		_, err := f.BuryWorkers(t.Context())
		done <- err
	}()
	<-arrived
	require.Zero(t, store.buried)
	open()
	open()
	require.NoError(t, <-done)
	require.Equal(t, 1, store.buried)
}

func TestACallAtAGateEndsWithItsContext(t *testing.T) {
	f := storetest.NewFaults(&counting{})
	_, open := f.Gate("BuryWorkers")
	defer open()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.BuryWorkers(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAStoreThatIsDownFailsEveryCallUntilItIsUp(t *testing.T) {
	f := storetest.NewFaults(&counting{})
	f.Down(turns.Unavailable(nil))
	for range 3 {
		_, err := f.BuryWorkers(t.Context())
		require.ErrorIs(t, err, turns.ErrStoreUnavailable)
	}
	f.Down(nil)
	_, err := f.BuryWorkers(t.Context())
	require.NoError(t, err)
}

func TestAMethodThatDoesNotExistIsAMistakeOfTheTest(t *testing.T) {
	f := storetest.NewFaults(&counting{})
	require.Panics(t, func() { f.FailNext("Bury", errors.New("x")) })
	require.Panics(t, func() { f.Calls("bury") })
}
