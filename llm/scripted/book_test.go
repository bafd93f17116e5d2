package scripted

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheLastCallsAreKeptAndThePageSaysSo(t *testing.T) {
	b := newBook(time.Now)
	b.maxCalls = 3
	for n := range 5 {
		b.generated(b.request(Call{IdempotencyKey: fmt.Sprint(n % 2)}))
	}
	numbers := func(p CallPage) (all []int) {
		for _, call := range p.Calls {
			all = append(all, call.N)
		}
		return all
	}
	page := b.page(0, "", 10)
	require.Equal(t, []int{3, 4, 5}, numbers(page))
	require.Equal(t, 2, page.Dropped)
	require.False(t, page.More)
	require.Equal(t, []int{5}, numbers(b.page(4, "", 10)))
	require.Empty(t, b.page(9, "", 10).Calls)
	require.Equal(t, []int{3, 5}, numbers(b.page(0, "0", 10)))
	page = b.page(0, "", 2)
	require.Equal(t, []int{3, 4}, numbers(page))
	require.True(t, page.More)
	require.Equal(t, 5, b.sums().Requests)
	require.Equal(t, 5, b.sums().OutputTokens)
	require.False(t, b.hasDeltas(2, 0), "a call that is not kept has nothing to show")
}

func TestKeysAreBoundedAndTheRestIsCounted(t *testing.T) {
	b := newBook(time.Now)
	b.maxCalls = 1
	for n := range maxKeys + 2 {
		b.request(Call{IdempotencyKey: fmt.Sprint(n)})
	}
	b.request(Call{IdempotencyKey: "0"})
	sums := b.sums()
	require.Len(t, sums.ByKey, maxKeys)
	require.Equal(t, 2, sums.KeysDropped)
	require.Equal(t, 2, sums.ByKey["0"].Requests)
}

func TestTheOldestStoredGenerationsAreForgotten(t *testing.T) {
	var r replays
	b := newBook(time.Now)
	find := func(key string, bytes int) verdict {
		want := stored{at: replayKey{key: key}, created: time.Unix(0, 0)}
		g, what := r.find(want, time.Hour, func() *generation {
			plan := Plan{Reply: &Reply{Deltas: bytes, DeltaBytes: 1}}
			return newGeneration(context.Background(), b, b.request(Call{}), request{}, plan, "id")
		})
		t.Cleanup(g.stop)
		return what
	}
	require.Equal(t, verdictNew, find("big", maxStoredBytes-2))
	require.Equal(t, verdictNew, find("small", 2))
	require.Equal(t, verdictReplay, find("big", 0))
	require.Equal(t, verdictNew, find("one more", 1))
	require.Equal(t, verdictNew, find("big", 1), "it was the oldest and made room")
	require.Equal(t, verdictReplay, find("small", 2))
	for n := range maxStored {
		require.Equal(t, verdictNew, find(fmt.Sprint(n), 0))
	}
	require.Equal(t, verdictNew, find("small", 2))
	require.LessOrEqual(t, len(r.byKey), maxStored)
}
