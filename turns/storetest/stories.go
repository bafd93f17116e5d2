package storetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func stories() []promise {
	return []promise{
		{"a takeover is told with who had the reply, who has it, and how it went on", aTakeoverIsTold},
		{"a reply that comes back to its worker is told of", aReturnIsTold},
		{"a turn is told by its replies and calls in their order, without what was said", aTurnIsTold},
		{"of a turn with more replies or calls than are asked for the newest are told", theNewestAreTold},
		{"a turn that waits is told as waiting, and of a turn that is gone there is no story", ofATurnThatIsGoneThereIsNoStory},
		{"repeated deliveries add up by turn and layer, from the first to the last", repeatsAddUp},
		{"repeated deliveries are summed by tenant, conversation, turn and time", repeatsAreSummed},
		{"a deletion erases who had the replies, and keeps how often turns came again", aDeletionErasesTakeoversAlone},
		{"a deleted turn's replies are no longer told of", aDeletedTurnIsNotTold},
		{"takeovers and repeats go with a conversation that is copied", takeoversAndRepeatsAreCopied},
	}
}

func (w *world) story(c conversation, row turns.RowID) turns.Story {
	w.t.Helper()
	s, err := w.Store.ReadStory(w.ctx, turns.StoryQuery{Key: c.key, Row: row, Replies: 10, Calls: 10})
	require.NoError(w.t, err)
	return s
}

func (w *world) repeat(repeats ...turns.Repeats) {
	w.t.Helper()
	require.NoError(w.t, w.Store.AddRepeats(w.ctx, repeats))
}

// repeatedAgo are two repeats of a turn by a layer, so long ago.
func repeatedAgo(c conversation, turn turns.TurnID, layer turns.Layer, first, last time.Duration) turns.Repeats {
	return turns.Repeats{Key: c.key, Turn: turn, Layer: layer, Count: 2, FirstAge: first, LastAge: last}
}

// taken is a reply that was taken over by way of asking.
func (w *world) taken() (conversation, turns.Claim, turns.Takeover) {
	w.t.Helper()
	c, claim := w.deserted()
	v := w.takingOver(claim, 3)
	v.Way = turns.TakenAsked
	require.True(w.t, w.takeOver(v).Won)
	return c, claim, v
}

func aTakeoverIsTold(t *testing.T, w *world) {
	c, claim, v := w.taken()
	told := w.story(c, claim.Turn.Row()).Takeovers
	require.Len(t, told, 1)
	require.WithinDuration(t, time.Now(), told[0].Time, hour)
	told[0].Time = time.Time{}
	require.Equal(t, turns.ReplyTakeover{Reply: claim.Reply.ID, Epoch: 2, Way: turns.TakenAsked,
		From: turns.Worker{ID: claim.Reply.Owner, Name: "w"}, To: turns.Worker{ID: v.Owner, Name: "w"}}, told[0])
	require.False(t, w.takeOver(v).Won)
	require.Len(t, w.story(c, claim.Turn.Row()).Takeovers, 1, "what was not won is not told")
}

func aReturnIsTold(t *testing.T, w *world) {
	c, claim := w.lost()
	require.True(t, w.revive(reviving(claim, w.worker)))
	told := w.story(c, claim.Turn.Row()).Takeovers
	require.Len(t, told, 1)
	require.Equal(t, turns.TakenBack, told[0].Way)
	require.EqualValues(t, 2, told[0].Epoch)
	require.Equal(t, claim.Reply.Owner, told[0].From.ID)
	require.Equal(t, w.worker, told[0].To.ID)
}

