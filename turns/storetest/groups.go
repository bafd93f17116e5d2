package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// crowding is how many come at once, and groupPatience how long a test waits for what takes no time.
const (
	crowding      = 100
	groupPatience = 30 * time.Second
)

func groups() []promise {
	return []promise{
		{"claims that come while others are written share few commits", claimsShareCommits},
		{"each kind of write is answered by its own result in a crowd", eachKindInACrowd},
		{"a claim that can't be written fails alone among those it shares a statement with", aBadClaimFailsAlone},
		{"claims that are lost fail none of those they share a statement with", lostClaimsFailNone},
		{"a tenant with five hundred waiting keeps no other's claim from the next statements", aHotTenantHoldsUpNobody},
		{"one that gives up while it waits is not written, and the others are", oneGivesUpWhileItWaits},
		{"a store that is closed refuses those who wait, and answers those it has begun with", closedWhileTheyWait},
	}
}

// gathered sends calls while nothing can be written, and lets them go once the store has them all.
func (w *world) gathered(t *testing.T, n int, call func(i int)) {
	t.Helper()
	var calls sync.WaitGroup
	release := w.Hold(t)
	for i := range n {
		calls.Go(func() { call(i) })
	}
	w.pending(t, n)
	release()
	calls.Wait()
}

func (w *world) pending(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return w.Pending() == n }, groupPatience, time.Millisecond)
}

// claimed is what a claim by itself gives.
func (w *world) claimed(ctx context.Context, c turns.Claim) (won bool, err error) {
	results, err := w.Store.Claim(ctx, []turns.Claim{c})
	return err == nil && results[0].Won, err
}

func claimsShareCommits(t *testing.T, w *world) {
	claims, won, errs := make([]turns.Claim, crowding), make([]bool, crowding), make([]error, crowding)
	for i := range claims {
		claims[i] = w.first(newConversation())
	}
	before := w.Commits()
	w.gathered(t, crowding, func(i int) { won[i], errs[i] = w.claimed(w.ctx, claims[i]) })
	for i := range claims {
		require.NoError(t, errs[i])
		require.True(t, won[i])
	}
	require.LessOrEqual(t, w.Commits()-before, int64(crowding/5))
	require.EqualValues(t, crowding, w.count("SELECT count(*) FROM turns WHERE status = 'in_flight'"))
}

