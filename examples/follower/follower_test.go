package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/client"
	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const waitTime, pollTime = 10 * time.Second, 10 * time.Millisecond

const replyA, replyB = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"

var (
	turn  = Turn{"00000000-0000-4000-8000-0000000000c0", "00000000-0000-4000-8000-000000000001"}
	hello = fake.Text(replyA, "Hello ", "wörld")
)

// setup is a Follower of a stand-in for turnd, and where it delivers to.
func setup(t *testing.T, answers ...fake.Answer) (*Follower, *fake.Server, chan Finished) {
	t.Helper()
	server := fake.Start(t, answers...)
	conn, err := client.Dial(server.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	delivered := make(chan Finished, 1)
	return &Follower{
		client: client.New(conn, client.Options{}), records: Records(t.TempDir()), log: slog.New(slog.DiscardHandler),
		deliver:  func(_ context.Context, f Finished) error { delivered <- f; return nil },
		followed: map[Turn]bool{},
	}, server, delivered
}

func TestAFinishedReplyIsDeliveredWholeOverLostLinks(t *testing.T) {
	f, _, delivered := setup(t,
		fake.Play(fake.All(fake.Started(replyA, 1), hello[:2])...),
		fake.Play(fake.All(fake.Started(replyA, 1), hello, fake.Completed(hello))...))
	require.NoError(t, f.Add(t.Context(), turn))
	f.Wait()
	require.Equal(t, Finished{Turn: turn, ReplyID: replyA, End: "completed", Text: "Hello wörld"}, <-delivered)
	require.Empty(t, recordsOf(t, f))
}

func TestAFollowerGoesOnFromItsRecordAfterARestart(t *testing.T) {
	f, server, delivered := setup(t, fake.Play(fake.All(fake.Started(replyA, 1), fake.From(hello, 7), fake.Completed(hello))...))
	require.NoError(t, f.records.Save(Record{Turn: turn, ReplyID: replyA, Offset: 7, Text: "Hello "}))
	require.NoError(t, f.Resume(t.Context()))
	f.Wait()
	require.Equal(t, "Hello wörld", (<-delivered).Text)
	require.Equal(t, uint32(7), server.Calls()[0].Follow.GetOffset())
}

func TestWhatIsFollowedWhenTheProcessEndsIsOnRecord(t *testing.T) {
	f, server, delivered := setup(t, fake.Hang(fake.All(fake.Started(replyA, 1), hello[:2])...),
		func(c *fake.Call) error {
			return fake.Play(fake.All(fake.Started(replyA, 1), fake.From(hello, c.Follow.GetOffset()), fake.Completed(hello))...)(c)
		})
	ctx, end := context.WithCancel(t.Context())
	require.NoError(t, f.Add(ctx, turn))
	require.Eventually(t, func() bool { return len(server.Calls()) == 1 }, waitTime, pollTime)
	end()
	f.Wait()
	require.Len(t, recordsOf(t, f), 1)
	require.NoError(t, f.Resume(t.Context()))
	f.Wait()
	require.Equal(t, "Hello wörld", (<-delivered).Text)
}

func TestAnAttemptThatTakesOverTakesBackWhatTheOtherSaid(t *testing.T) {
	log := fake.Text(replyB, "Anew")
	f, _, delivered := setup(t, fake.Play(fake.All(fake.Started(replyA, 1), hello, fake.Restarted(replyA, replyB),
		fake.Started(replyB, 2), log, fake.Abandoned(log, turnsv1.AbandonReason_ABANDON_REASON_CANCELLED, 0, 0))...))
	require.NoError(t, f.Add(t.Context(), turn))
	f.Wait()
	require.Equal(t, Finished{Turn: turn, ReplyID: replyB, End: "abandoned", Reason: "CANCELLED", Text: "Anew"}, <-delivered)
}

func TestOnlyATurnThatDoesNotExistIsForgotten(t *testing.T) {
	for code, kept := range map[codes.Code]int{codes.NotFound: 0, codes.Unauthenticated: 1} {
		f, _, _ := setup(t, fake.Fail(fake.Refusal(code, strings.ToUpper(code.String()), "DO_NOT_RETRY", 0)))
		require.NoError(t, f.Add(t.Context(), turn))
		f.Wait()
		require.Len(t, recordsOf(t, f), kept, code)
	}
}

func TestTheWebhookTakesATurnOnceItIsOnRecord(t *testing.T) {
	f, server, _ := setup(t, fake.Hang(fake.Started(replyA, 1)))
	ctx, end := context.WithCancel(t.Context())
	hook := f.webhook(ctx)
	call := func(body string) int {
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/follow", strings.NewReader(body)))
		return w.Code
	}
	named := `{"conversationId":"` + turn.ConversationID + `","turnId":"` + turn.TurnID + `"}`
	require.Equal(t, http.StatusAccepted, call(named))
	require.Len(t, recordsOf(t, f), 1)
	require.Equal(t, http.StatusAccepted, call(named), "told twice")
	for _, bad := range []string{"", "{}", `{"conversationId":"../x","turnId":"../y"}`, strings.Repeat(" ", maxBody) + named} {
		require.Equal(t, http.StatusBadRequest, call(bad))
	}
	require.Eventually(t, func() bool { return len(server.Calls()) == 1 }, waitTime, pollTime)
	end()
	f.Wait()
	require.Len(t, server.Calls(), 1, "followed once")
}

func TestTurnsAreReadFromLinesAndDeliveredToAURL(t *testing.T) {
	f, _, _ := setup(t, fake.Play(fake.All(fake.Started(replyA, 1), hello, fake.Completed(hello))...))
	keys := make(chan string, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { keys <- r.Header.Get("Idempotency-Key") }))
	defer receiver.Close()
	f.deliver = postTo(receiver.URL, receiver.Client())
	require.NoError(t, f.readTurns(t.Context(), strings.NewReader(turn.ConversationID+" "+turn.TurnID+"\n\n")))
	f.Wait()
	require.Equal(t, replyA, <-keys)
	require.Error(t, f.readTurns(t.Context(), strings.NewReader("neither nor\n")))
}

func recordsOf(t *testing.T, f *Follower) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(string(f.records))
	require.NoError(t, err)
	return entries
}
