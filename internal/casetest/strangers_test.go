package casetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/turnd/turnd/internal/tenanttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// secret stands in every text, title and label of the tenant that strangers ask about.
const secret = "xyzzy"

// questionHeader marks a call, so that the statements it leads to are known as its own.
const questionHeader = "x-question"

// heard are the statements that each marked call led to, in their order.
type heard struct {
	mu         sync.Mutex
	statements map[string][]string
}

// notOfCalls are a ping, which is of a connection, and what begins and ends a transaction that calls share.
var notOfCalls = []string{"-- ping", "BEGIN IMMEDIATE", "SAVEPOINT shared", "RELEASE shared", "ROLLBACK TO shared", "COMMIT"}

// trace is a store's Trace. A request's metadata goes with its context wherever that goes.
func (h *heard) trace(ctx context.Context, statement string) {
	md, _ := metadata.FromIncomingContext(ctx)
	mark := md.Get(questionHeader)
	if len(mark) != 1 || slices.Contains(notOfCalls, statement) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statements[mark[0]] = append(h.statements[mark[0]], statement)
}

func (h *heard) of(mark string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.statements[mark])
}

// methods are those of the wire whose names begin with one of these.
func (w *world) methods(of ...string) (some []tenanttest.Method) {
	w.t.Helper()
	all, err := tenanttest.Methods()
	require.NoError(w.t, err)
	for _, m := range all {
		if slices.ContainsFunc(of, func(prefix string) bool { return strings.HasPrefix(m.String(), prefix) }) {
			some = append(some, m)
		}
	}
	require.NotEmpty(w.t, some)
	return some
}

// plainly asks the first question of a method and gives its status.
func (w *worker) plainly(m tenanttest.Method, ids tenanttest.IDs) error {
	w.t.Helper()
	a, err := tenanttest.Ask(w.ctx, w.harness.Conn, m, m.Requests(ids)[0], ids)
	require.NoError(w.t, err)
	return a.Status.Err()
}

// household is what a tenant has, in every state, by the name of the state.
func (s *worker) household() map[string]tenanttest.IDs {
	s.t.Helper()
	have := map[string]tenanttest.IDs{}
	note := func(state string, in *turnsv1.TurnInput, reply string) {
		have[state] = tenanttest.IDs{Conversation: in.GetConversationId(), Turn: in.GetTurnId(), Reply: reply}
	}
	for _, state := range []string{"held before", "held"} {
		in, r := s.hold()
		note(state, in, r.GetReplyId())
	}
	s.script(gate("runs", "runs", 64, 20), gate("stops", "stops", 64, 20), plain(1))
	first := ask(newID(), newID(), secret)
	note("complete", first, s.turn(first, nil).completes().reply)
	again := ask(first.GetConversationId(), newID(), secret+" again")
	old := s.turn(again, nil).completes().reply
	made, err := s.regenerate(first.GetConversationId(), old, 0)
	require.NoError(s.t, err)
	s.follow(first.GetConversationId(), made.GetReply().GetReplyId(), 0).completes()
	note("superseded", again, old)

	stopped := ask(newID(), newID(), secret+" stops")
	stopping := s.turn(stopped, nil)
	reply := stopping.at(1).reply
	_, err = s.turns.CancelReply(s.ctx, &turnsv1.CancelReplyRequest{ConversationId: stopped.GetConversationId(),
		Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: reply}})
	require.NoError(s.t, err)
	stopping.abandons(turnsv1.AbandonReason_ABANDON_REASON_CANCELLED)
	note("cancelled", stopped, reply)

	gone := ask(newID(), newID(), secret)
	note("deleted conversation", gone, s.turn(gone, nil).completes().reply)
	s.deleteConversation(gone.GetConversationId())
	erased := ask(newID(), newID(), secret)
	note("deleted turn", erased, s.turn(erased, nil).completes().reply)
	s.deleteTurn(erased.GetConversationId(), erased.GetTurnId())

	running := ask(newID(), newID(), secret+" runs")
	note("in flight", running, s.turn(running, nil).at(20).reply)
	// All of it up to the gate, block's start included, is stored before anybody compares what is.
	s.eventually(func() bool { return s.number(`SELECT count(*) FROM reply_chunks WHERE end_offset = 1 + 20 * 16`) == 1 })
	waiting := enqueuing(running.GetConversationId(), secret+" waits")
	_, err = s.submit(waiting)
	require.NoError(s.t, err)
	note("in line", waiting, newID())
	return have
}