func eachKindInACrowd(t *testing.T, w *world) {
	var claims []turns.Claim
	for range 20 {
		_, claim := w.fresh()
		claims = append(claims, claim)
	}
	errs := make([]error, 3*len(claims))
	check := func(i int, ok bool, err error) {
		if errs[i] = err; err == nil && !ok {
			errs[i] = errors.New("not done")
		}
	}
	w.gathered(t, len(errs), func(i int) {
		switch c := claims[i/3]; i % 3 {
		case 0:
			results, err := w.Store.Checkpoint(w.ctx, []turns.Checkpoint{{Fence: fenceOf(c), To: 2, Pieces: []turns.Piece{opening("a")}}})
			check(i, err == nil && results[0].Held, err)
		case 1:
			results, err := w.Store.PermitCalls(w.ctx, []turns.CallPermit{permitFor(c, 9)})
			check(i, err == nil && results[0] == turns.PermitResult{Granted: true, Calls: 2}, err)
		case 2:
			check(i, true, w.Store.CloseCalls(w.ctx, []turns.CallOutcome{*closing(c.Key, c.Call.ID, turns.ClassOK)}))
		}
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	w.gathered(t, len(claims), func(i int) {
		r, err := w.Store.RequestStop(w.ctx, claims[i].Key, claims[i].Turn, 0, turns.TurnID{})
		check(i, r.ID == claims[i].Reply.ID && r.CancelRequested, err)
	})
	w.gathered(t, len(claims), func(i int) {
		e := completing(claims[i], 2, whole("a"))
		e.Call = nil
		results, err := w.Store.End(w.ctx, []turns.Ending{e})
		check(i, err == nil && results[0].Won && !results[0].EndTime.IsZero(), err)
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, len(claims), w.count("SELECT count(*) FROM turns WHERE status = 'complete'"))
}

func aBadClaimFailsAlone(t *testing.T, w *world) {
	claims, won, errs := make([]turns.Claim, 20), make([]bool, 20), make([]error, 20)
	for i := range claims {
		claims[i] = w.first(newConversation())
	}
	const bad = 13
	claims[bad].NewTurn.Parent = newTurnID().Row()
	w.gathered(t, len(claims), func(i int) { won[i], errs[i] = w.claimed(w.ctx, claims[i]) })
	for i := range claims {
		if i == bad {
			require.ErrorIs(t, errs[i], turns.ErrNotFound)
			continue
		}
		require.NoError(t, errs[i])
		require.True(t, won[i])
	}
	require.EqualValues(t, len(claims)-1, w.count("SELECT count(*) FROM conversations"))
}

func lostClaimsFailNone(t *testing.T, w *world) {
	_, taken := w.fresh()
	claims, won := make([]turns.Claim, 40), make([]bool, 40)
	for i := range claims {
		if claims[i] = w.first(newConversation()); i%8 == 0 {
			claims[i].Turn, claims[i].Key, claims[i].Conversation = newTurnID(), taken.Key, taken.Conversation
		}
	}
	w.gathered(t, len(claims), func(i int) { won[i], _ = w.claimed(w.ctx, claims[i]) })
	for i := range claims {
		require.Equal(t, i%8 != 0, won[i])
	}
}

func aHotTenantHoldsUpNobody(t *testing.T, w *world) {
	const hot, next = 500, 250 // fewer than are left if the statements went by who came first
	release := w.Hold(t)
	var calls sync.WaitGroup
	for range hot {
		claim := w.first(newConversation())
		calls.Go(func() { _, _ = w.claimed(w.ctx, claim) })
	}
	w.pending(t, hot)
	cold := w.first(conversationOf("cold", newTurnID().UUID))
	calls.Go(func() { _, _ = w.claimed(w.ctx, cold) })
	w.pending(t, hot+1)
	release()
	calls.Wait()
	require.EqualValues(t, hot+1, w.count("SELECT count(*) FROM turns WHERE role = 'assistant'"))
	require.Less(t, w.count("SELECT count(*) FROM turns WHERE role = 'assistant' AND create_time < (SELECT create_time FROM turns WHERE id = %s)",
		cold.Reply.ID.UUID), int64(next))
}

func oneGivesUpWhileItWaits(t *testing.T, w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	release := w.Hold(t)
	// Enough that all writers are busy with the first ones.
	claims, won, errs := make([]turns.Claim, 8), make([]bool, 8), make([]error, 8)
	var calls, gone sync.WaitGroup
	for i := range claims {
		claims[i] = w.first(newConversation())
		its, group := w.ctx, &calls
		if i == len(claims)-1 {
			its, group = ctx, &gone
		}
		group.Go(func() { won[i], errs[i] = w.claimed(its, claims[i]) })
		w.pending(t, i+1)
	}
	cancel()
	gone.Wait()
	release()
	calls.Wait()
	last := len(claims) - 1
	require.ErrorIs(t, errs[last], context.Canceled)
	for i := range last {
		require.NoError(t, errs[i])
		require.True(t, won[i])
	}
	if !errors.Is(errs[last], turns.ErrUnknownOutcome) {
		require.Zero(t, w.count("SELECT count(*) FROM turns WHERE id = %s", claims[last].Reply.ID.UUID))
	}
}

func closedWhileTheyWait(t *testing.T, w *world) {
	const many = 300 // more than statements take while those before them are slow
	release := w.Hold(t)
	claims, won, errs := make([]turns.Claim, many), make([]bool, many), make([]error, many)
	var calls sync.WaitGroup
	for i := range claims {
		claims[i] = w.first(newConversation())
		calls.Go(func() { won[i], errs[i] = w.claimed(w.ctx, claims[i]) })
	}
	w.pending(t, len(claims))
	closed := make(chan error, 1)
	go func() { closed <- w.Close() }()
	require.Eventually(t, func() bool { return w.Pending() < len(claims) }, groupPatience, time.Millisecond)
	require.Empty(t, closed, "it waits for what it has begun with")
	release()
	require.NoError(t, <-closed)
	calls.Wait()
	wins := 0
	for i := range claims {
		if won[i] {
			wins++
			continue
		}
		require.ErrorIs(t, errs[i], turns.ErrStoreUnavailable)
		require.NotErrorIs(t, errs[i], turns.ErrUnknownOutcome)
	}
	require.Positive(t, wins)
	require.Less(t, wins, len(claims))
}
