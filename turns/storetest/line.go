package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func lines() []promise {
	return []promise{
		{"a turn in line is stored with its place, and moves the version alone", aTurnInLineIsStored},
		{"what is kept of a waiting turn's delivery comes back as it was", whatIsKeptComesBack},
		{"a turn is enqueued only at the version that was read", anEnqueueIsACompareAndSet},
		{"a turn is enqueued only under an id that no row has", anEnqueueTakesAFreeID},
		{"a deleted conversation and one that is not there take no turn in line", noConversationNoLine},
		{"a line is bounded, and a full one says so", aLineIsBounded},
		{"a turn in line below a parent that is missing is not found", anEnqueuedParentMustBeThere},
		{"a turn in line is no parent, and no sibling", aTurnInLineIsNoParent},
		{"a started turn leaves the line, hangs where it is told, and is the newest", aStartedTurnLeavesTheLine},
		{"a start of a turn that is not in line is lost, and so is a claim of one that is", onlyAStartClaimsFromTheLine},
		{"an ending says that a turn is in line behind it", anEndingTellsOfTheLine},
		{"a turn that leaves the line has a reply that is over", aDepartureIsStored},
		{"a departure is a compare-and-set, and of a turn in line alone", aDepartureIsACompareAndSet},
		{"a departure that the table has not is a typed error", aDepartureGoesByTheTable},
		{"a turn that left the line is regenerated like another", aDepartedTurnIsRegenerated},
		{"a turn that left the line can be hung elsewhere until it was called for", aDepartedTurnIsStartedOnce},
		{"a turn in line has no reply to stop", aTurnInLineHasNothingToStop},
		{"places are read in one statement, each for itself", placesAreRead},
		{"idle lines are found by pages, and busy ones are not", idleLinesAreFound},
		{"of a start, a departure and an enqueue of one version at once, one is won", oneMoveOfALineIsWon},
		{"no more turns come into line at once than it holds", aLineIsBoundedAtOnce},
	}
}

// enqueueing is a new turn for the end of a conversation's line, as the conversation stands now.
func (w *world) enqueueing(c conversation, most int) turns.Enqueueing {
	e := turns.Enqueueing{Key: c.key, Turn: newTurnID(), Max: most,
		NewTurn: turns.NewTurn{InputHash: []byte("hash"), Content: []turns.Block{turns.Text{Text: "later"}}, Options: turns.Options{Model: "demo"}},
		Waiting: turns.Waiting{Caller: turns.Caller{Tenant: c.tenant, Subject: "subject"}}}
	if st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key}); err == nil {
		e.ExpectVersion = st.Version
	}
	return e
}

// enqueue puts a turn in line.
func (w *world) enqueue(c conversation) turns.TurnID {
	w.t.Helper()
	e := w.enqueueing(c, 8)
	r, err := w.Store.Enqueue(w.ctx, e)
	require.NoError(w.t, err)
	require.True(w.t, r.Won, "the turn was not enqueued")
	return e.Turn
}

// notEnqueued asserts that nothing is written, and gives the result.
func (w *world) notEnqueued(e turns.Enqueueing) (r turns.EnqueueResult) {
	w.t.Helper()
	w.unchanged(func() {
		var err error
		r, err = w.Store.Enqueue(w.ctx, e)
		require.NoError(w.t, err)
		require.False(w.t, r.Won)
	})
	return r
}

// starting is the claim of a turn in line, below the leaf.
func (w *world) starting(c conversation, turn turns.TurnID) turns.Claim {
	w.t.Helper()
	claim := w.again(c, turn)
	claim.Start = &turns.Start{Parent: w.lookup(c, turn).Leaf}
	return claim
}

// leaving takes a turn out of line, as the conversation stands now.
func (w *world) leaving(c conversation, turn turns.TurnID) turns.Departure {
	w.t.Helper()
	st := w.lookup(c, turn)
	return turns.Departure{Key: c.key, ExpectVersion: st.Version, Turn: turn, Parent: st.Leaf, Verb: turns.VerbCancel,
		Reason: turns.ReasonCancelled, Reply: newReplyID(), Owner: w.worker, Model: "demo"}
}

