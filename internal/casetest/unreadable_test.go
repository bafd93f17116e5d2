package casetest

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// nonsense is what must never have been stored, by the kind of row it is put into. The last one is JSON of no log.
var nonsense = []struct{ role, column, value string }{
	{"user", "content", "secret nonsense"},
	{"user", "options", "secret nonsense"},
	{"assistant", "content", "secret nonsense"},
	{"assistant", "options", "secret nonsense"},
	{"assistant", "content", `[{"b":9,"k":"text","t":"secret nonsense"}]`},
}

func TestARowThatDoesNotDecodeIsShownWithoutItsContentBesideTheOthers(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		logged := w.logs()
		s := w.serve()
		w.script(plain(4))
		conversation := newID()
		var turns, replies []string
		for range len(nonsense) + 1 {
			in := ask(conversation, newID(), "hi")
			turns, replies = append(turns, in.GetTurnId()), append(replies, s.turn(in, nil).completes().reply)
		}
		for i, n := range nonsense {
			done, err := w.db.ExecContext(w.ctx, fmt.Sprintf(`UPDATE turns SET %s = '%s' WHERE role = '%s' AND seq = %d`, n.column, n.value,
				n.role, 2*i+1+strings.Count(n.role, "assistant")))
			require.NoError(t, err)
			rows, err := done.RowsAffected()
			require.NoError(t, err)
			require.Equal(t, int64(1), rows)
		}
		list, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation})
		require.NoError(t, err)
		require.Len(t, list.GetEntries(), len(turns))
		for i, id := range turns {
			e := list.GetEntries()[len(turns)-1-i]
			require.Equal(t, id, e.GetTurn().GetTurnId())
			read := s.read(conversation, id)
			require.Len(t, read.GetReplies(), 1)
			for _, shown := range []struct {
				turn  *turnsv1.UserTurn
				reply *turnsv1.Reply
			}{{e.GetTurn(), e.GetReply()}, {read.GetTurn(), read.GetReplies()[0]}} {
				badTurn, badReply := i < len(nonsense) && nonsense[i].role == "user", i < len(nonsense) && nonsense[i].role == "assistant"
				require.Equal(t, badTurn, len(shown.turn.GetContent()) == 0, "turn %d", i)
				require.Equal(t, complete, shown.reply.GetStatus())
				require.Positive(t, shown.reply.GetLength())
				require.Equal(t, badReply, len(shown.reply.GetContent()) == 0, "reply %d", i)
				require.Equal(t, badReply, shown.reply.GetContentTruncated())
			}
		}
		all := logged.String()
		require.NotContains(t, all, "secret")
		for i, n := range nonsense {
			require.Contains(t, all, "row_id="+map[string]string{"user": turns[i], "assistant": replies[i]}[n.role])
		}
		require.NotContains(t, all, "row_id="+turns[len(turns)-1])
	})
}

// logbook keeps what workers log.
type logbook struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *logbook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(b)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// logs gives what the workers log from now on.
func (w *world) logs() *logbook {
	book := new(logbook)
	w.logger = slog.New(slog.NewTextHandler(book, nil))
	return book
}
