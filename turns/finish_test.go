package turns

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// endStore is a Store with one reply, that answers End as it is told.
type endStore struct {
	Store
	row    *Reply // nil: it is gone
	end    func(Ending) (bool, error)
	asked  []Ending
	closed []CallOutcome
	owned  []Fence
	silent bool // CloseCalls is not answered
}

func (s *endStore) End(_ context.Context, e []Ending) ([]EndResult, error) {
	s.asked = append(s.asked, e...)
	won, err := s.end(e[0])
	return []EndResult{{Won: won}}, err
}

func (s *endStore) ReadReply(context.Context, ConversationKey, ReplyID) (Reply, error) {
	if s.row == nil {
		return Reply{}, NotFound("reply", "")
	}
	return *s.row, nil
}

func (s *endStore) OwnedReplies(context.Context, WorkerID, time.Duration, int) ([]Fence, error) {
	return s.owned, nil
}

func (s *endStore) CloseCalls(ctx context.Context, o []CallOutcome) error {
	if s.silent {
		<-ctx.Done()
		return Unavailable(ctx.Err())
	}
	s.closed = append(s.closed, o...)
	return nil
}

func (s *endStore) Lookup(context.Context, LookupQuery) (Standing, error) {
	return Standing{Exists: s.row != nil}, nil
}

// shelf is a Spool in memory.
type shelf struct {
	kept         map[Fence]Spooled
	keeps, drops int
	last         Spooled
}

func (s *shelf) Keep(_ context.Context, e Spooled) error {
	s.keeps, s.last = s.keeps+1, e
	s.kept[e.Ending.Fence] = e
	return nil
}

func (s *shelf) Drop(_ context.Context, f Fence) error {
	s.drops++
	delete(s.kept, f)
	return nil
}

func (s *shelf) Kept(_ context.Context, limit int, pass func(ReplyID) bool) (all []Spooled, err error) {
	for f, e := range s.kept {
		if len(all) < limit && !pass(f.Reply) {
			all = append(all, e)
		}
	}
	return all, nil
}

// watched is a log that has ended, and counts how often its followers were let go.
type watched struct {
	keptLog
	stalls, moves int
	ended         *Reply
}

func (l *watched) Stall(error) { l.stalls++ }
func (l *watched) Move()       { l.moves++ }
func (l *watched) End(r Reply) { l.ended = &r }

// finisher is a run that is about to end, of a service with the given spool.
func finisher(t *testing.T, store *endStore, spool Spool) (*run, *watched) {
	t.Helper()
	s := sweeper(t, store)
	s.spool, s.set, s.runs = spool, DefaultSettings(), map[ReplyID]*run{}
	s.last, s.stopLast = context.WithCancel(context.Background())
	t.Cleanup(s.stopLast)
	f := Fence{Reply: ReplyID{newID()}, Epoch: 1, Owner: s.lease.worker()}
	log := &watched{keptLog: keptLog{pieces: []Piece{{Kind: KindText, Starts: true, Text: "whole", Ends: true}}, length: 7}}
	r := &run{Service: s, fence: f, log: log, reply: Reply{ID: f.Reply, Turn: TurnID{newID()}, Epoch: 1, Owner: f.Owner},
		call: &NewCall{ID: CallID{newID()}}, cancel: func(error) {}}
	return r, log
}

// completing is the ending of a whole reply.
func (r *run) completing() Ending {
	return Ending{Verb: VerbComplete, Status: StatusComplete, Call: &CallOutcome{ID: r.call.ID, Class: ClassOK,
		Usage: Usage{Input: 1, Output: 2, Source: SourceReported, Calls: 1}}}
}

func away(Ending) (bool, error) { return false, Unavailable(errors.New("no database")) }