func (w *world) place(c conversation, turn turns.TurnID) turns.LineView {
	w.t.Helper()
	views, err := w.Store.ReadLine(w.ctx, []turns.LinePlace{{Key: c.key, Turn: turn}})
	require.NoError(w.t, err)
	require.Len(w.t, views, 1)
	return views[0]
}

func (w *world) turnsInLine(c conversation) (ids []turns.TurnID) {
	w.t.Helper()
	for _, q := range w.lookup(c, turns.TurnID{}).Line {
		ids = append(ids, q.Turn)
	}
	return ids
}

func aTurnInLineIsStored(t *testing.T, w *world) {
	c, claim := w.fresh()
	before := w.lookup(c, claim.Turn)
	require.Empty(t, before.Line)
	e := w.enqueueing(c, 8)
	r, err := w.Store.Enqueue(w.ctx, e)
	require.NoError(t, err)
	require.Equal(t, []any{true, false, before.NextSeq, 0}, []any{r.Won, r.Full, r.Seq, r.Position})
	second := w.enqueue(c)
	after := w.lookup(c, e.Turn)
	require.Equal(t, []any{before.Version + 2, before.NextSeq + 2, before.Leaf, before.LastTurn},
		[]any{after.Version, after.NextSeq, after.Leaf, after.LastTurn})
	require.Equal(t, []turns.TurnID{e.Turn, second}, w.turnsInLine(c))
	require.Nil(t, after.Live)
	require.Nil(t, after.Newest)
	require.Equal(t, e.NewTurn.Content, after.Turn.Content)
	require.Equal(t, e.NewTurn.Options, after.Turn.Options)
	require.Equal(t, r.Seq, after.Turn.Seq)
	require.Equal(t, r.CreateTime, after.Turn.CreateTime)
	require.Equal(t, []byte("hash"), after.InputHash)
	require.True(t, after.Turn.Parent.IsZero())
	require.Equal(t, claim.Reply.ID, after.LeafReply.ID)
	require.Equal(t, claim.Turn, after.LeafTurn.ID)
	found, err := w.Store.FindTurn(w.ctx, c.key, e.Turn.Row())
	require.NoError(t, err)
	require.Equal(t, e.NewTurn.Content, found.Content)
	require.False(t, w.read(c, claim.Reply.ID).LaterTurn, "a turn in line is none that was started")
}

func whatIsKeptComesBack(t *testing.T, w *world) {
	c, claim := w.fresh()
	e := w.enqueueing(c, 8)
	e.NewTurn.Parent = claim.Reply.ID.Row()
	e.Waiting = turns.Waiting{Caller: turns.Caller{Tenant: "tenant", Subject: "ann"}, ParentSet: true, Results: true,
		OnDisconnect: turns.OnDisconnectCancel, DisconnectGrace: 1500 * time.Millisecond, OnAmbiguous: turns.OnAmbiguousHold,
		OnPartial: turns.OnPartialContinue, Deadline: time.Minute, OverrideNoProgress: true}
	_, err := w.Store.Enqueue(w.ctx, e)
	require.NoError(t, err)
	st := w.lookup(c, e.Turn)
	require.Equal(t, []turns.InLine{{Turn: e.Turn, Waiting: e.Waiting}}, st.Line)
	require.Equal(t, claim.Reply.ID.Row(), st.Turn.Parent)
}

func anEnqueueIsACompareAndSet(t *testing.T, w *world) {
	c, _ := w.fresh()
	late, early := w.enqueueing(c, 8), w.enqueueing(c, 8)
	early.ExpectVersion++
	w.enqueue(c)
	require.False(t, w.notEnqueued(late).Full)
	early.ExpectVersion++
	require.False(t, w.notEnqueued(early).Full)
}

func anEnqueueTakesAFreeID(_ *testing.T, w *world) {
	c, claim := w.fresh()
	waiting := w.enqueue(c)
	for _, taken := range []turns.TurnID{claim.Turn, turns.TurnID(claim.Reply.ID), waiting} {
		e := w.enqueueing(c, 8)
		e.Turn = taken
		w.notEnqueued(e)
	}
}

