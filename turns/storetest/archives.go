package storetest

import (
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func archives() []promise {
	return []promise{
		{"a conversation that is read and written elsewhere reads there as it did", anArchivedConversationReadsTheSame},
		{"records come as versions of defaults, rows by seq, calls by id, across pages", archivedRecordsComeInOrder},
		{"a conversation is read as it was at one moment", anArchiveIsOfOneMoment},
		{"a reply that has not ended is read as if its worker had gone, with its calls closed", theUnendedIsReadAsEnded},
		{"a deleted conversation is read as its mark and its ledger", ofADeletedConversationTheMarkIsRead},
		{"a missing conversation is not read", aMissingConversationIsNotRead},
		{"a reading ends with the first error that its reader gives", aReadingEndsWithTheFirstError},
		{"a conversation that is there is not written, and asked for no record", whatIsThereIsNotWritten},
		{"a record that a rule refuses is named, and nothing of its conversation is written", aRefusedRecordIsNamed},
		{"an error of the records leaves nothing", anErrorOfTheRecordsLeavesNothing},
		{"a dry write leaves nothing", aDryWriteLeavesNothing},
		{"a written conversation goes on: its turns are found, and claims are won in it", aWrittenConversationGoesOn},
		{"an unused conversation is deleted, and one in which something runs, is held or waits is not", onlyAnUnusedConversationIsDeleted},
		{"names come in the order of keys, page by page", archiveNamesComeInPages},
	}
}

// copied is a conversation as it was read for an archive.
type copied struct {
	head    turns.ArchivedConversation
	records []turns.ArchivedRecord
}

var unexported = cmp.AllowUnexported(copied{})

func (w *world) archive() turns.Archive { return w.Store.(turns.Archive) }

func (w *world) copy(key turns.ConversationKey) (c copied) {
	w.t.Helper()
	require.NoError(w.t, w.archive().ReadArchived(w.ctx, key, func(head turns.ArchivedConversation) error {
		c.head = head
		return nil
	}, func(r turns.ArchivedRecord) error {
		c.records = append(c.records, r)
		return nil
	}))
	return c
}

// rows and calls are the records of a kind.
func (c copied) rows() (rows []turns.ArchivedRow) {
	for _, r := range c.records {
		if r.Row != nil {
			rows = append(rows, *r.Row)
		}
	}
	return rows
}

func (c copied) calls() (calls []turns.ArchivedCall) {
	for _, r := range c.records {
		if r.Call != nil {
			calls = append(calls, *r.Call)
		}
	}
	return calls
}

// each gives the records, then an error if there is one.
func (c copied) each(err error) iter.Seq2[turns.ArchivedRecord, error] {
	return func(yield func(turns.ArchivedRecord, error) bool) {
		for i, r := range c.records {
			r.Line = i + 1
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(turns.ArchivedRecord{}, err)
		}
	}
}

// elsewhere is the same conversation under another tenant, where it is not stored yet.
func (c copied) elsewhere() copied {
	c.head.Tenant = "elsewhere"
	return c
}

func (w *world) write(c copied) {
	w.t.Helper()
	written, err := w.archive().WriteArchived(w.ctx, c.head, c.each(nil), false)
	require.NoError(w.t, err)
	require.True(w.t, written)
}

// history is a conversation with a complete, a superseded and an abandoned reply, and a version of its defaults.
func (w *world) history() (conversation, turns.Claim) {
	w.t.Helper()
	c, first := w.fresh()
	w.exec(`INSERT INTO conversation_defaults (conversation_key, version, defaults, create_time)
		SELECT conversation_key, 1, '{"Model":"demo"}', create_time FROM conversations WHERE conversation_key = %s`, c.key)
	w.finish(completing(first, 0, sealed("a <first> reply 🦀")))
	again := w.win(w.regenerate(c, first.Turn))
	w.finish(completing(again, 0, whole("another")))
	failed := w.win(w.next(c))
	w.finish(abandoning(failed, 0, turns.ReasonShutdown, opening("cut")))
	return c, failed
}

func sealed(text string) turns.Piece {
	p := whole(text)
	p.Kind, p.Seal = turns.KindThinking, `{"signature":"s<>&"}`
	return p
}

func anArchivedConversationReadsTheSame(t *testing.T, w *world) {
	c, _ := w.history()
	read := w.copy(c.key)
	require.Len(t, read.rows(), 5)
	require.Len(t, read.calls(), 3)
	require.NotNil(t, read.records[0].Defaults)
	there := read.elsewhere()
	w.write(there)
	equal(t, there, w.copy(there.head.Key()), unexported)
}

func archivedRecordsComeInOrder(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("1")))
	for range 80 {
		next := w.win(w.next(c))
		w.finish(completing(next, 0, whole("more")))
	}
	read := w.copy(c.key)
	require.Len(t, read.rows(), 162)
	require.Len(t, read.calls(), 81)
	for i, row := range read.rows() {
		require.EqualValues(t, i+1, row.Seq)
	}
	require.True(t, slices.IsSortedFunc(read.calls(), func(a, b turns.ArchivedCall) int { return slices.Compare(a.ID.UUID[:], b.ID.UUID[:]) }))
}

