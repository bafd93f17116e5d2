package casetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/limiter"
	"github.com/turnd/turnd/turns/storetest"
)

// after is the wait that a refusal names.
func (w *world) after(err error) time.Duration {
	w.t.Helper()
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	require.Fail(w.t, "no RetryInfo", "%v", err)
	return 0
}

// limited demands that a delivery was refused for a rate, and gives the wait that it names.
func (w *world) limited(err error, quota string) time.Duration {
	w.t.Helper()
	meta := w.fails(err, codes.ResourceExhausted, "RATE_LIMITED", "SAME_ID_AFTER_WAIT")
	require.Equal(w.t, quota, meta["quota"])
	wait := w.after(err)
	require.Positive(w.t, wait)
	return wait
}

// subject is a subject's context.
func (w *world) subject(name string) context.Context {
	return metadata.AppendToOutgoingContext(w.ctx, "x-turnd-subject", name)
}

// suspended is who may make nothing new.
type suspended struct {
	mu  sync.Mutex
	all map[string]bool
	err error
}

func (s *suspended) Suspended(_ context.Context, tenant, subject string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[tenant+"/"+subject], s.err
}

func (s *suspended) set(who string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[who] = is
}

func (s *suspended) breaks(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Case C03.
func TestARetryOfALostResponseIsNotLimitedAndTheNextTurnIs(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.lets = limiter.Config{Submissions: 1}
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		in := ask(newID(), newID(), "hi")
		first := s.turn(in, nil)
		first.at(1)
		for range 3 {
			require.Equal(t, attached, s.turn(in, nil).at(1).result)
		}
		_, err := s.submit(ask(in.GetConversationId(), newID(), "more"))
		wait := w.limited(err, "submissions_per_minute")
		require.Greater(t, wait, 50*time.Second)
		require.LessOrEqual(t, wait, time.Minute)
		require.NoError(t, w.provider.OpenGate("mid"))
		first.completes()
		for range 3 {
			require.Equal(t, replayed, s.turn(in, nil).completes().result)
		}
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1, qReplies: 1})
		_, err = s.turns.SubmitTurn(w.subject("another"), &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hi")})
		require.NoError(t, err, "the limit is of each subject")
	})
}

func TestAStormOfUnknownIDsIsRefusedUnwrittenAndKnownTurnsGoThrough(t *testing.T) {
	const storm = 2000
	onEachEngine(t, func(t *testing.T, w *world) {
		w.lets = limiter.Config{Submissions: 5, Lookups: 10 * storm}
		s := w.serve()
		known := ask(newID(), newID(), "hi")
		s.turn(known, nil).completes()
		var refused int
		for i := range storm {
			_, err := s.submit(ask(newID(), newID(), "probe"))
			if err != nil {
				w.limited(err, "submissions_per_minute")
				refused++
			}
			if i%200 == 0 {
				got, err := s.submit(known)
				require.NoError(t, err)
				require.Equal(t, replayed, got.GetResult())
			}
		}
		require.GreaterOrEqual(t, refused, storm-10)
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		w.stands(map[string]int{qUsers: storm - refused + 1, qConvs: storm - refused + 1})
		w.paid(storm-refused+1, storm-refused+1)
		require.EqualValues(t, refused, w.counted("turnd.submissions", "result", "rate_limited"))
	})
}

func TestLookingIsBoundedForIDsThatAreThereAndForThoseThatAreNot(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		known := ask(newID(), newID(), "hi")
		reply := s.turn(known, nil).completes().reply
		w.lets = limiter.Config{Lookups: 4}
		for name, look := range map[string]func(*worker) error{
			"a replay": func(s *worker) error { _, err := s.submit(known); return err },
			"a stream": func(s *worker) error { return s.turn(known, nil).end().err },
			"a regenerate of what is not there": func(s *worker) error {
				_, err := s.regenerate(known.GetConversationId(), newID(), 1)
				if status.Code(err) == codes.NotFound {
					return nil
				}
				return err
			},
			"a completion of what is not held": func(s *worker) error {
				_, err := s.complete(&turnsv1.Reply{ConversationId: known.GetConversationId(), ReplyId: reply, Epoch: 1}, "text")
				if status.Code(err) == codes.FailedPrecondition {
					return nil
				}
				return err
			},
		} {
			s := w.serve()
			for range 4 {
				require.NoError(t, look(s), name)
			}
			require.Greater(t, w.limited(look(s), "lookups_per_minute"), 10*time.Second, name)
		}
		w.paid(1, 1)
	})
}

