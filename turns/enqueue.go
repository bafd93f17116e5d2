package turns

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// placeInLine is how many turns of the line come before a turn; -1 if it is not in line.
func (st Standing) placeInLine(turn TurnID) int {
	for i, q := range st.Line {
		if q.Turn == turn {
			return i
		}
	}
	return -1
}

// uncalled reports whether the turn is stored, is over, and nobody was ever called for it: it was taken out of line.
func (st Standing) uncalled() bool { return st.Newest != nil && st.Newest.Calls == 0 }

// joinsLine reports whether a delivery is to wait: of a new turn that finds a reply running, or others in line. A turn that
// answers tool calls goes ahead of those, since they wait for it.
func (a *arrival) joinsLine(st Standing) bool {
	return a.OnBusy == OnBusyEnqueue && st.Turn == nil && (st.Running != nil || len(st.Line) > 0 && !answersCalls(a.Input.Content))
}

// standsBehind reports whether a new turn that would neither wait nor stop anything finds turns in line.
func (a *arrival) standsBehind(st Standing) bool {
	waits := a.OnBusy == "" || a.OnBusy == OnBusyReject
	return waits && st.Turn == nil && a.regenerate == nil && len(st.Line) > 0 && !answersCalls(a.Input.Content)
}

// busyLine refuses a turn for those in line. None of them runs, so that there is no reply and no lease to name.
func busyLine(st Standing) error {
	return &Error{Code: CodeBusy, RetryAfter: time.Second,
		Problem: "other turns of the conversation wait in line; wait for them, or let this one wait too",
		Meta:    map[string]string{"turn_id": st.Line[0].Turn.String(), "in_line": fmt.Sprint(len(st.Line))}}
}

// enqueue stores the turn at the end of its conversation's line. What could never start is refused before.
func (a *arrival) enqueue(ctx context.Context, st Standing) (Submission, bool, error) {
	if a.Draining() {
		return Submission{}, false, drainingError()
	}
	tokens, err := a.couldStart(ctx, st)
	if err != nil {
		return Submission{}, false, err
	}
	results, err := a.store.Enqueue(ctx, a.enqueueing(st, tokens))
	switch {
	case errors.Is(err, ErrUnknownOutcome) && pause(ctx, unsurePause):
		a.enqueued = true
		return Submission{}, false, nil // the next look says whether it is there
	case err != nil:
		return Submission{}, false, err
	case results.Met != nil:
		return Submission{}, false, a.met(ctx, *results.Met)
	case results.Full:
		return Submission{}, false, lineFull(a.set.MaxWaiting)
	case !results.Won:
		return Submission{}, false, nil
	}
	// A reply that ended meanwhile may have seen no line; the second look finds one whose end was under way at the first.
	a.advanceSoon(a.key)
	a.advanceLater(a.key)
	turn := UserTurn{Conversation: a.Input.ConversationID(), ID: a.Input.Turn, Parent: a.Input.Parent, Seq: results.Seq,
		Options: a.Input.Options, Generation: 1, CreateTime: results.CreateTime}
	return a.queued(turn, results.Position, false), true, nil
}

func (a *arrival) enqueueing(st Standing, tokens int64) Enqueueing {
	return Enqueueing{
		Key: a.key, ExpectVersion: st.Version, Turn: a.Input.Turn, Max: a.set.MaxWaiting, Reserve: a.reservation(tokens),
		NewTurn: NewTurn{Parent: a.Input.Parent, InputHash: a.hash, Content: a.Input.Content, Options: a.Input.Options},
		Waiting: Waiting{Caller: a.caller, ParentSet: a.Input.ParentSet, Elsewhere: a.Input.ParentSet && a.Input.Parent != st.Leaf, Results: answersCalls(a.Input.Content),
			OnDisconnect: a.OnDisconnect, DisconnectGrace: a.DisconnectGrace, OnAmbiguous: a.OnAmbiguous, OnPartial: a.OnPartial,
			Deadline: a.Deadline, OverrideNoProgress: a.OverrideNoProgress},
	}
}

