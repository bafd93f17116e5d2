package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func conversations() []promise {
	return []promise{
		{"a created conversation reads back as it was given", aCreatedConversationReadsBack},
		{"a key that is taken gives what is stored", aTakenKeyGivesWhatIsStored},
		{"a missing conversation is not found", aMissingConversationIsNotFound},
		{"a conversation names its leaf and its running reply", aConversationNamesItsLeaf},
		{"an update replaces title, defaults and labels at the expected version, and not what it was created with", anUpdateReplaces},
		{"an update at another version changes nothing", anUpdateElsewhereChangesNothing},
		{"an update makes a claim at the old version lose", anUpdateMovesTheVersion},
		{"a deleted conversation reads as deleted and is not listed", aDeletedConversationIsNotListed},
		{"conversations are listed by last use, newest first, and pages join without gap or repeat", pagesJoin},
		{"a page stays where it was while others are used", pagesAreStable},
		{"a list by labels looks at no more than it may, says where it got to, and goes on there", aListByLabelsIsBounded},
		{"a list is of one tenant and subject", aListIsOfOneSubject},
		{"a list takes only conversations that carry all labels", aListTakesLabels},
	}
}

func (w *world) made(c conversation) turns.Conversation {
	return turns.Conversation{Key: c.key, ID: c.id, Tenant: c.tenant, Subject: "subject", Title: "title",
		Defaults: turns.Options{Model: "demo"}, DefaultsVersion: 1, Labels: map[string]string{"a": "1", "b": "2"}, CreateHash: []byte("created")}
}

func (w *world) create(c turns.Conversation) turns.Conversation {
	w.t.Helper()
	stored, created, err := w.Store.CreateConversation(w.ctx, c)
	require.NoError(w.t, err)
	require.True(w.t, created)
	return stored
}

func (w *world) conversation(c conversation) turns.Conversation {
	w.t.Helper()
	stored, err := w.Store.ReadConversation(w.ctx, c.key)
	require.NoError(w.t, err)
	return stored
}

func aCreatedConversationReadsBack(t *testing.T, w *world) {
	c := newConversation()
	want := w.made(c)
	stored := w.create(want)
	require.False(t, stored.CreateTime.IsZero())
	require.Equal(t, stored.CreateTime, stored.UpdateTime)
	want.Version = 1
	equal(t, want, stored, cmpopts.IgnoreFields(want, "CreateTime", "UpdateTime"))
	equal(t, stored, w.conversation(c))
}

func aTakenKeyGivesWhatIsStored(t *testing.T, w *world) {
	c := newConversation()
	stored := w.create(w.made(c))
	other := w.made(c)
	other.Title = "another"
	w.unchanged(func() {
		got, created, err := w.Store.CreateConversation(w.ctx, other)
		require.NoError(t, err)
		require.False(t, created)
		equal(t, stored, got)
	})
}

func aMissingConversationIsNotFound(t *testing.T, w *world) {
	_, err := w.Store.ReadConversation(w.ctx, newConversation().key)
	notFound(t, err)
}

func aConversationNamesItsLeaf(t *testing.T, w *world) {
	c, claim := w.fresh()
	stored := w.conversation(c)
	require.Equal(t, claim.Reply.ID, stored.Running)
	require.Equal(t, claim.Reply.ID.Row(), stored.Leaf)
	require.Equal(t, c.id, stored.ID)
	require.Equal(t, c.tenant, stored.Tenant)
	require.Equal(t, "subject", stored.Subject)
	w.finish(completing(claim, 0, whole("a")))
	require.True(t, w.conversation(c).Running.IsZero())
}

func anUpdateReplaces(t *testing.T, w *world) {
	c := newConversation()
	stored := w.create(w.made(c))
	change := stored
	change.CreateHash = []byte("other")
	change.Title, change.Defaults, change.Labels = "new", turns.Options{System: "s"}, map[string]string{"c": "3"}
	change.DefaultsVersion = 2
	updated, err := w.Store.UpdateConversation(w.ctx, change, 1)
	require.NoError(t, err)
	require.True(t, updated)
	change.Version, change.CreateHash = 2, stored.CreateHash
	equal(t, change, w.conversation(c), cmpopts.IgnoreFields(change, "UpdateTime"))
}

func anUpdateElsewhereChangesNothing(t *testing.T, w *world) {
	c := newConversation()
	w.create(w.made(c))
	gone := newConversation()
	w.create(w.made(gone))
	w.markDeleted(gone.key)
	w.unchanged(func() {
		for at, of := range map[int64]conversation{2: c, 0: c, 1: newConversation()} {
			updated, err := w.Store.UpdateConversation(w.ctx, w.made(of), at)
			require.NoError(t, err)
			require.False(t, updated)
		}
		updated, err := w.Store.UpdateConversation(w.ctx, w.made(gone), 1)
		require.NoError(t, err)
		require.False(t, updated, "a deleted one takes no update")
	})
}

func anUpdateMovesTheVersion(t *testing.T, w *world) {
	c, claim := w.fresh()
	w.finish(completing(claim, 0, whole("a")))
	stale := w.next(c)
	updated, err := w.Store.UpdateConversation(w.ctx, w.made(c), stale.ExpectVersion)
	require.NoError(t, err)
	require.True(t, updated)
	w.lose(stale)
	w.win(w.next(c))
}

