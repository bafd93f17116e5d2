package client_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/client"
	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func onFile(path string) func(*client.Options) {
	return func(o *client.Options) { o.Record = client.NewFileRecord(path) }
}

func isDelta(ev *turnsv1.Event) bool { return ev.GetDelta() != nil }

// leaveAtFirstDelta has a turn in flight that nobody listens to any more.
func leaveAtFirstDelta(t *testing.T, b *bed) {
	t.Helper()
	got := watch(t.Context(), b.send(t), func(ev *turnsv1.Event) bool { return !isDelta(ev) })
	require.NoError(t, got.err)
	require.Equal(t, "Hel", got.text)
}

func running() fake.Answer {
	return fake.Hang(fake.All(accepted(isNew), fake.Started(replyA, 1), hello[:2])...)
}

func TestARecordedTurnIsResumedByALaterProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		from client.From
		at   uint32
		text string
	}{
		"from the cursor": {client.FromCursor, 4, "lo wörld"},
		"from the start":  {client.FromStart, 0, "Hello wörld"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, onFile(filepath.Join(t.TempDir(), "state", "chat.json")), running(),
				fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), fake.From(hello, tc.at), fake.Completed(hello))...))
			leaveAtFirstDelta(t, b)
			s, err := b.restart(t).Resume(t.Context(), tc.from)
			require.NoError(t, err)
			got := watch(t.Context(), s, nil)
			require.NoError(t, got.err)
			require.Equal(t, tc.text, got.text)
			b.requireOneTurn(t, 2)
			again := b.server.Calls()[1].Turn
			require.Equal(t, tc.at, again.GetCursor().GetOffset())
			require.Equal(t, replyA, again.GetCursor().GetReplyId())
			require.Equal(t, turnsv1.DeliverySource_DELIVERY_SOURCE_CLIENT_RETRY, again.GetInput().GetSource())
			require.Nil(t, b.stored(t))
		})
	}
}

func TestATurnThatWasRecordedAndNeverSentIsSentByResume(t *testing.T) {
	b := setup(t, nil, whole())
	b.send(t)
	s, err := b.restart(t).Resume(t.Context(), client.FromCursor)
	require.NoError(t, err)
	require.Equal(t, "Hello wörld", watch(t.Context(), s, nil).text)
	b.requireOneTurn(t, 1)
}

func TestARecordOlderThanAnHourIsDropped(t *testing.T) {
	for _, age := range []time.Duration{61 * time.Minute, -61 * time.Minute} {
		b := setup(t, nil)
		b.send(t)
		b.now = b.now.Add(age)
		_, err := b.restart(t).Resume(t.Context(), client.FromCursor)
		require.ErrorIs(t, err, client.ErrNoRecord)
		require.Nil(t, b.stored(t))
	}
}

func TestThereIsNothingToResumeWithoutARecord(t *testing.T) {
	b := setup(t, onFile(filepath.Join(t.TempDir(), "none")))
	_, err := b.client.Resume(t.Context(), client.FromStart)
	require.ErrorIs(t, err, client.ErrNoRecord)
}

func TestACorruptRecordIsDropped(t *testing.T) {
	for name, content := range map[string]string{
		"empty":         "",
		"cut":           `{"version":1,"turn":{"turn_`,
		"no JSON":       "\x00\xff",
		"later version": `{"version":99,"turn":{"turn_id":"` + turnA + `"}}`,
		"no input":      `{"version":1,"turn":{"turn_id":"` + turnA + `"}}`,
		"broken input":  `{"version":1,"turn":{"turn_id":"` + turnA + `","input":"////"}}`,
		"wrong shape":   `{"version":1,"turn":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "chat.json")
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
			b := setup(t, onFile(path), whole())
			_, err := b.client.Resume(t.Context(), client.FromStart)
			require.ErrorIs(t, err, client.ErrNoRecord)
			require.NoFileExists(t, path)
			require.NoError(t, watch(t.Context(), b.send(t), nil).err, "and does not stand in the way")
		})
	}
}

func TestARecordLargerThanAnyTurnIsDropped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.json")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<40))
	_, err := client.NewFileRecord(path).Load(t.Context())
	require.ErrorIs(t, err, client.ErrRecordCorrupt)
}

func TestARecordThatCannotBeReadIsAnError(t *testing.T) {
	b := setup(t, onFile(t.TempDir()))
	_, err := b.client.Resume(t.Context(), client.FromStart)
	require.Error(t, err)
	require.NotErrorIs(t, err, client.ErrNoRecord)
	_, err = b.client.Send(t.Context(), say("hi"))
	require.ErrorContains(t, err, "before it is sent")
}

func TestTheFileIsPrivateLeavesNoScrapsAndForgetsTheInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.json")
	record := client.NewFileRecord(path)
	b := setup(t, onFile(path), whole())
	b.record = record
	s := b.send(t)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NoError(t, watch(t.Context(), s, nil).err)

	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, `{"version":1,"conversation_id":"`+conversation+`"}`, string(left))
	last, err := record.LastConversation()
	require.NoError(t, err)
	require.Equal(t, conversation, last)
}

func TestAConversationThatATurnOpensIsRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.json")
	b := setup(t, onFile(path), running())
	in := say("hi")
	in.ConversationId = ""
	s, err := b.client.Send(t.Context(), in)
	require.NoError(t, err)
	require.NoError(t, watch(t.Context(), s, func(ev *turnsv1.Event) bool { return ev.GetAccepted() == nil }).err)
	require.Equal(t, conversation, s.ConversationID())
	last, err := client.NewFileRecord(path).LastConversation()
	require.NoError(t, err)
	require.Equal(t, conversation, last)
}

// countingStore counts writes.
type countingStore struct {
	client.MemoryRecord
	saves int
}

func (c *countingStore) Save(ctx context.Context, r *client.Record) error {
	c.saves++
	return c.MemoryRecord.Save(ctx, r)
}

func TestTheCursorIsWrittenAtABoundedRate(t *testing.T) {
	store := &countingStore{}
	log := fake.Text(replyA, strings.Split(strings.Repeat("x", 1000), "")...)
	b := setup(t, func(o *client.Options) { o.Record = store },
		fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), log, fake.Completed(log))...))
	events := 0
	got := watch(t.Context(), b.send(t), func(*turnsv1.Event) bool {
		events++
		b.now = b.now.Add(10 * time.Millisecond) // ten seconds in all
		return true
	})
	require.NoError(t, got.err)
	require.Greater(t, events, 1000)
	require.LessOrEqual(t, store.saves, 13)
	require.GreaterOrEqual(t, store.saves, 10)
}