// tokens are page tokens of the tenant, by the method that gave them.
func (s *worker) tokens(conversation string) map[string]string {
	s.t.Helper()
	listed, err := s.turns.ListTurns(s.ctx, &turnsv1.ListTurnsRequest{ConversationId: conversation, PageSize: 1})
	require.NoError(s.t, err)
	conversations, err := s.convs.ListConversations(s.ctx, &turnsv1.ListConversationsRequest{PageSize: 1})
	require.NoError(s.t, err)
	replies, err := s.operator().ListHeldReplies(s.ctx, &turnsv1.ListHeldRepliesRequest{PageSize: 1})
	require.NoError(s.t, err)
	calls, err := s.operator().ListProviderCalls(s.ctx, &turnsv1.ListProviderCallsRequest{PageSize: 1})
	require.NoError(s.t, err)
	return map[string]string{
		"TurnService.ListTurns": listed.GetNextPageToken(), "ConversationService.ListConversations": conversations.GetNextPageToken(),
		"OperatorService.ListHeldReplies": replies.GetNextPageToken(), "OperatorService.ListProviderCalls": calls.GetNextPageToken(),
	}
}

// stranger asks as somebody new each time, so that no answer depends on what was asked before.
type stranger struct {
	*worker
	heard *heard
	asked int
	have  map[string]tenanttest.IDs // what others have
	name  string                    // what each is called, before a number
	conn  grpc.ClientConnInterface  // how it asks
}

// asks puts a question, and gives the answer and the statements that it led to. own is a conversation that the stranger is to
// have before, or empty.
func (s *stranger) asks(m tenanttest.Method, question int, ids tenanttest.IDs, own string) (tenanttest.Answer, []string) {
	s.t.Helper()
	s.asked++
	name := fmt.Sprintf("%s %d", s.name, s.asked)
	if own != "" {
		rpc, err := s.turns.Turn(s.as(name), &turnsv1.TurnRequest{Input: ask(own, newID(), "mine")})
		for err == nil {
			_, err = rpc.Recv()
		}
		require.ErrorContains(s.t, err, "EOF")
	}
	ctx := metadata.AppendToOutgoingContext(s.as(name), questionHeader, name)
	a, err := tenanttest.Ask(ctx, s.conn, m, m.Requests(ids)[question], ids)
	require.NoError(s.t, err)
	return a, s.heard.of(name)
}

// compares asks about ids and about ones that nobody has, and demands the same answer by the same way.
func (s *stranger) compares(m tenanttest.Method, question int, theirs tenanttest.IDs, own string) {
	s.t.Helper()
	missing, err := theirs.Missing()
	require.NoError(s.t, err)
	if own != "" {
		theirs, missing = theirs.In(own), missing.In(own)
	}
	none, noneBy := s.asks(m, question, missing, own)
	foreign, foreignBy := s.asks(m, question, theirs, own)
	require.Equal(s.t, none.Text(missing), foreign.Text(missing), "the answer")
	if m.IsStreamingServer() && foreign.Status.Code() == codes.OK {
		// The stranger got a turn of his own. How it is followed depends on how far its reply has come.
		common := min(len(noneBy), len(foreignBy))
		noneBy, foreignBy = noneBy[:common], foreignBy[:common]
	}
	require.Equal(s.t, noneBy, foreignBy, "the statements")
	require.NotEmpty(s.t, foreignBy, "nothing was looked up, so nothing was tried: %v", foreign.Status)
	require.NotContains(s.t, foreign.Text(theirs), secret)
	require.Empty(s.t, foreign.Others(slices.Collect(maps.Values(s.have))), "what was not asked about is named")
	require.NotEqual(s.t, codes.Internal, foreign.Status.Code())
}

func TestAnotherTenantsIdsAnswerAsMissingOnesOnEveryMethod(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		h := &heard{statements: map[string][]string{}}
		w.trace = h.trace
		s := w.serve()
		have := s.household()
		tokens := s.tokens(have["complete"].Conversation)
		before, err := tenanttest.Rows(w.ctx, w.db, "default")
		require.NoError(t, err)
		require.Greater(t, len(before), 20)
		ask := &stranger{worker: s, heard: h, have: have, name: "stranger", conn: s.harness.Conn}
		for _, method := range w.methods("") {
			for _, state := range slices.Sorted(maps.Keys(have)) {
				theirs := have[state]
				theirs.Tokens = tokens
				for question := range method.Requests(theirs) {
					t.Run(fmt.Sprintf("%s/%d/%s", method, question, state), func(t *testing.T) {
						at := *w
						at.t = t
						on := *s
						on.world = &at
						ask.worker = &on
						ask.compares(method, question, theirs, "")
						if strings.HasPrefix(method.String(), "TurnService.") {
							ask.compares(method, question, theirs, newID())
						}
					})
				}
			}
		}
		w.eventually(func() bool { return w.number(qInFlight) == 1 })
		after, err := tenanttest.Rows(w.ctx, w.db, "default")
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

func TestWorkersAreTheSameToAllOperators(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		mine, err := s.operator().ListWorkers(w.ctx, &turnsv1.ListWorkersRequest{})
		require.NoError(t, err)
		theirs, err := s.operator().ListWorkers(w.as("stranger"), &turnsv1.ListWorkersRequest{})
		require.NoError(t, err)
		require.Len(t, theirs.GetWorkers(), 1)
		require.Equal(t, mine.GetWorkers()[0].GetWorkerId(), theirs.GetWorkers()[0].GetWorkerId())
	})
}