func aDeletedConversationIsNotListed(t *testing.T, w *world) {
	c := newConversation()
	w.create(w.made(c))
	w.markDeleted(c.key)
	require.True(t, w.conversation(c).Deleted)
	require.Empty(t, w.list(turns.ConversationQuery{}))
}

// page reads one page of the tenant and subject that tests use, and list what it found.
func (w *world) page(q turns.ConversationQuery) turns.ConversationPage {
	w.t.Helper()
	if q.Tenant == "" {
		q.Tenant, q.Subject = "tenant", "subject"
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	q.Look = max(q.Look, q.Limit)
	page, err := w.Store.ListConversations(w.ctx, q)
	require.NoError(w.t, err)
	return page
}

func (w *world) list(q turns.ConversationQuery) []turns.Conversation {
	w.t.Helper()
	return w.page(q).Found
}

func keysOf(page []turns.Conversation) (keys []turns.ConversationKey) {
	for _, c := range page {
		keys = append(keys, c.Key)
	}
	return keys
}

func after(q turns.ConversationQuery, page []turns.Conversation) turns.ConversationQuery {
	last := page[len(page)-1]
	q.BeforeTime, q.BeforeKey = last.UpdateTime, last.Key
	return q
}

func pagesJoin(t *testing.T, w *world) {
	for i := range 7 {
		w.create(w.made(newConversation()))
		if i == 4 { // some at one and the same time, which only the key tells apart
			w.exec("UPDATE conversations SET update_time = (SELECT min(update_time) FROM conversations)")
		}
	}
	all := w.list(turns.ConversationQuery{})
	require.Len(t, all, 7)
	for i := range all[:6] {
		require.False(t, all[i].UpdateTime.Before(all[i+1].UpdateTime))
	}
	q := turns.ConversationQuery{Limit: 2}
	var joined []turns.ConversationKey
	for page := w.list(q); len(page) > 0; page = w.list(q) {
		require.LessOrEqual(t, len(page), 2)
		joined = append(joined, keysOf(page)...)
		q = after(q, page)
	}
	require.Equal(t, keysOf(all), joined)
}

func pagesAreStable(t *testing.T, w *world) {
	var made []conversation
	for range 4 {
		c := newConversation()
		w.create(w.made(c))
		made = append(made, c)
	}
	q := turns.ConversationQuery{Limit: 2}
	rest := keysOf(w.list(after(q, w.list(q))))
	w.create(w.made(newConversation()))
	w.win(w.next(made[3]))
	require.Equal(t, made[3].key, w.list(q)[0].Key, "a claim is a use")
	require.Equal(t, rest, keysOf(w.list(turns.ConversationQuery{Limit: 2, BeforeTime: w.conversation(made[2]).UpdateTime, BeforeKey: made[2].key})))
}

func aListByLabelsIsBounded(t *testing.T, w *world) {
	var wanted []turns.ConversationKey
	for i := range 11 {
		c := w.made(newConversation())
		c.Labels = map[string]string{"place": string(rune('a' + i))}
		if i == 2 || i == 3 || i == 9 {
			c.Labels["wanted"] = "yes"
			wanted = append([]turns.ConversationKey{c.Key}, wanted...)
		}
		w.create(c)
	}
	q := turns.ConversationQuery{Labels: map[string]string{"wanted": "yes"}, Limit: 3, Look: 4}
	var found []turns.ConversationKey
	pages := 0
	for page := w.page(q); ; page = w.page(q) {
		pages++
		found = append(found, keysOf(page.Found)...)
		if page.Reached == nil {
			break
		}
		q = after(q, []turns.Conversation{*page.Reached})
	}
	require.Equal(t, wanted, found)
	require.Equal(t, 3, pages, "11 are looked at 4 by 4")
	none := w.page(turns.ConversationQuery{Labels: map[string]string{"wanted": "no"}, Limit: 3, Look: 4})
	require.Empty(t, none.Found)
	require.NotNil(t, none.Reached, "not all were looked at")
	one := turns.ConversationQuery{Labels: q.Labels, Limit: 1, Look: 4}
	require.Nil(t, w.page(one).Reached, "as many were found as were asked for")
	require.Nil(t, w.page(turns.ConversationQuery{Limit: 100, Look: 100}).Reached, "all were looked at")
}

func aListIsOfOneSubject(t *testing.T, w *world) {
	mine := newConversation()
	w.create(w.made(mine))
	other := w.made(newConversation())
	other.Subject = "other"
	w.create(other)
	w.create(w.made(conversationOf("another tenant", uuid.New())))
	require.Equal(t, []turns.ConversationKey{mine.key}, keysOf(w.list(turns.ConversationQuery{})))
}

func aListTakesLabels(t *testing.T, w *world) {
	c := w.made(newConversation())
	w.create(c)
	plain := w.made(newConversation())
	plain.Labels = nil
	w.create(plain)
	require.Empty(t, w.conversation(conversation{key: plain.Key}).Labels)
	for _, q := range []struct {
		labels map[string]string
		found  int
	}{{nil, 2}, {map[string]string{"a": "1"}, 1}, {map[string]string{"a": "1", "b": "2"}, 1}, {map[string]string{"a": "2"}, 0},
		{map[string]string{"a": "1", "c": "3"}, 0}, {map[string]string{"1": "a"}, 0}} {
		require.Len(t, w.list(turns.ConversationQuery{Labels: q.labels}), q.found, q.labels)
	}
}