func aTurnIsTold(t *testing.T, w *world) {
	c, first := w.fresh()
	w.finish(abandoning(first, 0, turns.ReasonProviderError, opening("cut")))
	second := w.win(w.again(c, first.Turn))
	w.finish(completing(second, 0, whole("an answer")))
	w.win(w.next(c)) // another turn, which is not told of
	for _, row := range []turns.RowID{first.Turn.Row(), first.Reply.ID.Row(), second.Reply.ID.Row()} {
		s := w.story(c, row)
		require.Equal(t, first.Turn, s.Turn.ID)
		require.Equal(t, c.id, s.Turn.Conversation)
		require.Empty(t, s.Turn.Content)
		require.False(t, s.Waits)
		require.False(t, s.Truncated)
		require.Len(t, s.Replies, 2)
		require.Equal(t, []turns.ReplyID{first.Reply.ID, second.Reply.ID}, []turns.ReplyID{s.Replies[0].ID, s.Replies[1].ID})
		require.Equal(t, turns.ReasonProviderError, s.Replies[0].Reason)
		require.Equal(t, turns.StatusComplete, s.Replies[1].Status)
		require.Equal(t, "w", s.Replies[1].OwnerName)
		require.Empty(t, s.Replies[1].Content)
		require.NotZero(t, s.Replies[1].Length)
		require.Len(t, s.Calls, 2)
		require.Equal(t, first.Call.ID, s.Calls[0].ID)
		require.Equal(t, second.Call.ID, s.Calls[1].ID)
		require.Empty(t, s.Takeovers)
		require.Empty(t, s.Repeats)
	}
}

func theNewestAreTold(t *testing.T, w *world) {
	c, claim := w.fresh()
	turn := claim.Turn
	for range 3 {
		w.finish(abandoning(claim, 0, turns.ReasonProviderError))
		claim = w.win(w.again(c, turn))
	}
	s, err := w.Store.ReadStory(w.ctx, turns.StoryQuery{Key: c.key, Row: turn.Row(), Replies: 2, Calls: 10})
	require.NoError(t, err)
	require.True(t, s.Truncated)
	require.Len(t, s.Replies, 2)
	require.Equal(t, claim.Reply.ID, s.Replies[1].ID)
	require.Len(t, s.Calls, 2, "calls of replies that are told of")
	s, err = w.Store.ReadStory(w.ctx, turns.StoryQuery{Key: c.key, Row: turn.Row(), Replies: 4, Calls: 3})
	require.NoError(t, err)
	require.True(t, s.Truncated)
	require.Len(t, s.Replies, 4)
	require.Len(t, s.Calls, 3)
	require.Equal(t, claim.Call.ID, s.Calls[2].ID)
	s, err = w.Store.ReadStory(w.ctx, turns.StoryQuery{Key: c.key, Row: turn.Row(), Replies: 4, Calls: 4})
	require.NoError(t, err)
	require.False(t, s.Truncated)
}

func ofATurnThatIsGoneThereIsNoStory(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("x")))
	missing := func(c conversation, row turns.RowID, want error) {
		t.Helper()
		_, err := w.Store.ReadStory(w.ctx, turns.StoryQuery{Key: c.key, Row: row, Replies: 1, Calls: 1})
		require.ErrorIs(t, err, want)
	}
	missing(c, newTurnID().Row(), turns.ErrNotFound)
	missing(newConversation(), claim.Turn.Row(), turns.ErrNotFound)
	w.exec("UPDATE turns SET waiting = 'x' WHERE id = %s", claim.Turn.UUID)
	require.True(t, w.story(c, claim.Turn.Row()).Waits)
	w.deleteTurn(c, claim.Turn)
	missing(c, claim.Turn.Row(), turns.ErrTurnDeleted)
	w.markDeleted(c.key)
	missing(c, claim.Turn.Row(), turns.ErrDeleted)
}

func repeatsAddUp(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.repeat() // nothing
	w.repeat(repeatedAgo(c, claim.Turn, turns.LayerClient, 20*time.Second, 10*time.Second),
		repeatedAgo(c, claim.Turn, turns.LayerRedelivery, 2*time.Second, time.Second),
		repeatedAgo(newConversation(), claim.Turn, turns.LayerClient, 0, 0))
	w.repeat(repeatedAgo(c, claim.Turn, turns.LayerClient, 15*time.Second, 5*time.Second))
	told := w.story(c, claim.Turn.Row()).Repeats
	require.Len(t, told, 2, "of a conversation that is not stored nothing is counted")
	require.Equal(t, turns.LayerClient, told[0].Layer)
	require.EqualValues(t, 4, told[0].Count)
	require.InDelta(t, 15, told[0].LastTime.Sub(told[0].FirstTime).Seconds(), 4)
	require.Equal(t, turns.LayerRedelivery, told[1].Layer)
	require.EqualValues(t, 2, told[1].Count)
	require.EqualValues(t, 2, w.count("SELECT count(*) FROM turn_repeats"))
}

