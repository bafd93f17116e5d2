package casetest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// over is the worker with clients of another connection.
func (w *worker) over(conn grpc.ClientConnInterface) *worker {
	out := *w
	out.turns, out.convs = turnsv1.NewTurnServiceClient(conn), turnsv1.NewConversationServiceClient(conn)
	return &out
}

// dialects are the ways of the web that have Turn.
func (w *worker) dialects() map[string]*worker {
	return map[string]*worker{"Connect": w.over(w.onWeb()), "gRPC-Web": w.over(w.onWeb(connect.WithGRPCWeb()))}
}

// source opens the event stream of a reply.
func (w *worker) source(ctx context.Context, conversation, reply, last string) *eventSource {
	w.t.Helper()
	c := w.onREST()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/conversations/"+conversation+"/replies/"+reply+"/events", nil)
	require.NoError(w.t, err)
	e, err := c.open(req, last)
	require.NoError(w.t, err)
	return e
}

func TestC01AndC02ATurnSentAgainOverTheWebIsTheSameTurn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(gate("", "mid", 64, 20), plain(8))
		first := ask("", newID(), "A")
		var streams []*stream
		for _, on := range s.dialects() {
			streams = append(streams, on.turn(first, nil), on.turn(first, nil))
		}
		for _, one := range streams {
			one.at(1 + 19*16)
		}
		rest, err := turnsv1.NewTurnServiceClient(s.onREST()).SubmitTurn(w.ctx, &turnsv1.SubmitTurnRequest{Input: first})
		require.NoError(t, err)
		require.NoError(t, w.provider.OpenGate("mid"))
		text := streams[0].completes().text
		for _, one := range streams {
			require.Equal(t, text, one.completes().text)
			require.Equal(t, rest.GetReply().GetReplyId(), one.state.reply)
		}
		second := ask(streams[0].turn.GetConversationId(), newID(), "B")
		for _, on := range s.dialects() {
			on.turn(second, nil).completes()
			late := on.turn(first, nil).completes()
			require.Equal(t, replayed, late.result)
			require.Equal(t, text, late.text, "never a word of B")
		}
		w.paid(2, 2)
		w.stands(map[string]int{qUsers: 2, qConvs: 1, qLive: 2})
	})
}

func TestC30AndC32AndC34AnEventSourceThatIsCutAnywhereGetsEachByteOnceAndEachKind(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.script(scripted.Rule{Name: "kinds", Plan: scripted.Plan{Blocks: []scripted.Block{
			{Thinking: "let me think", Signature: "sig"}, {Text: "it is <b>é🦀</b>"}, {ToolUse: &scripted.ToolUse{ID: "t1", Name: "f", Input: `{"a":1}`}}}}})
		s := w.serve()
		in := ask(newID(), newID(), "hi")
		reply := s.turn(in, nil).completes().reply
		whole := heardFrom(t, s.source(w.ctx, in.GetConversationId(), reply, ""))
		require.Equal(t, "it is <b>é🦀</b>", whole.texts["BLOCK_KIND_TEXT"])
		require.Equal(t, `{"a":1}`, whole.texts["BLOCK_KIND_TOOL_USE"])
		for cut := range whole.ids {
			if cut == len(whole.ids)-1 {
				break
			}
			rest := heardFrom(t, s.source(w.ctx, in.GetConversationId(), reply, whole.ids[cut]))
			require.Equal(t, append([]string{"started"}, after(whole.kinds[cut+1:], "started")...), rest.kinds, "after event %d", cut)
		}
		over := s.source(w.ctx, in.GetConversationId(), reply, whole.ids[len(whole.ids)-1])
		require.Equal(t, http.StatusNoContent, over.status)
		w.paid(1, 1)
	})
}

// after is kinds without one.
func after(kinds []string, but string) []string {
	return slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == but })
}

// told is all that an event source was told.
type told struct {
	kinds, ids []string
	texts      map[string]string // by the kind of block
}

func heardFrom(t *testing.T, e *eventSource) (all told) {
	t.Helper()
	all.texts = map[string]string{}
	for {
		event, err := e.next()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		m := event.ProtoReflect()
		all.kinds = append(all.kinds, string(m.WhichOneof(m.Descriptor().Oneofs().ByName("kind")).Name()))
		all.ids = append(all.ids, e.last)
		all.texts[event.GetDelta().GetKind().String()] += event.GetDelta().GetText()
	}
}

func TestC39ASlowReaderOfTheWebGetsEverythingInBiggerEvents(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		const deltas = 40_000
		w.script(scripted.Rule{Name: "much", Plan: scripted.Plan{Reply: &scripted.Reply{Deltas: deltas, Seed: 1}}})
		in := ask(newID(), newID(), "hi")
		sent, err := s.submit(in)
		require.NoError(t, err)
		slow := s.source(w.ctx, in.GetConversationId(), sent.GetReply().GetReplyId(), "")
		w.eventually(func() bool { return w.number(qLive) == 1 && w.number(qInFlight) == 0 }) // nobody reads, and it completes
		got := heardFrom(t, slow)
		require.Len(t, got.texts["BLOCK_KIND_TEXT"], deltas*16)
		require.Less(t, len(got.kinds), deltas/4)
	})
}

