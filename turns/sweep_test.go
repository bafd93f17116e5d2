package turns

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// staleStore is a Store with stale replies, of which rows says how each reads by now.
type staleStore struct {
	Store
	except []WorkerID
	stale  []StaleReply
	rows   map[ReplyID]Reply
	swept  []Sweeping
}

func (s *staleStore) BuryWorkers(_ context.Context, except ...WorkerID) ([]WorkerID, error) {
	s.except = except
	return nil, nil
}

func (s *staleStore) Server(context.Context) (ServerLife, error) {
	return ServerLife{Uptime: time.Hour}, nil
}

func (s *staleStore) StaleReplies(context.Context, StaleQuery) ([]StaleReply, error) {
	return s.stale, nil
}

func (s *staleStore) ReadReply(_ context.Context, _ ConversationKey, id ReplyID) (Reply, error) {
	r, ok := s.rows[id]
	switch {
	case !ok:
		return Reply{}, NotFound("reply", "")
	case r.ID != id:
		return Reply{}, errors.New("a chunk that makes no sense")
	}
	return r, nil
}

func (s *staleStore) Sweep(_ context.Context, sw Sweeping) (bool, error) {
	s.swept = append(s.swept, sw)
	return true, nil
}

// add adds a stale reply, and changes how it reads.
func (s *staleStore) add(change func(*Reply)) StaleReply {
	r := Reply{ID: ReplyID{newID()}, Status: StatusInFlight, Epoch: 1, Owner: WorkerID{newID()}}
	stale := StaleReply{Reply: r, OwnerDead: true}
	s.stale = append(s.stale, stale)
	change(&r)
	s.rows[stale.Reply.ID] = r
	return stale
}

func sweeper(t *testing.T, store Store) *Service {
	t.Helper()
	return &Service{store: store, metrics: uncounted(t), logger: slog.New(slog.DiscardHandler), generator: forgetful{},
		lease: &lease{store: store, ttl: 2 * time.Hour, id: WorkerID{newID()}, good: time.Now(), steady: time.Now().Add(-2 * time.Hour)}}
}

func TestASweepBuriesOthersAndNeverItsOwnWorker(t *testing.T) {
	store := &staleStore{}
	s := sweeper(t, store)
	require.NoError(t, s.sweep(t.Context(), StaleQuery{}))
	require.Equal(t, []WorkerID{s.lease.worker()}, store.except)
}

func TestASweepPassesOverWhatIsNoLongerStaleAndOutlivesOneBadRow(t *testing.T) {
	store := &staleStore{rows: map[ReplyID]Reply{}}
	store.add(func(r *Reply) { r.Status = StatusComplete })
	store.add(func(r *Reply) { r.Epoch++ })
	store.add(func(r *Reply) { r.Owner = WorkerID{newID()} })
	gone := store.add(func(*Reply) {})
	delete(store.rows, gone.Reply.ID)
	bad := store.add(func(r *Reply) { r.ID = ReplyID{} })
	good := store.add(func(r *Reply) { r.Content, r.Length = []Piece{{Starts: true, Text: "ab"}}, 3 })

	err := sweeper(t, store).sweep(t.Context(), StaleQuery{})
	require.ErrorContains(t, err, bad.Reply.ID.String(), "it is named")
	require.Len(t, store.swept, 1)
	require.Equal(t, good.Reply.ID, store.swept[0].Fence.Reply)
	require.Equal(t, []Piece{{Starts: true, Text: "ab"}}, store.swept[0].Content, "its log as it was read just before")
	require.EqualValues(t, 3, store.swept[0].Length)
}

func TestASweptReplyCostsItsClosedCallsAndAnEstimateOfTheOpenOnes(t *testing.T) {
	store := &staleStore{rows: map[ReplyID]Reply{}}
	store.add(func(r *Reply) { r.Length = 35 })
	store.stale[0].Reply.Usage = Usage{Input: 9, Output: 4, Source: SourceReported, Calls: 2}
	store.stale[0].OpenCalls = []OpenCall{{ID: CallID{newID()}, RequestBytes: 70, Submitted: true}}
	require.NoError(t, sweeper(t, store).sweep(t.Context(), StaleQuery{}))
	require.Equal(t, Usage{Input: 29, Output: 14, Source: SourceEstimated, Wasted: 30, Calls: 3}, store.swept[0].Usage)
}

// forgetful is a Generator whose endpoint knows no key.
type forgetful struct{ Generator }

func (forgetful) Routes(string) ([]Route, error) { return []Route{{}}, nil }

func TestACallThatCanNotBeSentAgainIsSweptBeforeItsConversationIsRead(t *testing.T) {
	store := &staleStore{rows: map[ReplyID]Reply{}} // anything else that is asked of it fails
	store.add(func(*Reply) {})
	store.stale[0].OpenCalls = []OpenCall{{ID: CallID{newID()}, Submitted: true}}
	s := sweeper(t, store)
	s.set, s.generator, s.admission = DefaultSettings(), forgetful{}, &admission{places: 1}
	require.NoError(t, s.sweep(t.Context(), StaleQuery{}))
	require.Len(t, store.swept, 1)
}

// slowStore is a Store whose lease is served by one connection, over which each answer takes a while.
type slowStore struct {
	staleStore
	connection chan struct{}
}

func (s *slowStore) Server(ctx context.Context) (ServerLife, error) {
	if err := s.RenewLease(ctx, WorkerID{}, 0); err != nil {
		return ServerLife{}, err
	}
	return ServerLife{Uptime: time.Hour}, nil
}

func (s *slowStore) RenewLease(ctx context.Context, _ WorkerID, _ time.Duration) error {
	select {
	case s.connection <- struct{}{}:
		time.Sleep(50 * time.Millisecond)
		<-s.connection
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestHoweverManyMeetADeadWorkersRepliesTheLeaseIsRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sweeper(t, &slowStore{connection: make(chan struct{}, 1)})
		s.lease.ttl, s.lease.logger = 15*time.Second, s.logger
		var asking sync.WaitGroup
		for range 1000 {
			asking.Go(func() { require.NoError(t, s.resolve(t.Context(), ConversationKey{})) })
		}
		synctest.Wait()
		begun := time.Now()
		s.lease.renew(t.Context())
		require.Equal(t, begun, s.lease.good, "it was renewed")
		asking.Wait()
	})
}