func anArchiveIsOfOneMoment(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("1")))
	rows := 0
	require.NoError(t, w.archive().ReadArchived(w.ctx, c.key, func(turns.ArchivedConversation) error {
		w.finish(completing(w.win(w.next(c)), 0, whole("2")))
		return nil
	}, func(r turns.ArchivedRecord) error {
		if r.Row != nil {
			rows++
		}
		return nil
	}))
	require.Equal(t, 2, rows)
}

func theUnendedIsReadAsEnded(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.append(fenceOf(claim), 0, opening("hal"))
	w.append(fenceOf(claim), 4, more("f"))
	for _, step := range []struct {
		act    func()
		reason turns.Reason
	}{
		{func() {}, turns.ReasonShutdown},
		{func() { w.askToStop(claim.Reply.ID) }, turns.ReasonCancelled},
		{func() {
			w.exec("UPDATE turns SET cancel_requested = false WHERE id = %s", claim.Reply.ID.UUID)
			e := completing(claim, 5, opening("half"))
			e.Verb, e.Status, e.StopReason, e.Call, e.Usage = turns.VerbHold, turns.StatusHeld, "", nil, turns.Usage{}
			w.finish(e)
		}, turns.ReasonHeldReleased},
	} {
		step.act()
		w.unchanged(func() {
			read := w.copy(c.key)
			reply, call := read.rows()[1], read.calls()[0]
			require.True(t, read.records[1].Unended)
			require.Equal(t, turns.StatusAbandoned, reply.Status)
			require.Equal(t, step.reason, reply.Reason)
			require.Equal(t, reply.CreateTime, reply.EndTime)
			log, err := turns.DecodePieces([]byte(reply.Content))
			require.NoError(t, err)
			require.EqualValues(t, 5, lengthOf(log))
			require.Equal(t, turns.ClassAmbiguous, call.Class)
			require.Equal(t, turns.EstimateTokens(100), call.InputTokens)
			require.Equal(t, call.WastedTokens, reply.WastedTokens)
			equal(t, read, w.copy(c.key), unexported)
		})
	}
}

func ofADeletedConversationTheMarkIsRead(t *testing.T, w *world) {
	c, _ := w.history()
	w.exec("UPDATE conversations SET title = 'secret' WHERE conversation_key = %s", c.key)
	w.markDeleted(c.key)
	read := w.copy(c.key)
	require.Empty(t, read.head.Title)
	require.Equal(t, read.head.DeletedAt, read.head.ErasedAt, "nothing is left to erase where it is written")
	require.Empty(t, read.rows())
	require.Len(t, read.calls(), 3)
	there := read.elsewhere()
	w.write(there)
	equal(t, there, w.copy(there.head.Key()), unexported)
	require.True(t, w.lookup(conversationOf("elsewhere", c.id.UUID), newTurnID()).Deleted)
}

func aMissingConversationIsNotRead(t *testing.T, w *world) {
	err := w.archive().ReadArchived(w.ctx, newConversation().key, nil, nil)
	require.ErrorIs(t, err, turns.ErrNotFound)
}

func aReadingEndsWithTheFirstError(t *testing.T, w *world) {
	c, _ := w.history()
	enough := errors.New("enough")
	for last := range w.copy(c.key).records {
		heard := 0
		err := w.archive().ReadArchived(w.ctx, c.key, func(turns.ArchivedConversation) error { return nil },
			func(turns.ArchivedRecord) error {
				if heard++; heard > last {
					return enough
				}
				return nil
			})
		require.ErrorIs(t, err, enough)
		require.Equal(t, last+1, heard)
	}
}

func whatIsThereIsNotWritten(t *testing.T, w *world) {
	c, _ := w.history()
	read := w.copy(c.key)
	w.unchanged(func() {
		written, err := w.archive().WriteArchived(w.ctx, read.head, func(func(turns.ArchivedRecord, error) bool) {
			t.Error("records were asked for")
		}, false)
		require.NoError(t, err)
		require.False(t, written)
	})
}

