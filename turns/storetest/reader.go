package storetest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func readers() []promise {
	return []promise{
		{"a missing reply is not found", aMissingReplyIsNotFound},
		{"a user turn's id is not a reply's", aTurnIsNoReply},
		{"a running reply reads from its chunks, an ended one from its row", contentComesFromWhereItIs},
		{"logs of many replies are read at once, each from its offset", logsAreReadAtOnce},
		{"a reply that is gone has a zero id in its view", aGoneReplyHasAZeroView},
		{"a log that can't be read has a zero id in its view, beside the others", anUnreadableLogHasAZeroView},
		{"a view from past the end of what is stored has a zero id", aViewPastTheEndIsZero},
		{"a view's row has no content and says how the reply stands", aViewSaysHowItStands},
		{"a user turn is found by its own id and by a reply's", aTurnIsFoundByBothIDs},
		{"a turn of a missing row is not found", aMissingTurnIsNotFound},
		{"what is not found is named alike on every engine", whatIsMissingIsNamed},
		{"replies to a turn come oldest first with content, at most limit", repliesComeOldestFirst},
		{"a row that does not decode is read without its content and options, and said to be one", nonsenseIsReadAsSuch},
		{"nothing returned shares memory with the store", nothingIsShared},
	}
}

func notFound(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, turns.CodeNotFound, turns.CodeOf(err))
}

func aMissingReplyIsNotFound(t *testing.T, w *world) {
	c, _ := w.fresh()
	_, err := w.Store.ReadReply(w.ctx, c.key, newReplyID())
	notFound(t, err)
}

func aTurnIsNoReply(t *testing.T, w *world) {
	c, claim := w.fresh()
	_, err := w.Store.ReadReply(w.ctx, c.key, turns.ReplyID(claim.Turn))
	notFound(t, err)
	require.True(t, w.viewFrom(c, turns.ReplyID(claim.Turn), 0).Reply.ID.IsZero())
}

func contentComesFromWhereItIs(t *testing.T, w *world) {
	c, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	length = w.append(fenceOf(claim), length, more("cd"))
	sameLog(t, []turns.Piece{opening("abcd")}, w.read(c, claim.Reply.ID).Content)
	w.finish(completing(claim, length, whole("abcdef")))
	r := w.read(c, claim.Reply.ID)
	require.Equal(t, []turns.Piece{whole("abcdef")}, r.Content)
	require.EqualValues(t, 8, r.Length)
}

func logsAreReadAtOnce(t *testing.T, w *world) {
	c1, first := w.fresh()
	c2, second := w.fresh()
	length := w.append(fenceOf(first), 0, opening("ab"))
	w.append(fenceOf(first), length, more("cd"))
	w.finish(completing(second, 0, whole("wxyz")))
	views, err := w.Store.ReadLogs(w.ctx, []turns.LogPosition{
		{Key: c2.key, Reply: second.Reply.ID, From: 3}, {Key: c1.key, Reply: newReplyID()},
		{Key: c1.key, Reply: first.Reply.ID, From: length}, {Key: c1.key, Reply: first.Reply.ID},
	})
	require.NoError(t, err)
	require.Len(t, views, 4)
	require.Equal(t, []turns.Piece{{Kind: turns.KindText, Text: "yz", Ends: true}}, views[0].Pieces)
	require.Equal(t, second.Reply.ID, views[0].Reply.ID)
	equal(t, turns.LogView{}, views[1], cmpopts.EquateEmpty())
	require.Equal(t, []turns.Piece{more("cd")}, views[2].Pieces)
	sameLog(t, []turns.Piece{opening("abcd")}, views[3].Pieces)
}

func aGoneReplyHasAZeroView(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.exec("DELETE FROM turns WHERE id = %s", claim.Reply.ID.UUID)
	equal(t, turns.LogView{}, w.viewFrom(c, claim.Reply.ID, 0), cmpopts.EquateEmpty())
}