func TestANewAttemptOfAKnownTurnIsASubmissionAndItsRepeatsAreNone(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.lets = limiter.Config{Submissions: 2}
		s := w.serve()
		w.script(failing(2, scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoClose}), plain(4))
		in := ask(newID(), newID(), "hi")
		s.turn(in, nil).abandons(ambiguous)
		s.turn(in, nil).abandons(ambiguous)
		w.limited(s.turn(in, nil).end().err, "submissions_per_minute")
		w.paid(2, 2)
	})
}

func TestADoubleClickOnRegenerateCountsOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.lets = limiter.Config{Submissions: 2}
		s := w.serve()
		in := ask(newID(), newID(), "hi")
		first := s.turn(in, nil).completes().reply
		for i := range 4 {
			got, err := s.regenerate(in.GetConversationId(), first, 1)
			require.NoError(t, err)
			require.Equal(t, i > 0, got.GetReplayed())
			w.eventually(func() bool { return w.number(qInFlight) == 0 })
		}
		_, err := s.regenerate(in.GetConversationId(), first, 2)
		w.fails(err, codes.FailedPrecondition, "REPLY_CHANGED", "DO_NOT_RETRY")
		got := s.read(in.GetConversationId(), in.GetTurnId())
		second := got.GetReplies()[len(got.GetReplies())-1]
		if second.GetReplyId() == first {
			second = got.GetReplies()[0]
		}
		_, err = s.regenerate(in.GetConversationId(), second.GetReplyId(), 2)
		w.limited(err, "submissions_per_minute")
		w.paid(2, 2)
	})
}

func TestDeliveriesOfOneTurnAtTheSameMomentCountOnce(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.lets = limiter.Config{Submissions: 2}
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		in := ask(newID(), newID(), "hi")
		arrived, open := faults.Gate("Claim")
		slower := s.turn(in, nil)
		<-arrived
		s.turn(in, nil).completes()
		open()
		require.Equal(t, replayed, slower.completes().result)
		_, err := s.submit(ask(newID(), newID(), "more"))
		require.NoError(t, err)
		_, err = s.submit(ask(newID(), newID(), "and more"))
		w.limited(err, "submissions_per_minute")
	})
}

func TestACompletionThatTheDatabaseKeptFromBeingMadeIsNotCounted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.lets = limiter.Config{Submissions: 3}
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		_, r := s.hold()
		for range 4 {
			faults.FailNext("ResolveHeld", turns.Unavailable(errors.New("away")))
			_, err := s.complete(r, stored(r)+" and the rest")
			w.fails(err, codes.Unavailable, "STORE_UNAVAILABLE", "SAME_ID_AFTER_WAIT")
		}
		arrived, open := faults.Gate("ResolveHeld")
		slower := make(chan error, 1)
		go func() {
			_, err := s.complete(r, stored(r)+" and the rest")
			slower <- err
		}()
		<-arrived
		_, err := s.complete(r, stored(r)+" and the rest")
		require.NoError(t, err)
		open()
		require.NoError(t, <-slower, "it finds what it wanted made by another")
		_, err = s.submit(ask(newID(), newID(), "more"))
		require.NoError(t, err)
		_, err = s.submit(ask(newID(), newID(), "and more"))
		w.limited(err, "submissions_per_minute")
	})
}

func TestATurnThatTheWorkerHadNoRoomForIsNotCounted(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.lets = limiter.Config{Submissions: 2}
		w.settings.MaxInFlight, w.settings.MaxQueue = 1, 0
		s := w.serve()
		w.script(gate("first", "mid", 64, 20), plain(16))
		first := s.turn(ask(newID(), newID(), "first"), nil)
		first.at(1)
		in := ask(newID(), newID(), "second")
		for range 9 {
			_, err := s.submit(in)
			w.fails(err, codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT")
		}
		require.NoError(t, w.provider.OpenGate("mid"))
		first.completes()
		w.eventually(func() bool { return s.service.InFlight() == 0 })
		s.turn(in, nil).completes()
	})
}

