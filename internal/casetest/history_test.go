package casetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// The provider refuses a call without its result and a result without its call, so that a turn completes says that neither was
// sent.
func TestC63NoWindowSeparatesACallFromItsResult(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		heard := w.overhear()
		s := w.serve()
		conversation := newID()
		loop := func(s *worker) {
			w.script(callsTools(), plain(2))
			s.turn(kindly(offering(model, conversation)), nil).completes()
			s.turn(kindly(offering(model, conversation, resultOf("t2", ""), resultOf("t1", "twelve"))), nil).completes()
		}
		for range 4 {
			loop(s)
		}
		heard.next()
		last, answered, refused := 0, 0, 0
		for _, limit := range []int{15, 30, 60, 90, 130, 200, 400} {
			w.limits.WindowTokens = limit
			s := w.serve()
			if _, err := s.submit(kindly(offering(model, conversation))); err != nil {
				w.fails(err, codes.InvalidArgument, "PROMPT_TOO_LARGE", "DO_NOT_RETRY")
				require.Empty(t, heard.next(), "nothing was sent")
				refused++
				continue
			}
			w.eventually(func() bool { return w.number(qInFlight) == 0 })
			loop(s)
			body := heard.next()
			require.Contains(t, body, "be kind")
			require.GreaterOrEqual(t, strings.Count(body, "twelve"), last, "a larger window holds no fewer results")
			last = strings.Count(body, "twelve")
			answered++
		}
		require.Positive(t, refused)
		require.Positive(t, answered)
		require.Greater(t, last, 4, "the largest holds results of loops before the last")
		require.Zero(t, w.number(`SELECT count(*) FROM provider_calls WHERE class = 'terminal'`), "the provider refused nothing")
	})
}

// kindly gives a turn a system text.
func kindly(in *turnsv1.TurnInput) *turnsv1.TurnInput {
	in.Options.System = "be kind"
	return in
}

func TestC64AFailedReplyLeavesNoTwoMessagesOfOneRoleInARow(t *testing.T) {
	onEachWire(t, func(t *testing.T, w *world, model string) {
		heard := w.overhear()
		s := w.serve()
		w.script(failing(1, scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoReset}), plain(2))
		in := askOf(model)
		s.turn(in, nil).abandons(ambiguous)
		part := stored(s.read(in.GetConversationId(), in.GetTurnId()).GetReplies()[0])
		require.NotEmpty(t, part)
		heard.next()
		s.on(model, in.GetConversationId(), textBlock("and now?"))
		body := heard.next()
		require.NotContains(t, body, part, "what a failed reply said is no part of the history")
		require.NotContains(t, body, `"assistant"`)
		require.Contains(t, body, "and now?")
		require.Equal(t, 1, strings.Count(body, `"role":"user"`), body)
		s.on(model, in.GetConversationId(), textBlock("once more"))
		require.Equal(t, 2, strings.Count(heard.next(), `"role":"user"`))
	})
}

func TestATurnThatNoWindowHoldsIsRefusedBeforeAnyCall(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.limits.WindowTokens = 50
		s := w.serve()
		in := askOf("anthropic")
		s.turn(in, nil).completes()
		long := ask(in.GetConversationId(), newID(), strings.Repeat("long ", 100))
		_, err := s.submit(long)
		meta := w.fails(err, codes.InvalidArgument, "PROMPT_TOO_LARGE", "DO_NOT_RETRY")
		require.Equal(t, "50", meta["limit"])
		w.paid(1, 1)
		w.stands(map[string]int{qUsers: 1, qInFlight: 0, qLedger: 1})
		s.on("anthropic", in.GetConversationId(), textBlock("short"))
	})
}

func TestAConversationWithToolsMovesBetweenAllModels(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		for range 2 {
			for i, model := range fiveWires {
				w.script(callsTools(), plain(2))
				s.turn(offering(model, conversation), nil).completes()
				next := fiveWires[(i+1)%len(fiveWires)] // another model goes on with its calls
				s.turn(offering(next, conversation, resultOf("t1", "twelve"), resultOf("t2", "")), nil).completes()
			}
		}
		w.paid(20, 20)
	})
}

// poison is what must never have been stored, each in the turn of its place.
var poison = []struct{ role, content string }{
	{"assistant", `[{"b":0,"k":"text","s":true,"e":true}]`},
	{"user", `[{"kind":"text","text":""}]`},
	{"user", `{"cut off`},
	{"assistant", `[{"b":0,"k":"tool_use","s":true,"i":"t1","n":"now","t":"{\"cut","e":true}]`},
	{"assistant", `no JSON at all`},
	{"user", `[{"kind":"tool_result","id":"nobody"}]`},
	{"user", `[{"kind":"of tomorrow"}]`},
	{"assistant", `[{"b":9,"k":"text","t":"of no block"}]`},
}

func TestC65PoisonedRowsHealOnTheWayOutAndStayAsTheyAre(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		conversation := newID()
		for range poison {
			s.on("anthropic", conversation, textBlock("hi"))
		}
		for i, p := range poison {
			set := fmt.Sprintf(`UPDATE turns SET content = '%s' WHERE role = '%s' AND seq = (SELECT seq FROM turns WHERE role = '%s' ORDER BY seq LIMIT 1 OFFSET %d)`,
				p.content, p.role, p.role, i)
			done, err := w.db.ExecContext(w.ctx, set)
			require.NoError(t, err)
			n, err := done.RowsAffected()
			require.NoError(t, err)
			require.Equal(t, int64(1), n)
		}
		for _, model := range fiveWires {
			s.on(model, conversation, textBlock("and now?"))
			w.script(callsTools(), plain(2))
			s.turn(offering(model, conversation), nil).completes()
			s.turn(offering(model, conversation, resultOf("t1", "twelve"), resultOf("t2", "")), nil).completes()
		}
		require.Positive(t, w.counted("turnd.history.healed", "kind", "unreadable_row"))
		require.Positive(t, w.counted("turnd.history.healed", "kind", "blank_text"))
		for _, p := range poison {
			require.Equal(t, 1, w.number(fmt.Sprintf(`SELECT count(*) FROM turns WHERE content = '%s'`, p.content)), "what is stored stays")
		}
	})
}

func TestARequestThatIsBuiltAgainIsCountedByWhetherItIsTheSame(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(plain(2))
		in := askOf("anthropic")
		s.turn(in, nil).completes()
		next := ask(in.GetConversationId(), newID(), "and now?")
		lost := func() {
			w.script(failing(1, scripted.Step{At: scripted.AfterDelta(4), Do: scripted.DoReset}), plain(2))
			s.turn(next, nil).abandons(ambiguous)
		}
		lost()
		require.Zero(t, w.counted("turnd.requests.rebuilt", "result", "same"), "the first is built for the first time")
		lost()
		require.Equal(t, int64(1), w.counted("turnd.requests.rebuilt", "result", "same"))
		_, err := w.db.ExecContext(w.ctx, `UPDATE turns SET content = '[{"kind":"text","text":"other words"}]' WHERE seq = (SELECT min(seq) FROM turns)`)
		require.NoError(t, err)
		s.turn(next, nil).completes()
		require.Equal(t, int64(1), w.counted("turnd.requests.rebuilt", "result", "changed"))
		require.Equal(t, int64(1), w.counted("turnd.requests.rebuilt", "result", "same"))
	})
}