func anUnreadableLogHasAZeroView(t *testing.T, w *world) {
	c1, running := w.fresh()
	c2, ended := w.fresh()
	c3, good := w.fresh()
	w.append(fenceOf(running), 0, opening("ab"))
	w.finish(completing(ended, 0, whole("ab")))
	w.exec("UPDATE reply_chunks SET pieces = 'nonsense'")
	w.exec("UPDATE turns SET content = 'nonsense' WHERE id = %s", ended.Reply.ID.UUID)
	w.append(fenceOf(good), 0, opening("cd"))
	views, err := w.Store.ReadLogs(w.ctx, []turns.LogPosition{
		{Key: c1.key, Reply: running.Reply.ID}, {Key: c2.key, Reply: ended.Reply.ID}, {Key: c3.key, Reply: good.Reply.ID}})
	require.NoError(t, err)
	equal(t, []turns.LogView{{}, {}}, views[:2], cmpopts.EquateEmpty())
	require.Equal(t, good.Reply.ID, views[2].Reply.ID)
	require.Equal(t, []turns.Piece{opening("cd")}, views[2].Pieces)
}

func aViewPastTheEndIsZero(t *testing.T, w *world) {
	c, claim := w.fresh()
	length := w.append(fenceOf(claim), 0, opening("ab"))
	require.Equal(t, claim.Reply.ID, w.viewFrom(c, claim.Reply.ID, length).Reply.ID)
	equal(t, turns.LogView{}, w.viewFrom(c, claim.Reply.ID, length+1), cmpopts.EquateEmpty())
	w.finish(completing(claim, length, whole("ab")))
	require.Equal(t, claim.Reply.ID, w.viewFrom(c, claim.Reply.ID, length+1).Reply.ID)
	equal(t, turns.LogView{}, w.viewFrom(c, claim.Reply.ID, length+2), cmpopts.EquateEmpty())
}

func aViewSaysHowItStands(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("ab"))
	view := w.viewFrom(c, claim.Reply.ID, 0)
	require.Nil(t, view.Reply.Content)
	require.EqualValues(t, 3, view.Reply.Length)
	require.Positive(t, view.Reply.LeaseLeft)
	w.bury(w.worker)
	require.True(t, w.viewFrom(c, claim.Reply.ID, 3).Reply.OwnerDead)
	w.sweep(sweeping(claim, 3, opening("ab")))
	view = w.viewFrom(c, claim.Reply.ID, 3)
	require.Equal(t, turns.ReasonLeaseExpired, view.Reply.Reason)
	require.Empty(t, view.Pieces)
	require.Nil(t, view.Reply.Content)
}

func aTurnIsFoundByBothIDs(t *testing.T, w *world) {
	c, claim := w.fresh()
	for _, id := range []turns.RowID{claim.Turn.Row(), claim.Reply.ID.Row()} {
		turn, err := w.Store.FindTurn(w.ctx, c.key, id)
		require.NoError(t, err)
		require.Equal(t, claim.Turn, turn.ID)
		require.Equal(t, c.id, turn.Conversation)
		require.Equal(t, claim.NewTurn.Content, turn.Content)
	}
}

func nonsenseIsReadAsSuch(t *testing.T, w *world) {
	c, claim := w.fresh()
	unreadable := func() {
		t.Helper()
		reply, err := w.Store.ReadReply(w.ctx, c.key, claim.Reply.ID)
		require.ErrorIs(t, err, turns.ErrUnreadable)
		require.NotContains(t, err.Error(), "nonsense")
		require.Equal(t, claim.Reply.ID, reply.ID)
		require.Empty(t, reply.Content)
		require.Zero(t, reply.Options)
		for _, shown := range []turns.Reply{w.repliesTo(c, claim.Turn)[0], *w.entries(c, claim.Turn)[claim.Turn].Reply} {
			require.Equal(t, []any{claim.Reply.ID, reply.Length, reply.Status}, []any{shown.ID, shown.Length, shown.Status})
			require.Zero(t, shown.Options)
		}
	}
	w.append(fenceOf(claim), 0, opening("ab"))
	w.exec("UPDATE reply_chunks SET pieces = 'nonsense'")
	unreadable()
	w.finish(completing(claim, 3, whole("ab")))
	w.exec("UPDATE turns SET content = 'nonsense' WHERE id = %s", claim.Reply.ID.UUID)
	unreadable()
	w.exec("UPDATE turns SET content = '[]', options = 'nonsense' WHERE id = %s", claim.Reply.ID.UUID)
	unreadable()
	for _, column := range []string{"options", "content"} {
		w.exec("UPDATE turns SET "+column+" = 'nonsense' WHERE id = %s", claim.Turn.UUID)
		for _, id := range []turns.RowID{claim.Turn.Row(), claim.Reply.ID.Row()} {
			turn, err := w.Store.FindTurn(w.ctx, c.key, id)
			require.ErrorIs(t, err, turns.ErrUnreadable)
			require.NotContains(t, err.Error(), "nonsense")
			require.Equal(t, []any{claim.Turn, c.id}, []any{turn.ID, turn.Conversation})
			require.Empty(t, turn.Content)
			require.Zero(t, turn.Options)
		}
	}
}