func noConversationNoLine(_ *testing.T, w *world) {
	c, _ := w.fresh()
	e := w.enqueueing(c, 8)
	w.markDeleted(c.key)
	w.notEnqueued(e)
	w.notEnqueued(w.enqueueing(newConversation(), 8))
}

func aLineIsBounded(t *testing.T, w *world) {
	c, _ := w.fresh()
	first := w.enqueue(c)
	w.enqueue(c)
	require.True(t, w.notEnqueued(w.enqueueing(c, 2)).Full)
	other, _ := w.fresh()
	w.enqueue(other)
	left, err := w.Store.LeaveLine(w.ctx, w.leaving(c, first))
	require.NoError(t, err)
	require.True(t, left.Won)
	r, err := w.Store.Enqueue(w.ctx, w.enqueueing(c, 2))
	require.NoError(t, err)
	require.True(t, r.Won)
	require.Equal(t, 1, r.Position)
}

func anEnqueuedParentMustBeThere(t *testing.T, w *world) {
	c, _ := w.fresh()
	_, foreign := w.fresh()
	e := w.enqueueing(c, 8)
	e.NewTurn.Parent = foreign.Turn.Row()
	w.unchanged(func() {
		_, err := w.Store.Enqueue(w.ctx, e)
		notFound(t, err)
	})
}

func aTurnInLineIsNoParent(t *testing.T, w *world) {
	c, claim := w.fresh()
	waiting := w.enqueue(c)
	st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Parent: waiting.Row()})
	require.NoError(t, err)
	require.False(t, st.ParentFound)
	shown, err := w.Store.Entries(w.ctx, c.key, []turns.TurnID{claim.Turn, waiting})
	require.NoError(t, err)
	require.Equal(t, []turns.TurnID{claim.Turn}, shown[claim.Turn].Siblings)
	require.Nil(t, shown[waiting].Reply)
	w.finish(completing(claim, 0, whole("a")))
	w.win(w.starting(c, waiting))
	st, err = w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Parent: waiting.Row()})
	require.NoError(t, err)
	require.True(t, st.ParentFound)
}

func aStartedTurnLeavesTheLine(t *testing.T, w *world) {
	c, claim := w.fresh()
	first, second := w.enqueue(c), w.enqueue(c)
	w.lose(w.starting(c, first))
	w.finish(completing(claim, 0, whole("a")))
	before := w.lookup(c, first)
	started := w.win(w.starting(c, first))
	st := w.lookup(c, first)
	require.Equal(t, []turns.TurnID{second}, w.turnsInLine(c))
	require.Equal(t, []any{before.Version + 1, before.NextSeq + 1, first, started.Reply.ID.Row(), claim.Reply.ID.Row()},
		[]any{st.Version, st.NextSeq, st.LastTurn, st.Leaf, st.Turn.Parent})
	require.Equal(t, before.Turn.Seq, st.Turn.Seq)
	require.EqualValues(t, 1, st.Live.Attempt)
	require.EqualValues(t, 1, st.Turn.Generation)
	require.True(t, w.read(c, claim.Reply.ID).LaterTurn)
	require.EqualValues(t, 1, w.count("SELECT count(*) FROM provider_calls WHERE turn_id = %s", first.UUID))
	w.lose(started)
}

func onlyAStartClaimsFromTheLine(_ *testing.T, w *world) {
	c, claim := w.fresh()
	waiting := w.enqueue(c)
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	plain := w.starting(c, waiting)
	plain.Start = nil
	w.lose(plain)
	w.lose(w.starting(c, claim.Turn))
	w.win(w.starting(c, waiting))
}

func anEndingTellsOfTheLine(t *testing.T, w *world) {
	c, claim := w.fresh()
	other, alone := w.fresh()
	w.enqueue(c)
	require.False(t, w.end(completing(alone, 0, whole("a"))).InLine)
	require.True(t, w.end(completing(claim, 0, whole("a"))).InLine)
	require.Empty(t, w.turnsInLine(other))
}

