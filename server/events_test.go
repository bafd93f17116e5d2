package server_test

import (
	"bufio"
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server/servertest"
	"github.com/turnd/turnd/turns"
)

// sent is one event as an EventSource sees it.
type sent struct {
	kind, id string
	event    *turnsv1.Event
}

var (
	replyEvents = "/v1/conversations/" + conversationID.String() + "/replies/" + replyID.String() + "/events"
	turnEvents  = "/v1/conversations/" + conversationID.String() + "/turns/" + turnID.String() + "/events"
)

// source opens an event stream.
func source(t testing.TB, h *servertest.Harness, path string, header ...string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.Addr+path, nil)
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
	})
	return resp
}

// next reads one event, skipping what is none; io.EOF at the stream's end.
func next(r *bufio.Reader) (s sent, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return s, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "event":
			s.kind = value
		case "id":
			s.id = value
		case "data":
			s.event = &turnsv1.Event{}
			if err := protojson.Unmarshal([]byte(value), s.event); err != nil {
				return s, err
			}
		case "":
			if s.event != nil {
				return s, nil
			}
		}
	}
}

// all reads a stream to its end.
func all(t testing.TB, body io.Reader) (out []sent) {
	t.Helper()
	r := bufio.NewReader(body)
	for {
		s, err := next(r)
		if err == io.EOF {
			return out
		}
		require.NoError(t, err)
		out = append(out, s)
	}
}

// story is a short reply: a block with two pieces, and its end.
func story() []turns.Event {
	ended := replyOf(turns.StatusComplete)
	ended.StopReason, ended.Length = turns.StopEndTurn, 7
	return []turns.Event{
		turns.Started{Reply: replyOf(turns.StatusInFlight)},
		turns.Grew{Offset: 0, Next: 3, Piece: turns.Piece{Kind: turns.KindText, Starts: true, Text: "Hi"}},
		turns.Heartbeat{},
		turns.Grew{Offset: 3, Next: 7, Piece: turns.Piece{Kind: turns.KindText, Text: "\n<b", Ends: true}},
		turns.Ended{Reply: ended},
	}
}

func TestAnEventStreamHasTheKindTheCursorAndTheEvent(t *testing.T) {
	h := start(t, newFake(story()...))
	for _, path := range []string{replyEvents, turnEvents} {
		resp := source(t, h, path)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, "text/event-stream; charset=utf-8", resp.Header.Get("Content-Type"))
		require.Contains(t, resp.Header.Get("Cache-Control"), "no-store")
		require.Equal(t, "no", resp.Header.Get("X-Accel-Buffering"))
		r := bufio.NewReader(resp.Body)
		hint, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "retry: 1000\n", hint)
		got := all(t, r)
		var kinds, ids []string
		for _, s := range got {
			kinds, ids = append(kinds, s.kind), append(ids, strings.TrimPrefix(s.id, replyID.String()))
			require.Equal(t, s.kind, kindOf(s.event))
		}
		require.Equal(t, []string{"started", "block_started", "delta", "heartbeat", "delta", "block_completed", "completed"}, kinds)
		require.Equal(t, []string{":0", ":1", ":3", ":3", ":6", ":7", ":7:end"}, ids)
		require.Equal(t, "\n<b", got[4].event.GetDelta().GetText())
	}
}

func TestAnEventStreamGoesOnFromTheLastEventID(t *testing.T) {
	f := newFake()
	var asked []uint32
	f.onFollow = func(_ context.Context, _ turns.ReplyID, from uint32) iter.Seq2[turns.Event, error] {
		asked = append(asked, from)
		return say(nil, whole())
	}
	h := start(t, f)
	for _, c := range [][]string{
		{"", "Last-Event-ID", replyID.String() + ":5"},
		{"?cursor=" + replyID.String() + ":5"},
		{"?cursor=" + replyID.String() + ":2", "Last-Event-ID", replyID.String() + ":5"},
		{"?cursor=" + replyID.String() + ":5", "Last-Event-ID", ""},
	} {
		resp := source(t, h, replyEvents+c[0], c[1:]...)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		all(t, resp.Body)
	}
	require.Equal(t, []uint32{5, 5, 5, 5}, asked)
}

func TestAnEventSourceThatHasHadTheEndIsToldToStop(t *testing.T) {
	h := start(t, newFake(story()...))
	got := all(t, source(t, h, replyEvents).Body)
	resp := source(t, h, replyEvents, "Last-Event-ID", got[len(got)-1].id)
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	resp = source(t, h, replyEvents, "Last-Event-ID", got[len(got)-2].id)
	require.Equal(t, http.StatusOK, resp.StatusCode, "without the terminal event the log alone is not all")
}

