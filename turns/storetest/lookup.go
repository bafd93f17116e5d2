package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func lookups() []promise {
	return []promise{
		{"a conversation that does not exist has a zero standing", nothingStandsAtZero},
		{"a turn with a running reply is told whole", aRunningTurnIsTold},
		{"a finished turn has a live reply and none running", aFinishedTurnIsTold},
		{"a turn that was abandoned has a newest reply and no live one", anAbandonedTurnIsTold},
		{"newest is the highest attempt", newestIsTheHighestAttempt},
		{"an unknown turn in a known conversation is nil beside the rest", anUnknownTurnIsNil},
		{"a parent is found only in its own conversation", aParentIsFoundAtHome},
		{"a cursor is found only among the replies of its turn", aCursorIsFoundInItsTurn},
		{"the last turn is the one with the highest seq", theLastTurnIsTheHighest},
		{"every read of a reply tells whether a later turn was started", everyReadTellsOfALaterTurn},
		{"a deleted conversation is told so", aDeletedConversationIsTold},
		{"defaults are those of the conversation", defaultsAreTold},
		{"a lookup carries no reply's content unless asked", aLookupHasNoContent},
		{"a lookup carries the content of a complete reply up to what is asked for", aLookupCarriesContent},
		{"the owner of a running reply is told dead or by its lease", theOwnerIsTold},
		{"the generation that was asked to stop is told", theCancelledGenerationIsTold},
	}
}

func nothingStandsAtZero(t *testing.T, w *world) {
	equal(t, turns.Standing{}, w.lookup(newConversation(), newTurnID()), cmpopts.EquateEmpty())
}

func aRunningTurnIsTold(t *testing.T, w *world) {
	temperature := 0.5
	c := newConversation()
	claim := w.first(c)
	claim.NewTurn.Options = turns.Options{Model: "demo", Temperature: &temperature, StopSequences: []string{"x"}}
	created := w.claim(claim).CreateTime
	st := w.lookup(c, claim.Turn)
	equal(t, &turns.UserTurn{Conversation: c.id, ID: claim.Turn, Seq: 1, Content: claim.NewTurn.Content,
		Options: claim.NewTurn.Options, Generation: 1, CreateTime: created}, st.Turn)
	require.Equal(t, []byte("hash"), st.InputHash)
	require.Zero(t, st.CancelledGeneration)
	for _, r := range []*turns.Reply{st.Running, st.Live, st.Newest} {
		require.NotNil(t, r)
		require.Equal(t, claim.Reply.ID, r.ID)
		require.Equal(t, claim.Turn, r.Turn)
		require.Equal(t, turns.StatusInFlight, r.Status)
		require.Equal(t, c.id, r.Conversation)
	}
	require.Equal(t, claim.Turn, st.LastTurn)
}

func aFinishedTurnIsTold(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	st := w.lookup(c, claim.Turn)
	require.Nil(t, st.Running)
	require.Equal(t, claim.Reply.ID, st.Live.ID)
	require.Equal(t, claim.Reply.ID, st.Newest.ID)
	require.Equal(t, turns.StatusComplete, st.Live.Status)
	require.EqualValues(t, 1, st.Version, "an ending does not touch the conversation")
}

func anAbandonedTurnIsTold(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	st := w.lookup(c, claim.Turn)
	require.Nil(t, st.Running)
	require.Nil(t, st.Live)
	require.Equal(t, claim.Reply.ID, st.Newest.ID)
	require.Equal(t, turns.ReasonShutdown, st.Newest.Reason)
}

func newestIsTheHighestAttempt(t *testing.T, w *world) {
	c, claim := w.fresh()
	for range 3 {
		w.finish(abandoning(claim, 0, turns.ReasonShutdown))
		claim = w.win(w.again(c, claim.Turn))
	}
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	require.Equal(t, claim.Reply.ID, w.lookup(c, claim.Turn).Newest.ID)
	require.EqualValues(t, 4, w.lookup(c, claim.Turn).Newest.Attempt)
}

func anUnknownTurnIsNil(t *testing.T, w *world) {
	c, claim := w.fresh()
	st := w.lookup(c, newTurnID())
	require.True(t, st.Exists)
	require.Nil(t, st.Turn)
	require.Nil(t, st.Live)
	require.Nil(t, st.Newest)
	require.Empty(t, st.InputHash)
	require.Equal(t, claim.Reply.ID, st.Running.ID)
}

func aParentIsFoundAtHome(t *testing.T, w *world) {
	c, claim := w.fresh()
	_, other := w.fresh()
	for parent, found := range map[turns.RowID]bool{
		claim.Turn.Row(): true, claim.Reply.ID.Row(): true, other.Turn.Row(): false, {}: false, {UUID: uuid.New()}: false,
	} {
		st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: claim.Turn, Parent: parent})
		require.NoError(t, err)
		require.Equal(t, found, st.ParentFound)
	}
}

func aCursorIsFoundInItsTurn(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.win(w.again(c, claim.Turn))
	w.finish(completing(second, 0, whole("a")))
	other := w.win(w.next(c))
	for cursor, found := range map[turns.ReplyID]bool{
		claim.Reply.ID: true, second.Reply.ID: true, other.Reply.ID: false, newReplyID(): false,
	} {
		st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: claim.Turn, Cursor: cursor})
		require.NoError(t, err)
		require.Equal(t, found, st.Cursor != nil)
		if found {
			require.Equal(t, cursor, st.Cursor.ID)
		}
	}
}