// broken are changes of one record of a history that a rule of the tables refuses, by what they break.
var broken = map[string]func([]turns.ArchivedRecord) int{
	"a second live reply": func(r []turns.ArchivedRecord) int {
		r[2].Row.Status, r[2].Row.Reason = turns.StatusComplete, ""
		return 4
	},
	"a place that is taken":   func(r []turns.ArchivedRecord) int { r[3].Row.Seq = 1; return 4 },
	"an attempt that is made": func(r []turns.ArchivedRecord) int { r[3].Row.Attempt = 1; return 4 },
	"an id that is taken":     func(r []turns.ArchivedRecord) int { r[4].Row.ID = r[1].Row.ID; return 5 },
	"an unknown reason":       func(r []turns.ArchivedRecord) int { r[5].Row.Reason = "bored"; return 6 },
	"a call that is there":    func(r []turns.ArchivedRecord) int { r[7].Call.ID = r[6].Call.ID; return 8 },
}

func aRefusedRecordIsNamed(t *testing.T, w *world) {
	c, _ := w.history()
	for what, change := range broken {
		read := w.copy(c.key).elsewhere()
		line := change(read.records)
		w.unchanged(func() {
			_, err := w.archive().WriteArchived(w.ctx, read.head, read.each(nil), false)
			var refused *turns.RefusedRecord
			require.ErrorAs(t, err, &refused, what)
			require.Equal(t, line, refused.Line, what)
		})
	}
}

func anErrorOfTheRecordsLeavesNothing(t *testing.T, w *world) {
	c, _ := w.history()
	read, cut := w.copy(c.key).elsewhere(), errors.New("cut off")
	w.unchanged(func() {
		written, err := w.archive().WriteArchived(w.ctx, read.head, read.each(cut), false)
		require.ErrorIs(t, err, cut)
		require.False(t, written)
	})
	w.write(read)
}

func aDryWriteLeavesNothing(t *testing.T, w *world) {
	c, _ := w.history()
	read := w.copy(c.key).elsewhere()
	w.unchanged(func() {
		written, err := w.archive().WriteArchived(w.ctx, read.head, read.each(nil), true)
		require.NoError(t, err)
		require.True(t, written)
	})
}

func aWrittenConversationGoesOn(t *testing.T, w *world) {
	c, failed := w.history()
	read := w.copy(c.key).elsewhere()
	w.write(read)
	there := conversationOf("elsewhere", c.id.UUID)
	st := w.lookup(there, failed.Turn)
	require.Equal(t, []byte("hash"), st.InputHash)
	require.Equal(t, turns.ReasonShutdown, st.Newest.Reason)
	w.win(w.again(there, failed.Turn))
}

func archiveNamesComeInPages(t *testing.T, w *world) {
	var want []turns.ConversationKey
	for range 7 {
		c := conversationOf(turns.Tenant(uuid.NewString()), uuid.New())
		w.win(w.first(c))
		want = append(want, c.key)
	}
	w.finish(completing(w.win(w.first(newConversation())), 0, whole("x")))
	var got []turns.ConversationKey
	for after := (turns.ConversationKey{}); ; {
		page, err := w.archive().ArchiveNames(w.ctx, after, 3)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, n := range page {
			require.Equal(t, n.Key, turns.KeyOf(n.Tenant, n.ID))
			got = append(got, n.Key)
		}
		after = page[len(page)-1].Key
	}
	require.Len(t, got, 8)
	require.True(t, slices.IsSortedFunc(got, func(a, b turns.ConversationKey) int { return slices.Compare(a[:], b[:]) }))
	require.Subset(t, got, want)
}

func onlyAnUnusedConversationIsDeleted(t *testing.T, w *world) {
	store := w.Store.(turns.Retention)
	unusedFor := -hour // any use is old enough
	purge := func(c conversation, dry bool) bool {
		t.Helper()
		deleted, err := store.DeleteUnused(w.ctx, c.key, unusedFor, dry)
		require.NoError(t, err)
		return deleted
	}
	c, claim := w.fresh()
	w.unchanged(func() { require.False(t, purge(c, false), "a reply runs") })
	w.finish(completing(claim, 0, whole("x")))
	w.unchanged(func() { require.True(t, purge(c, true)) })
	require.True(t, purge(c, false))
	require.True(t, w.lookup(c, claim.Turn).Deleted)
	w.unchanged(func() { require.False(t, purge(c, false), "it is deleted already") })

	held, heldClaim := w.fresh()
	w.hold(heldClaim.Reply.ID)
	w.unchanged(func() { require.False(t, purge(held, false), "a reply is held") })
	unusedFor = hour
	used, usedClaim := w.fresh()
	w.finish(completing(usedClaim, 0, whole("x")))
	w.unchanged(func() {
		require.False(t, purge(used, false), "it was used since")
		require.False(t, purge(newConversation(), false), "there is none")
	})
}