// couldStart builds the turn's request as if nothing came before it: that shows what no history can cure. Results of tool
// calls are left to the start, as the calls may still be on their way. Tokens are what it may take at the least; what comes
// before it is known when it starts.
func (a *arrival) couldStart(ctx context.Context, st Standing) (tokens int64, err error) {
	if _, err := a.parent(ctx, st); err != nil {
		return 0, err
	}
	if err := a.checkCaps(ctx, st); err != nil {
		return 0, err
	}
	made, err := a.layers(ctx, st)
	if err != nil {
		return 0, err
	}
	routes, err := a.routes(made.options.Model)
	if err != nil {
		return 0, err
	}
	output := outputLimit(made.options, routes[0].Limits)
	if answersCalls(a.Input.Content) {
		return EstimateContent(a.Input.Content) + output, made.options.checkToolChoice()
	}
	q := Question{Turn: UserTurn{ID: a.Input.Turn, Content: a.Input.Content}, Route: routes[0],
		Origin: Origin{Conversation: a.key, Turn: a.Input.Turn, Generation: 1}}
	made.ask(&q)
	built, err := BuildRequest(a.generator, q)
	return built.Tokens + output, err
}

// queued answers a delivery of a turn that waits in line.
func (a *arrival) queued(turn UserTurn, position int, repeats bool) Submission {
	turn.Content = nil
	return Submission{Key: a.key, Turn: turn, Result: ResultQueued, Waiting: true, Position: position, repeats: repeats}
}

func lineFull(limit int) error {
	return &Error{Code: CodeOverloaded, RetryAfter: time.Second, Meta: map[string]string{"limit": fmt.Sprint(limit)},
		Problem: "as many turns as allowed wait in the conversation's line; send the same turn again later"}
}

// takesPlaceOf is the turn that a superseding one hangs beside: the one that runs; or one that was stopped for it, be it by
// this delivery or by an earlier one that was cut off; or one that was stopped for another which has not come yet.
func (a *arrival) takesPlaceOf(st Standing) *UserTurn {
	switch {
	case a.OnBusy != OnBusySupersede:
		return nil
	case st.Busy != nil:
		return st.Busy
	case st.Stopped != nil && !st.answeredSince(*st.Stopped):
		return st.Stopped
	case a.beside != nil:
		return a.beside
	case st.awaits():
		return st.LeafTurn
	}
	return nil
}

// answeredSince reports whether a turn that was stopped has an answer all the same: it was regenerated.
func (st Standing) answeredSince(turn UserTurn) bool {
	return st.LeafTurn != nil && st.LeafTurn.ID == turn.ID && st.LeafReply.Status != StatusAbandoned
}

// takeOut looks how a turn stands that is to be stopped. One that waits in line is taken out of it first: it leaves with a
// reply that is over, and nobody was asked.
func (s *Service) takeOut(ctx context.Context, q LookupQuery) (Standing, error) {
	d := Departure{Key: q.Key, Turn: q.Turn, Verb: VerbCancel, Reason: ReasonCancelled, Reply: ReplyID{newID()}, Owner: s.lease.worker()}
	for range submitRounds {
		st, err := s.store.Lookup(ctx, q)
		place := st.placeInLine(q.Turn)
		if err != nil || place < 0 {
			return st, err
		}
		if _, err := s.leaveLine(ctx, d, st, st.Line[place].Waiting); err != nil && !errors.Is(err, ErrUnknownOutcome) {
			return st, err
		}
	}
	return Standing{}, lostRace()
}

// leaveLine takes a turn out of line, as it stands. What was not written, because the line moved, is to be looked at again.
func (s *Service) leaveLine(ctx context.Context, d Departure, st Standing, w Waiting) (won bool, err error) {
	d.ExpectVersion, d.Parent = st.Version, st.Leaf
	d.Model = st.Turn.Options.Or(st.Defaults).Model
	if w.ParentSet {
		d.Parent = st.Turn.Parent
	}
	r, err := s.store.LeaveLine(ctx, d)
	if err != nil || !r.Won {
		return false, err
	}
	s.metrics.replyEnded(ctx, StatusAbandoned, d.Reason)
	s.settleSoon(d.Key, d.Turn, 1)
	s.logs.LineMoved(d.Key)
	return true, nil
}
