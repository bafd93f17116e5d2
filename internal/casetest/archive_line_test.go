package casetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns/archive"
)

// onwards copies a world to the other engine and to its own again, and demands the same bytes of each copy.
func (w *world) onwards(conversations int) *world {
	w.t.Helper()
	other, same := postgresWorld, sqliteWorld
	if w.engine == "postgres" {
		other, same = same, other
	}
	file := w.archived()
	require.Equal(w.t, file, w.archived(), "two copies are the same")
	to, back := other(w.t), same(w.t)
	require.Equal(w.t, conversations, to.imports(file).Written)
	require.Equal(w.t, file, to.archived())
	require.Equal(w.t, archive.Imported{Already: conversations}, to.imports(file))
	require.Equal(w.t, conversations, back.imports(to.archived()).Written)
	require.Equal(w.t, file, back.archived())
	return to
}

// qEarly counts rows that have a lower number than their parents.
const qEarly = `SELECT count(*) FROM turns t JOIN turns p ON p.conversation_key = t.conversation_key AND p.id = t.parent_id WHERE p.seq > t.seq`

func TestAConversationWhoseTurnsStoodInLineMovesAndGoesOn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("first", "mid", 8, 2), plain(8))
		first, running := s.busyAt()
		conversation := first.GetConversationId()
		a := s.turn(enqueuing(conversation, "second"), nil)
		a.waits(0)
		b := s.turn(enqueuing(conversation, "third"), nil)
		b.waits(1)
		require.NoError(t, w.provider.OpenGate("mid"))
		running.completes()
		a.completes()
		b.completes()
		require.Positive(t, w.number(qEarly), "a parent was made after its child arrived")

		to := w.onwards(1)
		to.script(plain(3))
		there := to.serve()
		there.turn(ask(conversation, newID(), "fourth"), nil).completes()
		require.Equal(t, []string{"first", "second", "third", "fourth"}, there.history(conversation))
	})
}

func TestAConversationInWhichATurnWentAheadOfALineMovesAndGoesOn(t *testing.T) {
	for name, ahead := range map[string]turnsv1.OnBusy{"interrupt": turnsv1.OnBusy_ON_BUSY_INTERRUPT, "supersede": turnsv1.OnBusy_ON_BUSY_SUPERSEDE} {
		t.Run(name, func(t *testing.T) {
			onEachEngine(t, func(t *testing.T, w *world) {
				s := w.serve()
				held := gate("first", "mid", 8, 2)
				held.Times = 1 // the interrupted turn's words are in the next prompt too
				w.script(held, plain(8))
				first, _ := s.busyAt()
				conversation := first.GetConversationId()
				waiting := s.turn(enqueuing(conversation, "waited"), nil)
				waiting.waits(0)
				now := ask(conversation, newID(), "now")
				now.OnBusy = ahead
				s.turn(now, nil).completes()
				waiting.completes()
				require.Positive(t, w.number(qEarly))
				was := s.history(conversation)

				to := w.onwards(1)
				to.script(plain(3))
				there := to.serve()
				there.turn(ask(conversation, newID(), "on"), nil).completes()
				require.Equal(t, append(was, "on"), there.history(conversation))
			})
		})
	}
}
