package postgres

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// Two workers claim in the same conversations at once, new ones and old ones, so that the statements of both want the same rows.
func TestCrowdsOfTwoWorkersInTheSameConversationsDoNotLockEachOtherOut(t *testing.T) {
	d := openOwn(t)
	other, err := Open(t.Context(), Config{URL: d.dsn, MaxConns: 8})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	worker := d.worker(t)
	claims := make([][2]turns.Claim, 60)
	for i := range claims {
		if i%2 == 0 {
			claims[i][0] = newClaim(worker)
		} else {
			claims[i][0] = after(d.complete(t, d.win(t, newClaim(worker))))
		}
		rival := newClaim(worker)
		claims[i][1] = claims[i][0]
		claims[i][1].Turn, claims[i][1].Reply.ID, claims[i][1].Call.ID = rival.Turn, rival.Reply.ID, rival.Call.ID
	}
	var won [60]atomic.Int64
	var failed atomic.Int64
	var all sync.WaitGroup
	release := d.hold(t)
	for i := range claims {
		for side, store := range []*Store{d.store, other} {
			// The second worker's come the other way round.
			n := i
			if side == 1 {
				n = len(claims) - 1 - i
			}
			all.Go(func() {
				results, err := store.Claim(t.Context(), []turns.Claim{claims[n][side]})
				if err != nil {
					failed.Add(1)
				} else if results[0].Won {
					won[n].Add(1)
				}
			})
		}
	}
	require.Eventually(t, func() bool { return d.store.groups.pending()+other.groups.pending() == 2*len(claims) }, patience, time.Millisecond)
	release()
	all.Wait()
	require.Zero(t, failed.Load())
	for i := range won {
		require.EqualValues(t, 1, won[i].Load())
	}
	require.Zero(t, d.count(t, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
}

// A statement that has made a conversation and then waits for one that is there would hold up another that did it the other way
// round, and the other it.
func TestAClaimWaitsForAConversationThatIsThereBeforeItMakesAnother(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	there := after(d.complete(t, d.win(t, newClaim(worker))))
	fresh := newClaim(worker)
	for bytes.Compare(fresh.Key[:], there.Key[:]) > 0 {
		fresh = newClaim(worker)
	}
	s := d.begin(t, `SELECT FROM conversations WHERE conversation_key = $1 FOR UPDATE`, [16]byte(there.Key))
	done := start(func() ([]turns.ClaimResult, error) { return d.store.Claim(t.Context(), []turns.Claim{fresh, there}) })
	d.waiting(t)
	other := d.begin(t, `SET LOCAL lock_timeout = '100ms'`)
	other.exec(`INSERT INTO conversations (conversation_key, tenant, conversation_id, create_time, update_time)
		VALUES ($1, 'tenant', $2, now(), now())`, [16]byte(fresh.Key), fresh.Conversation.UUID)
	require.NoError(t, other.tx.Rollback(t.Context()))
	s.commit()
	a := await(t, done)
	require.NoError(t, a.err)
	require.True(t, a.value[0].Won && a.value[1].Won)
}

func TestAnEndingThatWaitsForItsRowHoldsUpNoOther(t *testing.T) {
	d := open(t)
	worker := d.worker(t)
	held, free := d.win(t, newClaim(worker)), d.win(t, newClaim(worker))
	s := d.begin(t, `SELECT FROM turns WHERE conversation_key = $1 AND id = $2 FOR UPDATE`, [16]byte(held.Key), held.Reply.ID.UUID)
	done := start(func() ([]turns.EndResult, error) { return d.store.End(t.Context(), []turns.Ending{completing(held)}) })
	d.waiting(t)
	d.complete(t, free)
	require.Empty(t, done, "it still waits")
	s.commit()
	a := await(t, done)
	require.NoError(t, a.err)
	require.True(t, a.value[0].Won)
}
