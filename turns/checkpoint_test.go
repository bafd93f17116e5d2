package turns

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// tailLog is a LiveLog of which only the tail is asked.
type tailLog struct {
	LiveLog
	pieces []Piece
}

func (l tailLog) Tail(from uint32) ([]Piece, uint32) {
	n := uint32(bytesOf(l.pieces))
	if from == n {
		return nil, n
	}
	return l.pieces, n
}

func (l tailLog) First() uint32 { return 0 }

func (l tailLog) Stored(uint32) {}

// checkpointStore is a Store of which only checkpoints are asked. The statement with this number fails.
type checkpointStore struct {
	Store
	fails      int
	statements [][]Checkpoint
}

func (s *checkpointStore) Checkpoint(_ context.Context, items []Checkpoint) ([]CheckpointResult, error) {
	s.statements = append(s.statements, items)
	if len(s.statements) == s.fails {
		return nil, errors.New("not stored")
	}
	results := make([]CheckpointResult, len(items))
	for i := range results {
		results[i].Held = true
	}
	return results, nil
}

// checkpointing is a service with runs whose logs are as many MiB long, none of it stored.
func checkpointing(t *testing.T, store Store, sizes ...int) (*Service, []*run) {
	s := &Service{store: store, metrics: uncounted(t), runs: map[ReplyID]*run{}, logger: slog.New(slog.DiscardHandler), set: Settings{Lease: time.Hour}}
	var runs []*run
	for _, mib := range sizes {
		r := &run{Service: s, reply: Reply{ID: ReplyID{newID()}}, log: tailLog{pieces: []Piece{{Text: strings.Repeat("x", mib<<20)}}}}
		s.runs[r.reply.ID] = r
		runs = append(runs, r)
	}
	return s, runs
}

func TestAStatementCarriesABoundedPartOfATicksBytesAndAtLeastOneReply(t *testing.T) {
	store := &checkpointStore{}
	s, runs := checkpointing(t, store, 5, 5, 5, 20, 0, 0, 3)
	s.checkpoint(t.Context())
	items := 0
	for _, statement := range store.statements {
		bytes := 0
		for _, item := range statement {
			bytes += bytesOf(item.Pieces)
		}
		require.True(t, len(statement) == 1 || bytes <= checkpointBytes, "%d replies with %d bytes", len(statement), bytes)
		items += len(statement)
	}
	require.Equal(t, len(runs), items, "each once")
	for _, r := range runs {
		require.EqualValues(t, bytesOf(r.log.(tailLog).pieces), r.stored)
		require.True(t, r.mu.TryLock(), "its lock is free again")
	}
}

func TestATickOfFewBytesIsOneStatement(t *testing.T) {
	store := &checkpointStore{}
	s, runs := checkpointing(t, store, 1, 1, 1, 0)
	runs[2].over = true
	runs[3].mu.Lock() // it is just ending
	s.checkpoint(t.Context())
	require.Len(t, store.statements, 1)
	require.Len(t, store.statements[0], 2)
}

func TestAStatementThatFailsKeepsNoOtherFromBeingStored(t *testing.T) {
	store := &checkpointStore{fails: 1}
	s, runs := checkpointing(t, store, 9, 9, 9)
	s.checkpoint(t.Context())
	require.Len(t, store.statements, 3)
	stored := 0
	for _, r := range runs {
		if r.stored > 0 {
			stored++
		}
		require.True(t, r.mu.TryLock())
	}
	require.Equal(t, 2, stored)
	for _, r := range runs {
		r.mu.Unlock()
	}
	s.checkpoint(t.Context())
	for _, r := range runs {
		require.NotZero(t, r.stored, "the next tick stores what that one did not")
	}
}

// refusingStore is a Store in which most rows are lost, and which is slow to say so.
type refusingStore struct {
	checkpointStore
	held ReplyID
	open chan struct{}
}

func (s *refusingStore) Checkpoint(_ context.Context, items []Checkpoint) ([]CheckpointResult, error) {
	results := make([]CheckpointResult, len(items))
	for i := range results {
		results[i].Held = items[i].Fence.Reply == s.held
	}
	return results, nil
}

func (s *refusingStore) ReadReply(context.Context, ConversationKey, ReplyID) (Reply, error) {
	<-s.open
	return Reply{}, errors.New("away again")
}

func TestAReplyWhoseCheckpointWasHeldDoesNotWaitForThoseThatWereRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &refusingStore{held: ReplyID{newID()}, open: make(chan struct{})}
		s, runs := checkpointing(t, store, 1, 1, 1)
		for _, r := range runs {
			r.fence.Reply = r.reply.ID
		}
		runs[2].fence.Reply = store.held
		var checkpoint sync.WaitGroup
		checkpoint.Go(func() { s.checkpointRuns(t.Context(), runs) })
		synctest.Wait()
		require.False(t, runs[0].mu.TryLock())
		require.True(t, runs[2].mu.TryLock(), "it may end")
		require.NotZero(t, runs[2].stored)
		close(store.open)
		checkpoint.Wait()
		require.True(t, runs[0].mu.TryLock() && runs[1].mu.TryLock())
	})
}

func TestManyRepliesAreStoredByStatementsOfABoundedNumber(t *testing.T) {
	store := &checkpointStore{}
	s, runs := checkpointing(t, store, make([]int, 2*checkpointReplies+1)...)
	s.checkpointRuns(t.Context(), runs)
	count := 0
	for _, statement := range store.statements {
		require.LessOrEqual(t, len(statement), checkpointReplies)
		count += len(statement)
	}
	require.Len(t, store.statements, 3)
	require.Equal(t, len(runs), count)
	for _, r := range runs {
		require.True(t, r.mu.TryLock(), "each is let go of")
	}
}