func aDepartureIsStored(t *testing.T, w *world) {
	for verb, reason := range map[turns.Verb]turns.Reason{turns.VerbCancel: turns.ReasonCancelled, turns.VerbRefuse: turns.ReasonProviderRefused} {
		c, claim := w.fresh()
		waiting := w.enqueue(c)
		before := w.lookup(c, waiting)
		d := w.leaving(c, waiting)
		d.Verb, d.Reason, d.ProviderCode = verb, reason, "PROMPT_TOO_LARGE"
		r, err := w.Store.LeaveLine(w.ctx, d)
		require.NoError(t, err)
		require.True(t, r.Won)
		st := w.lookup(c, waiting)
		require.Empty(t, st.Line)
		require.Equal(t, []any{before.Version + 1, before.NextSeq + 1, before.Leaf, before.LastTurn},
			[]any{st.Version, st.NextSeq, st.Leaf, st.LastTurn})
		require.Equal(t, claim.Reply.ID, st.Running.ID)
		require.Equal(t, claim.Reply.ID.Row(), st.Turn.Parent)
		require.Equal(t, verb == turns.VerbCancel, st.CancelledGeneration == 1)
		reply := w.read(c, d.Reply)
		require.Equal(t, []any{turns.StatusAbandoned, reason, int32(1), int32(1), int64(1), w.worker, "demo", "PROMPT_TOO_LARGE", true, r.Time, r.Time, 0},
			[]any{reply.Status, reply.Reason, reply.Attempt, reply.Generation, reply.Epoch, reply.Owner, reply.Model, reply.ProviderCode,
				reply.Settled, reply.CreateTime, reply.EndTime, reply.Calls})
		require.Equal(t, d.Reply, st.Newest.ID)
		require.EqualValues(t, 0, w.count("SELECT count(*) FROM provider_calls WHERE turn_id = %s", waiting.UUID))
		w.unchanged(func() {
			again, err := w.Store.LeaveLine(w.ctx, d)
			require.NoError(t, err)
			require.False(t, again.Won)
		})
	}
}

func aDepartureIsACompareAndSet(t *testing.T, w *world) {
	c, claim := w.fresh()
	waiting := w.enqueue(c)
	late := w.leaving(c, waiting)
	w.enqueue(c)
	strange := w.leaving(c, claim.Turn)
	foreign := w.leaving(c, waiting)
	foreign.Key = newConversation().key
	for _, d := range []turns.Departure{late, strange, foreign} {
		w.unchanged(func() {
			r, err := w.Store.LeaveLine(w.ctx, d)
			require.NoError(t, err)
			require.False(t, r.Won)
		})
	}
	d := w.leaving(c, waiting)
	w.markDeleted(c.key)
	w.unchanged(func() {
		r, err := w.Store.LeaveLine(w.ctx, d)
		require.NoError(t, err)
		require.False(t, r.Won)
	})
}

func aDepartureGoesByTheTable(t *testing.T, w *world) {
	c, _ := w.fresh()
	waiting := w.enqueue(c)
	for _, verb := range allVerbs() {
		for _, reason := range append([]turns.Reason{""}, turns.Reasons...) {
			if _, ok := turns.Allowed("", "", verb, turns.StatusAbandoned, reason); ok && reason != "" {
				continue
			}
			d := w.leaving(c, waiting)
			d.Verb, d.Reason = verb, reason
			w.unchanged(func() {
				_, err := w.Store.LeaveLine(w.ctx, d)
				typed(t, err, step{verb, turns.StatusAbandoned, reason})
			})
		}
	}
}

func aDepartedTurnIsRegenerated(t *testing.T, w *world) {
	c, claim := w.fresh()
	waiting := w.enqueue(c)
	_, err := w.Store.LeaveLine(w.ctx, w.leaving(c, waiting))
	require.NoError(t, err)
	w.finish(completing(claim, 0, whole("a")))
	w.lose(w.again(c, waiting)) // its generation was asked to stop
	second := w.win(w.regenerate(c, waiting))
	require.Equal(t, second.Reply.ID, w.lookup(c, waiting).Live.ID)
	require.EqualValues(t, 2, w.lookup(c, waiting).Turn.Generation)
}