func theLastTurnIsTheHighest(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	second := w.win(w.next(c))
	w.finish(abandoning(second, 0, turns.ReasonShutdown))
	retried := w.win(w.again(c, claim.Turn))
	require.Equal(t, second.Turn, w.lookup(c, claim.Turn).LastTurn, "a retry of an earlier turn")
	w.finish(completing(retried, 0, whole("a")))
	w.win(w.regenerate(c, claim.Turn))
	require.Equal(t, second.Turn, w.lookup(c, claim.Turn).LastTurn, "a regenerate of an earlier turn")
}

func everyReadTellsOfALaterTurn(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(abandoning(claim, 0, turns.ReasonShutdown))
	for place, r := range w.readEverywhere(c, claim.Turn, claim.Reply.ID) {
		require.False(t, r.LaterTurn, "%s: the last turn's", place)
	}
	last := w.win(w.next(c))
	for place, r := range w.readEverywhere(c, claim.Turn, claim.Reply.ID) {
		require.True(t, r.LaterTurn, place)
	}
	for place, r := range w.readEverywhere(c, last.Turn, last.Reply.ID) {
		require.False(t, r.LaterTurn, "%s: the last turn's", place)
	}
}

// readEverywhere reads a turn's newest reply by every method that gives replies.
func (w *world) readEverywhere(c conversation, turn turns.TurnID, id turns.ReplyID) map[string]turns.Reply {
	w.t.Helper()
	st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: turn, Cursor: id})
	require.NoError(w.t, err)
	replies, err := w.Store.RepliesTo(w.ctx, c.key, turn, 10)
	require.NoError(w.t, err)
	shown, err := w.Store.Entries(w.ctx, c.key, []turns.TurnID{turn})
	require.NoError(w.t, err)
	path, err := w.Store.ReadPath(w.ctx, c.key, id.Row(), turns.PathLimit{Rows: 1, Bytes: 1})
	require.NoError(w.t, err)
	return map[string]turns.Reply{
		"Lookup, newest": *st.Newest, "Lookup, cursor": *st.Cursor, "ReadReply": w.read(c, id), "RepliesTo": replies[len(replies)-1],
		"Entries": *shown[turn].Reply, "ReadLogs": w.viewFrom(c, id, 0).Reply, "ReadPath": *path[0].Reply,
	}
}

func aDeletedConversationIsTold(t *testing.T, w *world) {
	c, claim := w.fresh()
	require.False(t, w.lookup(c, claim.Turn).Deleted)
	w.markDeleted(c.key)
	require.True(t, w.lookup(c, claim.Turn).Deleted)
}

func defaultsAreTold(t *testing.T, w *world) {
	c := newConversation()
	defaults := turns.Options{Model: "demo", System: "be brief"}
	_, _, err := w.Store.CreateConversation(w.ctx, turns.Conversation{Key: c.key, ID: c.id, Tenant: c.tenant, Defaults: defaults})
	require.NoError(t, err)
	st := w.lookup(c, newTurnID())
	equal(t, defaults, st.Defaults)
	require.EqualValues(t, 1, st.NextSeq)
	require.True(t, st.Leaf.IsZero())
	require.True(t, st.LastTurn.IsZero())
}

func aLookupHasNoContent(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	for _, ended := range []bool{false, true} {
		if ended {
			w.finish(completing(claim, 3, whole("ab")))
		}
		st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: claim.Turn, Cursor: claim.Reply.ID})
		require.NoError(t, err)
		require.Nil(t, st.Live.Content)
		require.Nil(t, st.Newest.Content)
		require.Nil(t, st.Cursor.Content)
		require.NotZero(t, st.Live.Length)
	}
}

func aLookupCarriesContent(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	ask := func(upTo uint32) turns.Standing {
		st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: claim.Turn, ContentUpTo: upTo})
		require.NoError(t, err)
		return st
	}
	require.Nil(t, ask(100).Live.Content, "it is not complete")
	w.finish(completing(claim, 3, whole("ab")))
	length := ask(0).Live.Length
	require.Nil(t, ask(length-1).Live.Content)
	for _, r := range []*turns.Reply{ask(length).Live, ask(length).Newest} {
		require.Equal(t, []turns.Piece{whole("ab")}, r.Content)
		require.True(t, r.Replayable())
	}
	st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: newTurnID(), Cursor: claim.Reply.ID, ContentUpTo: 100})
	require.NoError(t, err)
	require.Nil(t, st.Live, "it answers another turn")
}

func theOwnerIsTold(t *testing.T, w *world) {
	c, claim := w.fresh()
	running := w.lookup(c, claim.Turn).Running
	require.False(t, running.OwnerDead)
	require.Greater(t, running.LeaseLeft, 50*time.Minute)
	require.LessOrEqual(t, running.LeaseLeft, time.Hour)
	require.GreaterOrEqual(t, running.Age, time.Duration(0))
	require.Less(t, running.Age, time.Hour)
	w.expireLease(w.worker)
	running = w.lookup(c, claim.Turn).Running
	require.False(t, running.OwnerDead)
	require.Negative(t, running.LeaseLeft)
	w.bury(w.worker)
	require.True(t, w.lookup(c, claim.Turn).Running.OwnerDead)
	w.exec("DELETE FROM workers")
	require.True(t, w.lookup(c, claim.Turn).Running.OwnerDead, "an unknown owner is a dead one")
}

func theCancelledGenerationIsTold(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.exec("UPDATE turns SET cancelled_generation = 1 WHERE id = %s", claim.Turn.UUID)
	require.EqualValues(t, 1, w.lookup(c, claim.Turn).CancelledGeneration)
}