func (w *world) repliesTo(c conversation, turn turns.TurnID) []turns.Reply {
	w.t.Helper()
	replies, err := w.Store.RepliesTo(w.ctx, c.key, turn, 10)
	require.NoError(w.t, err)
	require.NotEmpty(w.t, replies)
	return replies
}

func aMissingTurnIsNotFound(t *testing.T, w *world) {
	c, _ := w.fresh()
	_, err := w.Store.FindTurn(w.ctx, c.key, turns.RowID{UUID: uuid.New()})
	notFound(t, err)
}

func whatIsMissingIsNamed(t *testing.T, w *world) {
	c, claim := w.fresh()
	orphan := w.first(newConversation())
	orphan.NewTurn.Parent = claim.Turn.Row()
	for method, m := range map[string]struct {
		want *turns.Error
		call func() error
	}{
		"ReadReply": {turns.NotFound("reply", ""), func() error {
			_, err := w.Store.ReadReply(w.ctx, c.key, newReplyID())
			return err
		}},
		"FindTurn": {turns.NotFound("turn", ""), func() error {
			_, err := w.Store.FindTurn(w.ctx, c.key, newTurnID().Row())
			return err
		}},
		"ReadConversation": {turns.NotFound("conversation", "conversation_id"), func() error {
			_, err := w.Store.ReadConversation(w.ctx, newConversation().key)
			return err
		}},
		"RequestStop": {turns.NotFound("turn", ""), func() error {
			_, err := w.Store.RequestStop(w.ctx, c.key, newTurnID(), 0, turns.TurnID{})
			return err
		}},
		"Claim": {turns.NotFound("turn", "input.parent_id"), func() error {
			_, err := w.Store.Claim(w.ctx, []turns.Claim{orphan})
			return err
		}},
	} {
		var got *turns.Error
		require.ErrorAs(t, m.call(), &got, method)
		require.Equal(t, []any{m.want.Code, m.want.Field, m.want.Problem, m.want.Meta}, []any{got.Code, got.Field, got.Problem, got.Meta}, method)
	}
}

func repliesComeOldestFirst(t *testing.T, w *world) {
	c, claim := w.fresh()
	want := []turns.ReplyID{claim.Reply.ID}
	for range 2 {
		w.finish(abandoning(claim, 0, turns.ReasonShutdown, opening("a")))
		claim = w.win(w.again(c, claim.Turn))
		want = append(want, claim.Reply.ID)
	}
	w.append(fenceOf(claim), 0, opening("b"))
	replies, err := w.Store.RepliesTo(w.ctx, c.key, claim.Turn, 10)
	require.NoError(t, err)
	require.Len(t, replies, 3)
	for i, r := range replies {
		require.Equal(t, want[i], r.ID)
		require.Equal(t, uint32(2), r.Length)
		require.Empty(t, r.Content)
	}
	bounded, err := w.Store.RepliesTo(w.ctx, c.key, claim.Turn, 2)
	require.NoError(t, err)
	require.Len(t, bounded, 2)
	none, err := w.Store.RepliesTo(w.ctx, c.key, newTurnID(), 2)
	require.NoError(t, err)
	require.Empty(t, none)
}

func nothingIsShared(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("abc")))
	first := w.read(c, claim.Reply.ID)
	kept := slices.Clone(first.RequestHash)
	first.RequestHash[0]++
	first.Content[0].Text = "spoilt"
	again := w.read(c, claim.Reply.ID)
	require.Equal(t, kept, again.RequestHash)
	require.Equal(t, "abc", again.Content[0].Text)
}
