package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func defaults() []promise {
	return []promise{
		{"each version of the defaults reads back for ever", eachVersionReadsBack},
		{"a version that is kept is never written again", aKeptVersionStays},
		{"a version that was never kept sets nothing", anUnknownVersionSetsNothing},
		{"a lookup tells the defaults' version, 1 for a conversation that a claim made", aLookupTellsTheVersion},
	}
}

func (w *world) defaults(c conversation, version int32) turns.Options {
	w.t.Helper()
	o, err := w.Store.ReadDefaults(w.ctx, c.key, version)
	require.NoError(w.t, err)
	return o
}

// changeDefaults stores defaults as a version, at the conversation's own version as it is now.
func (w *world) changeDefaults(c conversation, o turns.Options, version int32) bool {
	w.t.Helper()
	stored := w.conversation(c)
	expect := stored.Version
	stored.Defaults, stored.DefaultsVersion = o, version
	updated, err := w.Store.UpdateConversation(w.ctx, stored, expect)
	require.NoError(w.t, err)
	return updated
}

func eachVersionReadsBack(t *testing.T, w *world) {
	c := newConversation()
	w.create(w.made(c))
	second := turns.Options{System: "be brief", Tools: []turns.Tool{{Name: "f"}}}
	require.True(t, w.changeDefaults(c, second, 2))
	require.True(t, w.changeDefaults(c, turns.Options{}, 3))
	equal(t, w.made(c).Defaults, w.defaults(c, 1))
	equal(t, second, w.defaults(c, 2))
	equal(t, turns.Options{}, w.defaults(c, 3))
	require.EqualValues(t, 3, w.conversation(c).DefaultsVersion)
	require.Zero(t, w.count("SELECT COUNT(*) FROM conversation_defaults WHERE version = 3"), "nothing set is nothing kept")
}

func aKeptVersionStays(t *testing.T, w *world) {
	c := newConversation()
	w.create(w.made(c))
	require.True(t, w.changeDefaults(c, turns.Options{System: "another"}, 1))
	equal(t, w.made(c).Defaults, w.defaults(c, 1))
	w.unchanged(func() {
		updated, err := w.Store.UpdateConversation(w.ctx, turns.Conversation{Key: c.key, Defaults: turns.Options{System: "lost"}, DefaultsVersion: 2}, 1)
		require.NoError(t, err)
		require.False(t, updated)
		_, created, err := w.Store.CreateConversation(w.ctx, w.made(c))
		require.NoError(t, err)
		require.False(t, created)
	})
}

func anUnknownVersionSetsNothing(t *testing.T, w *world) {
	c, other := newConversation(), newConversation()
	w.create(w.made(c))
	equal(t, turns.Options{}, w.defaults(c, 2))
	equal(t, turns.Options{}, w.defaults(other, 1))
}

func aLookupTellsTheVersion(t *testing.T, w *world) {
	c := newConversation()
	w.create(w.made(c))
	require.EqualValues(t, 1, w.lookup(c, newTurnID()).DefaultsVersion)
	require.True(t, w.changeDefaults(c, turns.Options{System: "new"}, 2))
	st := w.lookup(c, newTurnID())
	require.EqualValues(t, 2, st.DefaultsVersion)
	require.Equal(t, "new", st.Defaults.System)
	made, _ := w.fresh()
	require.EqualValues(t, 1, w.lookup(made, newTurnID()).DefaultsVersion)
}