func TestAnEndingThatIsNeitherStoredNorSpooledFailsTheDrainAndASpooledOneDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, spool := range []Spool{NoSpool{}, &shelf{kept: map[Fence]Spooled{}}} {
			r, log := finisher(t, &endStore{end: away}, spool)
			time.AfterFunc(time.Second, r.stopLast)
			r.finish(t.Context(), r.completing())
			require.Equal(t, 1, log.moves, "its followers look for it elsewhere")
			require.Nil(t, log.ended)
			if _, ok := spool.(NoSpool); ok {
				require.ErrorContains(t, r.lostEndings(), "1 replies")
				continue
			}
			require.NoError(t, r.lostEndings())
			kept, err := spool.Kept(t.Context(), 9, r.passOver)
			require.NoError(t, err)
			require.Equal(t, "whole", kept[0].Ending.Content[0].Text)
		}
	})
}

func TestADatabaseThatIsSilentAboutACallDoesNotTakeTheTimeToSpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spool := &shelf{kept: map[Fence]Spooled{}}
		r, _ := finisher(t, &endStore{end: away, silent: true}, spool)
		r.unclosed = []CallOutcome{{ID: CallID{newID()}}}
		begun := time.Now()
		time.AfterFunc(time.Second, r.stopLast)
		r.finish(t.Context(), r.completing())
		require.Len(t, spool.kept, 1)
		require.LessOrEqual(t, time.Since(begun), time.Second+lastTry)
	})
}

func TestAnEndingLiesInTheSpoolFromOneLeaseOnUntilItIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spool, begun := &shelf{kept: map[Fence]Spooled{}}, time.Now()
		store := &endStore{end: func(e Ending) (bool, error) {
			if time.Since(begun) < time.Minute {
				return away(e)
			}
			require.Len(t, spool.kept, 1)
			return true, nil
		}}
		r, log := finisher(t, store, spool)
		r.finish(t.Context(), r.completing())
		require.Equal(t, 1, spool.keeps)
		require.Equal(t, r.set.Lease, spool.last.KeptAt.Sub(begun), "a short outage costs no write, and a kill after a lease no reply")
		require.Empty(t, spool.kept)
		require.Positive(t, log.stalls, "nobody is held that long")
		require.Equal(t, StatusComplete, log.ended.Status)
	})
}

func TestAReplyOfWhichAPartIsLostIsNeverComplete(t *testing.T) {
	stored := []Piece{{Kind: KindText, Starts: true, Text: "ab"}}
	store := &endStore{row: &Reply{Status: StatusInFlight, Content: stored, Length: 3}}
	store.end = func(e Ending) (bool, error) { return e.StoredLength == 3, nil }
	spool := &shelf{kept: map[Fence]Spooled{}}
	r, log := finisher(t, store, spool)
	store.row.Epoch, store.row.Owner = 1, r.fence.Owner
	log.first, log.pieces = 5, []Piece{{Kind: KindText, Text: "e", Ends: true}}
	f := r.finishing(r.completing())
	require.NoError(t, spool.Keep(t.Context(), f.spooled()))
	require.EqualValues(t, 5, spool.kept[r.fence].First)

	r.replay(t.Context())
	require.Empty(t, spool.kept)
	last := store.asked[len(store.asked)-1]
	require.Equal(t, VerbAbandon, last.Verb)
	require.Equal(t, ReasonAmbiguous, last.Reason)
	require.Equal(t, stored, last.Content)
	require.Equal(t, last.Usage.Total(), last.Usage.Wasted)
}

func TestAReplayWaitsForTheDatabaseAndPassesOverWhatItKeepsRefusing(t *testing.T) {
	spool := &shelf{kept: map[Fence]Spooled{}}
	store := &endStore{end: away}
	r, _ := finisher(t, store, spool)
	f := r.finishing(r.completing())
	require.NoError(t, spool.Keep(t.Context(), f.spooled()))
	for i := range 20 {
		r.replay(t.Context())
		require.Len(t, store.asked, i+1, "once a pass")
	}
	require.Len(t, spool.kept, 1, "a database that is away is no refusal")

	store.end = func(Ending) (bool, error) { return false, errors.New("the database answered SQLSTATE 22021") }
	for i := range 20 {
		r.replay(t.Context())
		require.Len(t, store.asked, 20+min(i+1, refusals)*replayTries, "once a pass, and not for ever")
	}
	require.Len(t, spool.kept, 1, "it is left for people")
}