func TestABadCursorOfAnEventStreamIsTyped(t *testing.T) {
	h := start(t, newFake(story()...))
	for _, id := range []string{"x", replyID.String(), replyID.String() + ":", replyID.String() + ":-1", replyID.String() + ":4294967296",
		replyID.String() + ":01", replyID.String() + ":1:END", replyID.String() + ":1:end:", uuid.Nil.String() + ":1", "{" + replyID.String() + "}:1"} {
		resp := source(t, h, replyEvents, "Last-Event-ID", id)
		require.Equal(t, http.StatusBadRequest, resp.StatusCode, id)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "INVALID_CURSOR", info(t, restError(t, string(body)), codes.InvalidArgument).GetReason())
	}
	resp := source(t, h, replyEvents, "Last-Event-ID", replyID.String()+":1", "Last-Event-ID", replyID.String()+":2")
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
}

func TestACursorOfAnotherReplyIsRefusedOrRestarted(t *testing.T) {
	other, next := turns.ReplyID{UUID: otherID}, turns.ReplyID{UUID: uuid.MustParse("0b0b0b0b-0000-4000-8000-000000000005")}
	rows := map[turns.RowID]turns.Reply{replyID.Row(): replyOf(turns.StatusInFlight)}
	f := newFake()
	f.onTarget = func(_ turns.Caller, _ turns.ConversationID, row turns.RowID) (turns.ConversationKey, turns.Reply, error) {
		if r, ok := rows[row]; ok {
			return turns.ConversationKey{}, r, nil
		}
		return turns.ConversationKey{}, turns.Reply{}, turns.NotFound("reply", "reply_id")
	}
	type following struct {
		reply turns.ReplyID
		from  uint32
	}
	var followed []following
	f.onFollow = func(_ context.Context, reply turns.ReplyID, from uint32) iter.Seq2[turns.Event, error] {
		followed = append(followed, following{reply, from})
		return say(nil, whole())
	}
	h := start(t, f)
	ask := func() (int, []sent) {
		resp := source(t, h, replyEvents, "Last-Event-ID", other.String()+":4")
		if resp.StatusCode != http.StatusOK {
			return resp.StatusCode, nil
		}
		return resp.StatusCode, all(t, resp.Body)
	}
	row := replyOf(turns.StatusAbandoned)
	row.ID, row.Turn, row.Reason = other, turns.TurnID{UUID: otherID}, turns.ReasonSuperseded

	rows[other.Row()] = row // of another turn
	code, _ := ask()
	require.Equal(t, http.StatusBadRequest, code)

	row.Turn = turnID // an earlier one of the same
	rows[other.Row()] = row
	_, got := ask()
	require.Equal(t, "restarted", got[0].kind)
	require.Equal(t, other.String(), got[0].event.GetRestarted().GetPreviousReplyId())
	require.Equal(t, following{replyID, 0}, followed[len(followed)-1])

	delete(rows, other.Row()) // one that nobody knows
	_, got = ask()
	require.Equal(t, "restarted", got[0].kind)

	first, second := replyOf(turns.StatusAbandoned), replyOf(turns.StatusAbandoned) // one that the stream had moved to
	first.ReplacedBy, second.ID, second.ReplacedBy = next, next, other
	rows[replyID.Row()], rows[next.Row()], rows[other.Row()] = first, second, row
	_, got = ask()
	require.Equal(t, "completed", got[0].kind)
	require.Equal(t, following{other, 4}, followed[len(followed)-1])
}

func TestAFailureBeforeTheFirstEventIsAStatusAndOneLaterJustTheEnd(t *testing.T) {
	lost := &turns.Error{Code: turns.CodeStoreUnavailable, Problem: "the database is away"}
	f := newFake()
	f.onFollow = func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] { return say(lost) }
	h := start(t, f)
	resp := source(t, h, replyEvents)
	require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	require.Equal(t, "1", resp.Header.Get("Retry-After"))
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "STORE_UNAVAILABLE", info(t, restError(t, string(body)), codes.Unavailable).GetReason())

	f.onFollow = func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
		return say(lost, story()[:2]...)
	}
	resp = source(t, h, replyEvents)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(text), "\n\n: lost: STORE_UNAVAILABLE\n\n"), "%s", text)
}

func TestAnEventStreamIsReadByGETAlone(t *testing.T) {
	h := start(t, newFake(story()...))
	for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodDelete} {
		resp, _ := exchange(t, h, method, replyEvents, "")
		require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode, method)
	}
}

func TestATurnInLineIsToldItsPlaceAndHasNoCursorYet(t *testing.T) {
	f := newFake()
	f.onTarget = func(turns.Caller, turns.ConversationID, turns.RowID) (turns.ConversationKey, turns.Reply, error) {
		return turns.ConversationKey{}, turns.Reply{Conversation: conversationID, Turn: turnID}, nil
	}
	f.onWait = func(context.Context, turns.TurnID) iter.Seq2[turns.Event, error] {
		return say(nil, append([]turns.Event{turns.Queued{Position: 2}}, story()...)...)
	}
	h := start(t, f)
	got := all(t, source(t, h, turnEvents).Body)
	require.Equal(t, "queued", got[0].kind)
	require.Empty(t, got[0].id)
	require.Equal(t, int32(2), got[0].event.GetQueued().GetPosition())
	require.Equal(t, replyID.String()+":0", got[1].id)
}