func aDepartedTurnIsStartedOnce(t *testing.T, w *world) {
	c, claim := w.fresh()
	waiting := w.enqueue(c)
	_, err := w.Store.LeaveLine(w.ctx, w.leaving(c, waiting))
	require.NoError(t, err)
	w.finish(completing(claim, 0, whole("a")))
	start := w.regenerate(c, waiting)
	start.Start = &turns.Start{Parent: claim.Turn.Row()}
	w.win(start)
	st := w.lookup(c, waiting)
	require.Equal(t, claim.Turn.Row(), st.Turn.Parent)
	require.Equal(t, waiting, st.LastTurn)
	require.EqualValues(t, 2, st.Turn.Generation)
	w.finish(completing(start, 0, whole("b")))
	again := w.regenerate(c, waiting)
	again.Start = &turns.Start{Parent: claim.Reply.ID.Row()}
	w.lose(again)
}

func aTurnInLineHasNothingToStop(t *testing.T, w *world) {
	c, _ := w.fresh()
	waiting := w.enqueue(c)
	w.unchanged(func() {
		_, err := w.Store.RequestStop(w.ctx, c.key, waiting, 0, turns.TurnID{})
		notFound(t, err)
	})
}

func placesAreRead(t *testing.T, w *world) {
	c, claim := w.fresh()
	other, _ := w.fresh()
	first, second := w.enqueue(c), w.enqueue(c)
	elsewhere := w.enqueue(other)
	left := w.leaving(c, w.enqueue(c))
	_, err := w.Store.LeaveLine(w.ctx, left)
	require.NoError(t, err)
	views, err := w.Store.ReadLine(w.ctx, []turns.LinePlace{{Key: c.key, Turn: second}, {Key: other.key, Turn: second},
		{Key: c.key, Turn: first}, {Key: c.key, Turn: claim.Turn}, {Key: other.key, Turn: elsewhere}, {Key: c.key, Turn: left.Turn},
		{Key: c.key, Turn: turns.TurnID(claim.Reply.ID)}})
	require.NoError(t, err)
	require.Equal(t, []turns.LineView{{Found: true, Waiting: true, Position: 1}, {}, {Found: true, Waiting: true},
		{Found: true, Reply: claim.Reply.ID}, {Found: true, Waiting: true}, {Found: true, Reply: left.Reply}, {}}, views)
	none, err := w.Store.ReadLine(w.ctx, nil)
	require.NoError(t, err)
	require.Empty(t, none)
	w.finish(completing(claim, 0, whole("a")))
	started := w.win(w.starting(c, first))
	require.Equal(t, turns.LineView{Found: true, Reply: started.Reply.ID}, w.place(c, first))
	require.Equal(t, turns.LineView{Found: true, Waiting: true}, w.place(c, second))
}

func idleLinesAreFound(t *testing.T, w *world) {
	idle := map[turns.ConversationKey]bool{}
	for i := range 6 {
		c, claim := w.fresh()
		w.enqueue(c)
		w.enqueue(c)
		switch i % 3 {
		case 0:
			w.finish(completing(claim, 0, whole("a")))
			idle[c.key] = true
		case 1:
			w.hold(claim.Reply.ID)
			idle[c.key] = true
		}
	}
	w.fresh()
	var after turns.ConversationKey
	for range 2 {
		page, err := w.Store.IdleLines(w.ctx, after, 3)
		require.NoError(t, err)
		for _, key := range page {
			require.True(t, idle[key])
			delete(idle, key)
			after = key
		}
	}
	require.Empty(t, idle)
	page, err := w.Store.IdleLines(w.ctx, after, 3)
	require.NoError(t, err)
	require.Empty(t, page)
}

func oneMoveOfALineIsWon(t *testing.T, w *world) {
	c, claim := w.fresh()
	first, second := w.enqueue(c), w.enqueue(c)
	w.finish(completing(claim, 0, whole("a")))
	start, other := w.starting(c, first), w.starting(c, first)
	leave, add := w.leaving(c, second), w.enqueueing(c, 8)
	won := make([]bool, 4)
	moves := []func() error{
		func() error {
			r, err := w.Store.Claim(w.ctx, []turns.Claim{start})
			won[0] = err == nil && r[0].Won
			return err
		},
		func() error {
			r, err := w.Store.Claim(w.ctx, []turns.Claim{other})
			won[1] = err == nil && r[0].Won
			return err
		},
		func() error { r, err := w.Store.LeaveLine(w.ctx, leave); won[2] = r.Won; return err },
		func() error { r, err := w.Store.Enqueue(w.ctx, add); won[3] = r.Won; return err },
	}
	errs := make([]error, len(moves))
	atOnce(len(moves), func(i int) { errs[i] = moves[i]() })
	require.NoError(t, errors.Join(errs...))
	n := 0
	for _, yes := range won {
		if yes {
			n++
		}
	}
	require.Equal(t, 1, n, "%v", won)
}