func TestASuspendedSubjectMakesNothingNewAndIsStillAnsweredWithWhatThereIs(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		book := &suspended{all: map[string]bool{}}
		w.suspensions = book
		s := w.serve()
		_, r := s.hold()
		w.script(plain(16))
		in := ask(newID(), newID(), "hi")
		first := s.turn(in, nil).completes()
		requests := w.provider.Counts().Requests
		book.set("default/default", true)
		refused := func(err error) {
			t.Helper()
			w.fails(err, codes.PermissionDenied, "SUSPENDED", "DO_NOT_RETRY")
		}
		require.Equal(t, replayed, s.turn(in, nil).completes().result)
		_, err := s.submit(ask(newID(), newID(), "more"))
		refused(err)
		refused(s.turn(ask(in.GetConversationId(), newID(), "more"), nil).end().err)
		_, err = s.regenerate(in.GetConversationId(), first.reply, 1)
		refused(err)
		_, err = s.complete(r, stored(r)+" and more")
		refused(err)
		_, err = s.turns.SubmitTurn(w.subject("another"), &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hi")})
		require.NoError(t, err)
		w.eventually(func() bool { return w.number(qInFlight) == 0 })
		require.Equal(t, requests+1, w.provider.Counts().Requests)
		book.set("default/default", false)
		for range 2 {
			_, err = s.complete(r, stored(r)+" and more")
			require.NoError(t, err)
			book.set("default/default", true) // a repeat of what was done is a replay
		}
		book.set("default/default", false)
		book.breaks(turns.Unavailable(errors.New("gone")))
		require.Equal(t, replayed, s.turn(in, nil).completes().result)
		_, err = s.submit(ask(newID(), newID(), "more"))
		w.fails(err, codes.Unavailable, "STORE_UNAVAILABLE", "SAME_ID_AFTER_WAIT")
	})
}

func TestATurnInLineOfASubjectThatWasSuspendedDoesNotStartAndKeepsNobody(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		book := &suspended{all: map[string]bool{}}
		w.suspensions = book
		s := w.serve()
		w.script(gate("first", "mid", 64, 20), plain(16))
		in, running := s.busyAt()
		waits, behind := enqueuing(in.GetConversationId(), "two"), enqueuing(in.GetConversationId(), "three")
		_, err := s.submit(waits)
		require.NoError(t, err)
		_, err = s.turns.SubmitTurn(w.subject("another"), &turnsv1.SubmitTurnRequest{Input: behind})
		require.NoError(t, err)
		book.set("default/default", true)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		s.turn(waits, nil).abandons(turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_REFUSED)
		s.turn(behind, nil).completes()
		w.paid(2, 2)
	})
}

func TestASubjectThatRunsAsManyRepliesAsItMayKeepsNobodyOut(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxSubjectInFlight = 2
		s := w.serve()
		w.script(gate("", "mid", 64, 20))
		known := ask(newID(), newID(), "one")
		running := []*stream{s.turn(known, nil), s.turn(ask(newID(), newID(), "two"), nil)}
		for _, r := range running {
			r.at(1)
		}
		_, err := s.submit(ask(newID(), newID(), "three"))
		meta := w.fails(err, codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT")
		require.Equal(t, []string{"2", "subject"}, []string{meta["limit"], meta["scope"]})
		require.Positive(t, w.after(err))
		require.Equal(t, attached, s.turn(known, nil).at(1).result)
		_, err = s.turns.SubmitTurn(w.subject("another"), &turnsv1.SubmitTurnRequest{Input: ask(newID(), newID(), "hi")})
		require.NoError(t, err)

		// A turn that stops a reply of its subject has that reply's place.
		stops := s.turn(interrupting(known.GetConversationId()), nil)
		stops.at(1)
		running[0].abandons(turnsv1.AbandonReason_ABANDON_REASON_CANCELLED)
		require.NoError(t, w.provider.OpenGate("mid"))
		stops.completes()
		running[1].completes()
	})
}

func TestTurnsInLineWaitForAPlaceOfTheirSubject(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.settings.MaxSubjectInFlight = 1
		w.settings.Sweep = time.Hour // whoever waits is roused by what ends
		faults := storetest.NewFaults(w.store())
		s := w.serveOn(faults)
		w.script(gate("first", "one", 64, 20), gate("other", "two", 64, 20), plain(16))
		_, first := s.busyAt()
		busy := ask(newID(), newID(), "other")
		_, err := s.turns.SubmitTurn(w.subject("another"), &turnsv1.SubmitTurnRequest{Input: busy})
		require.NoError(t, err)
		waits := enqueuing(busy.GetConversationId(), "second")
		_, err = s.submit(waits)
		require.NoError(t, err)
		line := s.followTurn(waits)
		line.waits(0)
		looks := faults.Calls("Lookup")
		require.NoError(t, w.provider.OpenGate("two"))
		w.eventually(func() bool { return faults.Calls("Lookup") > looks && w.number(qInFlight) == 1 })
		w.stands(map[string]int{`SELECT count(*) FROM turns WHERE waiting <> ''`: 1})
		require.NoError(t, w.provider.OpenGate("one"))
		first.completes()
		line.completes()
	})
}
