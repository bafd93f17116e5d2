package casetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// grown adds turns 2 to %[1]d to the one conversation that is there, each with its reply, in a line below its first reply.
var grown = map[string]string{
	"sqlite": `WITH RECURSIVE k (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM k WHERE n < %[1]d),
		c AS (SELECT conversation_key, leaf_id, (SELECT owner FROM turns WHERE owner IS NOT NULL) AS owner FROM conversations)
	INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, input_hash, status, attempt, epoch, owner, content, log_len, create_time, end_time)
	SELECT conversation_key, CAST(printf('turn%%012d', n) AS BLOB), 'user', CASE WHEN n = 2 THEN leaf_id ELSE CAST(printf('reply%%011d', n - 1) AS BLOB) END,
		NULL, 2 * n - 1, x'01', NULL, 0, 0, NULL, '[{"kind":"text","text":"hi"}]', 0, n, NULL FROM k, c
	UNION ALL
	SELECT conversation_key, CAST(printf('reply%%011d', n) AS BLOB), 'assistant', CAST(printf('turn%%012d', n) AS BLOB),
		CAST(printf('turn%%012d', n) AS BLOB), 2 * n, NULL, 'complete', 1, 1, owner, '[{"b":0,"k":"text","s":true,"t":"yo","e":true}]', 4, n, n FROM k, c;
	UPDATE conversations SET leaf_id = CAST(printf('reply%%011d', %[1]d) AS BLOB)`,
	"postgres": `CREATE FUNCTION pg_temp.id(kind text, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
		$$SELECT encode(convert_to(kind || lpad(n::text, 16 - length(kind), '0'), 'UTF8'), 'hex')::uuid$$;
	INSERT INTO turns (conversation_key, id, role, parent_id, seq, input_hash, content, create_time)
	SELECT conversation_key, pg_temp.id('turn', n), 'user', CASE WHEN n = 2 THEN leaf_id ELSE pg_temp.id('reply', n - 1) END,
		2 * n - 1, '\x01', '[{"kind":"text","text":"hi"}]', now() FROM generate_series(2, %[1]d) n, conversations;
	INSERT INTO turns (conversation_key, id, role, parent_id, responds_to, seq, status, attempt, epoch, owner, content, log_len, create_time, end_time)
	SELECT conversation_key, pg_temp.id('reply', n), 'assistant', pg_temp.id('turn', n), pg_temp.id('turn', n), 2 * n, 'complete', 1, 1,
		conversation_key, '[{"b":0,"k":"text","s":true,"t":"yo","e":true}]', 4, now(), now() FROM generate_series(2, %[1]d) n, conversations;
	UPDATE conversations SET leaf_id = pg_temp.id('reply', %[1]d)`,
}

// tallied counts what pages of a list read.
type tallied struct {
	turns.Store
	mu    sync.Mutex
	reads int // of any kind
	rows  int
}

func (s *tallied) note(rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads, s.rows = s.reads+1, s.rows+rows
}

// page gives what was counted since it was asked last.
func (s *tallied) page() (reads, rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads, rows = s.reads, s.rows
	s.reads, s.rows = 0, 0
	return reads, rows
}

func (s *tallied) ReadPath(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit turns.PathLimit) ([]turns.PathRow, error) {
	path, err := s.Store.ReadPath(ctx, key, from, limit)
	s.note(len(path))
	return path, err
}

func (s *tallied) Entries(ctx context.Context, key turns.ConversationKey, ids []turns.TurnID) (map[turns.TurnID]turns.Entry, error) {
	entries, err := s.Store.Entries(ctx, key, ids)
	s.note(len(entries))
	return entries, err
}

func (s *tallied) ReadLogs(ctx context.Context, positions []turns.LogPosition) ([]turns.LogView, error) {
	views, err := s.Store.ReadLogs(ctx, positions)
	s.note(len(views))
	return views, err
}

func (s *tallied) ReadReply(ctx context.Context, key turns.ConversationKey, id turns.ReplyID) (turns.Reply, error) {
	s.note(1)
	return s.Store.ReadReply(ctx, key, id)
}

func TestAListOfTenThousandTurnsIsReadByPagesThatReadNoMoreThanTheyShow(t *testing.T) {
	const many, size = 10_000, 200
	onEachEngine(t, func(t *testing.T, w *world) {
		store := &tallied{Store: w.store()}
		s := w.serveOn(store)
		w.script(plain(2))
		in := ask(newID(), newID(), "hi")
		s.turn(in, nil).completes()
		conn, err := w.db.Conn(w.ctx)
		require.NoError(t, err)
		_, err = conn.ExecContext(w.ctx, fmt.Sprintf(grown[w.engine], many))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		w.stands(map[string]int{qUsers: many, qReplies: many})

		store.page()
		next := int64(2*many - 1)
		list := func(leaf, token string, page int) *turnsv1.ListTurnsResponse {
			list, err := s.turns.ListTurns(w.ctx, &turnsv1.ListTurnsRequest{ConversationId: in.GetConversationId(), LeafId: leaf, PageSize: size, PageToken: token})
			require.NoError(t, err)
			require.Len(t, list.GetEntries(), size)
			for _, e := range list.GetEntries() {
				require.Equal(t, next, e.GetTurn().GetSeq(), "none is left out and none comes twice")
				require.NotEmpty(t, stored(e.GetReply()))
				next -= 2
			}
			reads, rows := store.page()
			require.Equal(t, 3, reads, "page %d", page)
			require.LessOrEqual(t, rows, 2*size+2+2*size, "page %d", page)
			return list
		}
		token := ""
		for page := range 4 { // the newest
			token = list("", token, page).GetNextPageToken()
		}
		var leaf string // of the oldest pages, far down
		id := `SELECT lower(hex(id)) FROM turns WHERE seq = $1`
		if w.engine == "postgres" {
			id = `SELECT id::text FROM turns WHERE seq = $1`
		}
		require.NoError(t, w.db.QueryRowContext(w.ctx, id, 2*3*size).Scan(&leaf))
		leaf = uuid.MustParse(leaf).String()
		next, token = 2*3*size-1, ""
		pages := 0
		for ; pages == 0 || token != ""; pages++ {
			token = list(leaf, token, pages).GetNextPageToken()
		}
		require.Equal(t, 3, pages)
		require.Equal(t, int64(-1), next)
	})
}