func TestAnEndingWhoseReplyRunsHereIsLeftToItsRun(t *testing.T) {
	spool := &shelf{kept: map[Fence]Spooled{}}
	store := &endStore{end: func(Ending) (bool, error) { return true, nil }}
	r, _ := finisher(t, store, spool)
	require.NoError(t, spool.Keep(t.Context(), r.finishing(r.completing()).spooled()))
	r.runs[r.reply.ID] = r
	r.replay(t.Context())
	require.Empty(t, store.asked)
	delete(r.runs, r.reply.ID)
	r.countUnstored(true) // as when the run gives up
	r.replay(t.Context())
	require.Len(t, store.asked, 1)
	require.Empty(t, spool.kept)
}

func TestAReplyThatWasSettledWithLessKeepsItsWholeTextInTheSpool(t *testing.T) {
	spool := &shelf{kept: map[Fence]Spooled{}}
	store := &endStore{end: func(Ending) (bool, error) { return false, nil }}
	r, _ := finisher(t, store, spool)
	store.row = &Reply{Status: StatusAbandoned, Reason: ReasonShutdown, Settled: true, Length: 3, Epoch: 1, Owner: r.fence.Owner}
	r.finish(t.Context(), r.completing())
	require.Len(t, spool.kept, 1)
	require.Len(t, store.closed, 1, "what it cost is on the ledger")
	for range 3 {
		r.replay(t.Context())
	}
	require.Len(t, spool.kept, 1)
	require.Len(t, store.asked, 2, "it is tried once")
}

func TestARevivalBetweenTwoCallsOpensNoRowOfTheLedger(t *testing.T) {
	r := &run{call: &NewCall{ID: CallID{newID()}}}
	require.Equal(t, r.call.ID, r.openCall())
	r.past = append(r.past, pastCall{call: *r.call})
	require.Equal(t, CallID{}, r.openCall(), "the call is over, and its row stays closed")
	r.call = &NewCall{ID: CallID{newID()}}
	require.Equal(t, r.call.ID, r.openCall())
}

func TestAReplyWhoseEndingLiesInTheSpoolIsNotEndedAsCutOff(t *testing.T) {
	spool := &shelf{kept: map[Fence]Spooled{}}
	store := &endStore{end: func(Ending) (bool, error) { return true, nil }}
	r, _ := finisher(t, store, spool)
	store.row, store.owned = &Reply{Status: StatusInFlight, Epoch: 1, Owner: r.fence.Owner}, []Fence{r.fence}
	require.NoError(t, spool.Keep(t.Context(), r.finishing(r.completing()).spooled()))
	require.NoError(t, r.audit(t.Context()))
	require.Empty(t, store.asked)
	r.replay(t.Context())
	require.Equal(t, VerbComplete, store.asked[0].Verb)

	require.NoError(t, r.audit(t.Context()))
	require.Equal(t, ReasonShutdown, store.asked[1].Reason, "a claim that nobody makes and nothing is left of")
}

func TestAUsageReportedBeforeTheBreakIsAnEstimateThoughNothingWasRead(t *testing.T) {
	r := &run{Service: &Service{}, call: &NewCall{RequestBytes: 70}}
	begun := callResult{httpStatus: 200, reported: &Usage{Input: 6}}
	broken := begun
	broken.err = &CallError{Class: ClassAmbiguous, Phase: PhaseBody}
	u := r.callUsage(broken)
	require.Equal(t, []any{int64(6), int64(0), SourceEstimated}, []any{u.Input, u.Output, u.Source})
	broken.replyBytes = 35
	require.EqualValues(t, 10, r.callUsage(broken).Output)
	require.Equal(t, SourceReported, r.callUsage(begun).Source, "an empty reply that ended well took what was said")
	begun.replyBytes = 35
	require.Equal(t, SourceEstimated, r.callUsage(begun).Source, "no output for a reply with content is no report")
}
