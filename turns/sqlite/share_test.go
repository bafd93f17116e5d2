package sqlite_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/sqlite"
)

func TestATransactionThatCantBeginIsTriedOnceForAllWhoShareIt(t *testing.T) {
	engine := open(t)
	store := engine.Store.(*sqlite.Store)
	give, err := store.Impatient(t.Context())
	require.NoError(t, err)
	var calls sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		calls.Go(func() {
			errs[i] = store.CloseCalls(t.Context(), []turns.CallOutcome{{Key: turns.ConversationKey{byte(i)}}})
		})
	}
	require.Eventually(t, func() bool { return store.Pending() == len(errs) }, 30*time.Second, time.Millisecond)
	release := engine.Hold(t)
	before := engine.Commits()
	give()
	calls.Wait()
	release()
	for _, err := range errs {
		require.ErrorIs(t, err, turns.ErrStoreUnavailable)
		require.NotErrorIs(t, err, turns.ErrUnknownOutcome)
	}
	require.EqualValues(t, 2, engine.Commits()-before, "the first one goes alone, and the others together")
}