func aLineIsBoundedAtOnce(t *testing.T, w *world) {
	c, _ := w.fresh()
	var errs [8]error
	atOnce(len(errs), func(i int) {
		for {
			r, err := w.Store.Enqueue(w.ctx, w.enqueueing(c, 3))
			if errs[i] = err; err != nil || r.Won || r.Full {
				return
			}
		}
	})
	require.NoError(t, errors.Join(errs[:]...))
	require.Len(t, w.turnsInLine(c), 3)
	require.EqualValues(t, 3, w.count("SELECT count(*) FROM turns WHERE conversation_key = %s AND waiting <> ''", c.key))
}

func besides() []promise {
	return []promise{
		{"a stop notes the turn it makes room for, once a generation", aStopNotesItsTurn},
		{"a turn in the place of a running one finds what it hangs beside", aTurnFindsItsPlace},
	}
}

func (w *world) besides(c conversation, turn turns.TurnID) turns.Standing {
	w.t.Helper()
	st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: turn, Beside: true})
	require.NoError(w.t, err)
	return st
}

func aStopNotesItsTurn(t *testing.T, w *world) {
	c, claim := w.fresh()
	first, second := newTurnID(), newTurnID()
	_, err := w.Store.RequestStop(w.ctx, c.key, claim.Turn, 0, first)
	require.NoError(t, err)
	w.unchanged(func() {
		_, err := w.Store.RequestStop(w.ctx, c.key, claim.Turn, 0, second)
		require.NoError(t, err)
	})
	require.Equal(t, claim.Turn, w.besides(c, first).Stopped.ID)
	require.Nil(t, w.besides(c, second).Stopped)
	require.Nil(t, w.lookup(c, first).Stopped, "it was not asked for")
	w.finish(abandoning(claim, 0, turns.ReasonCancelled))
	w.win(w.regenerate(c, claim.Turn))
	_, err = w.Store.RequestStop(w.ctx, c.key, claim.Turn, 0, second)
	require.NoError(t, err)
	require.Nil(t, w.besides(c, first).Stopped)
	require.Equal(t, claim.Turn, w.besides(c, second).Stopped.ID)
}

func aTurnFindsItsPlace(t *testing.T, w *world) {
	c, claim := w.fresh()
	turn := turns.TurnID{UUID: uuid.New()}
	st := w.besides(c, turn)
	require.Equal(t, []turns.TurnID{claim.Turn, claim.Turn}, []turns.TurnID{st.Busy.ID, st.LeafTurn.ID})
	require.True(t, st.Awaited.IsZero())
	require.Empty(t, st.Busy.Content)
	_, err := w.Store.RequestStop(w.ctx, c.key, claim.Turn, 0, turn)
	require.NoError(t, err)
	w.finish(abandoning(claim, 0, turns.ReasonCancelled))
	for _, asking := range []turns.TurnID{turn, newTurnID()} {
		st = w.besides(c, asking)
		require.Nil(t, st.Busy)
		require.Equal(t, turn, st.Awaited, "whoever comes may hang beside it")
		require.Equal(t, []any{claim.Turn, claim.Reply.ID}, []any{st.LeafTurn.ID, st.LeafReply.ID})
	}
	instead := w.first(c)
	st = w.besides(c, turn)
	instead.Turn, instead.ExpectVersion, instead.NextSeq = turn, st.Version, st.NextSeq
	w.win(instead)
	st = w.besides(c, turn)
	require.True(t, st.Awaited.IsZero(), "it has come")
	require.Equal(t, []turns.TurnID{turn, turn, claim.Turn}, []turns.TurnID{st.LeafTurn.ID, st.Busy.ID, st.Stopped.ID})
	plain := w.lookup(c, turn)
	require.Nil(t, plain.LeafTurn)
	require.Nil(t, plain.Busy)
}