func TestC41LeavingAStreamOfTheWebStopsNothingAndACancelDoes(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(stoppable("mid", 5000, 50))
		in := ask(newID(), newID(), "hi")
		stays := s.dialects()["gRPC-Web"].turn(in, nil)
		reply := stays.at(1 + 49*16).reply
		leaving := s.dialects()["Connect"].turn(in, nil)
		leaving.at(1)
		leaving.cancel()
		leaving.end()
		ctx, leave := context.WithCancel(w.ctx)
		gone := s.source(ctx, in.GetConversationId(), reply, "")
		_, err := gone.next()
		require.NoError(t, err)
		leave()
		watching := s.source(w.ctx, in.GetConversationId(), reply, fmt.Sprintf("%s:%d", reply, 17))
		w.stands(map[string]int{qInFlight: 1})
		_, err = turnsv1.NewTurnServiceClient(s.onREST()).CancelReply(w.ctx, &turnsv1.CancelReplyRequest{ConversationId: in.GetConversationId(),
			Target: &turnsv1.CancelReplyRequest_ReplyId{ReplyId: reply}})
		require.NoError(t, err)
		stays.abandons(cancelled)
		last := heardFrom(t, watching)
		require.Equal(t, "abandoned", last.kinds[len(last.kinds)-1])
		require.NoError(t, w.provider.WaitFinished(w.ctx, 1))
		w.paid(1, 1)
	})
}

func TestACursorOfAnEventStreamNamesOneReplyOfItsTurn(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(plain(8))
		first := ask(newID(), newID(), "one")
		old := s.turn(first, nil).completes().reply
		second := ask(first.GetConversationId(), newID(), "two")
		other := s.turn(second, nil).completes().reply
		made, err := s.regenerate(first.GetConversationId(), other, 0)
		require.NoError(t, err)
		s.follow(first.GetConversationId(), made.GetReply().GetReplyId(), 0).completes()
		open := func(last string) (*eventSource, error) {
			c := s.onREST()
			req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, c.base+"/v1/conversations/"+first.GetConversationId()+"/turns/"+second.GetTurnId()+"/events", nil)
			require.NoError(t, err)
			return c.open(req, last)
		}
		_, err = open(old + ":1")
		w.fails(err, codes.InvalidArgument, "INVALID_CURSOR", "DO_NOT_RETRY")
		_, err = open(made.GetReply().GetReplyId() + ":9999")
		w.fails(err, codes.InvalidArgument, "INVALID_CURSOR", "DO_NOT_RETRY")
		for _, replaced := range []string{other + ":5", newID() + ":5"} {
			e, err := open(replaced)
			require.NoError(t, err)
			got := heardFrom(t, e)
			require.Equal(t, []string{"restarted", "started"}, got.kinds[:2])
			require.Len(t, got.texts["BLOCK_KIND_TEXT"], 8*16)
		}
		w.paid(3, 3)
	})
}

func TestAnotherTenantsIdsAnswerAsMissingOnesOverTheWeb(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		h := &heard{statements: map[string][]string{}}
		w.trace = h.trace
		s := w.serve()
		have := s.household()
		tokens := s.tokens(have["complete"].Conversation)
		asked := map[string]int{}
		for way, conn := range map[string]grpc.ClientConnInterface{"Connect": s.onWeb(), "REST": s.onREST()} {
			ask := &stranger{worker: s, heard: h, have: have, name: way, conn: conn}
			for _, method := range w.methods("") {
				if way == "REST" && len(bindings(method.Path())) == 0 {
					continue
				}
				for _, state := range slices.Sorted(maps.Keys(have)) {
					theirs := have[state]
					theirs.Tokens = tokens
					for question := range method.Requests(theirs) {
						asked[way]++
						t.Run(strings.Join([]string{way, method.String(), fmt.Sprint(question), state}, "/"), func(t *testing.T) {
							at := *w
							at.t = t
							on := *s
							on.world = &at
							ask.worker = &on
							ask.compares(method, question, theirs, "")
						})
					}
				}
			}
		}
		require.Greater(t, asked["REST"], 200)
		require.Greater(t, asked["Connect"], asked["REST"])
	})
}

func TestConversationsAreFoundByLabelsOverREST(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		for _, team := range []string{"red", "blue"} {
			_, err := s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{
				Conversation: &turnsv1.Conversation{Title: team, Labels: map[string]string{"team": team}}})
			require.NoError(t, err)
		}
		req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, s.onREST().base+"/v1/conversations:search", strings.NewReader(`{"labels":{"team":"blue"}}`))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		var found turnsv1.ListConversationsResponse
		require.NoError(t, protojson.Unmarshal(body, &found))
		require.Len(t, found.GetConversations(), 1)
		require.Equal(t, "blue", found.GetConversations()[0].GetTitle())
	})
}
