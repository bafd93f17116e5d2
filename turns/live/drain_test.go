package live_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func TestADrainLetsGoOfFollowersOfOtherWorkersRepliesAndOfNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far, near := newShelf(), newShelf()
		elsewhere, here := newHub(far), newHub(near)
		log := here.Open(key, near.reply)
		var mirrored, late, owned heard
		var wg, own sync.WaitGroup
		wg.Go(func() { mirrored = listen(elsewhere.Follow(t.Context(), key, far.reply.ID, 0), 0) })
		own.Go(func() { owned = listen(here.Follow(t.Context(), key, near.reply.ID, 0), 0) })
		synctest.Wait()
		elsewhere.Drain()
		here.Drain()
		wg.Wait()
		require.Equal(t, turns.CodeDraining, turns.CodeOf(mirrored.err))
		require.Nil(t, mirrored.ended, "its reply goes on")
		late = listen(elsewhere.Follow(t.Context(), key, far.reply.ID, 0), 0)
		require.Equal(t, turns.CodeDraining, turns.CodeOf(late.err))
		log.End(ended(near.reply, 0))
		own.Wait()
		require.NoError(t, owned.err)
		require.NotNil(t, owned.ended)
		far.change(func() { far.reply = ended(far.reply, 0) })
		late = listen(elsewhere.Follow(t.Context(), key, far.reply.ID, 0), 0)
		require.NoError(t, late.err)
		require.NotNil(t, late.ended, "what has ended is still shown")
	})
}