func repeatsAreSummed(t *testing.T, w *world) {
	c, claim := w.fresh()
	other, second := w.fresh()
	theirs := conversationOf("another tenant", uuid.New())
	third := w.win(w.first(theirs))
	w.repeat(repeatedAgo(c, claim.Turn, turns.LayerClient, hour, 0), repeatedAgo(other, second.Turn, turns.LayerClient, 0, 0),
		repeatedAgo(other, second.Turn, turns.LayerRedelivery, 0, 0), repeatedAgo(theirs, third.Turn, turns.LayerClient, 0, 0))
	sums := func(f turns.LedgerFilter) map[turns.Layer]int64 {
		t.Helper()
		if f.Tenant == "" {
			f.Tenant = "tenant"
		}
		got, err := w.Store.SumRepeats(w.ctx, f)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, map[turns.Layer]int64{turns.LayerClient: 4, turns.LayerRedelivery: 2}, sums(turns.LedgerFilter{}))
	require.Equal(t, map[turns.Layer]int64{turns.LayerClient: 2}, sums(turns.LedgerFilter{Tenant: "another tenant"}))
	require.Equal(t, map[turns.Layer]int64{turns.LayerClient: 2}, sums(turns.LedgerFilter{Key: &c.key}))
	require.Equal(t, map[turns.Layer]int64{turns.LayerClient: 2}, sums(turns.LedgerFilter{Key: &c.key, Turn: claim.Turn}))
	require.Empty(t, sums(turns.LedgerFilter{Key: &c.key, Turn: second.Turn}))
	require.Empty(t, sums(turns.LedgerFilter{Tenant: "another tenant", Key: &c.key}))
	soon := time.Now().Add(-hour / 2)
	require.Equal(t, map[turns.Layer]int64{turns.LayerClient: 2}, sums(turns.LedgerFilter{Before: soon}), "they count with the first of them")
	require.Equal(t, map[turns.Layer]int64{turns.LayerClient: 2, turns.LayerRedelivery: 2}, sums(turns.LedgerFilter{From: soon}))
}

func aDeletionErasesTakeoversAlone(t *testing.T, w *world) {
	c, claim, _ := w.taken()
	w.repeat(repeatedAgo(c, claim.Turn, turns.LayerClient, 0, 0))
	w.deleteConversation(c)
	w.repeat(repeatedAgo(c, claim.Turn, turns.LayerClient, 0, 0)) // what a worker had counted before
	w.erase(c, 1)
	require.Zero(t, w.rows(c, "reply_takeovers"))
	require.EqualValues(t, 1, w.rows(c, "turn_repeats"))
	got, err := w.Store.SumRepeats(w.ctx, turns.LedgerFilter{Tenant: "tenant"})
	require.NoError(t, err)
	require.EqualValues(t, 4, got[turns.LayerClient])
}

func aDeletedTurnIsNotTold(t *testing.T, w *world) {
	c, claim, _ := w.taken()
	w.deleteTurn(c, claim.Turn)
	require.Zero(t, w.rows(c, "reply_takeovers"))
}

func takeoversAndRepeatsAreCopied(t *testing.T, w *world) {
	c, claim, v := w.taken()
	for i := range 70 { // more than a page
		w.exec("INSERT INTO reply_takeovers (conversation_key, reply_id, epoch, way, from_worker, to_worker, create_time)"+
			" SELECT conversation_key, reply_id, epoch + "+strconv.Itoa(i+1)+", way, from_worker, to_worker, create_time FROM reply_takeovers"+
			" WHERE epoch = 2 AND conversation_key = %s", c.key)
	}
	w.repeat(repeatedAgo(c, claim.Turn, turns.LayerClient, 2*time.Second, time.Second), repeatedAgo(c, claim.Turn, turns.LayerRedelivery, 0, 0))
	e := completing(claim, 3, opening("ab"))
	e.Fence, e.Call = overtaken(v), nil
	w.finish(e)
	read := w.copy(c.key)
	takeovers, repeats := 0, 0
	for _, r := range read.records {
		if r.Takeover != nil {
			takeovers++
		}
		if r.Repeats != nil {
			repeats++
		}
	}
	require.Equal(t, 71, takeovers)
	require.Equal(t, 2, repeats)
	there := read.elsewhere()
	w.write(there)
	equal(t, there, w.copy(there.head.Key()), unexported)
	w.markDeleted(c.key)
	for _, r := range w.copy(c.key).records {
		require.Nil(t, r.Takeover)
	}
}
