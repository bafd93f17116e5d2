package llmtest

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// Recovery is an endpoint that can be asked about a call whose answer was lost.
type Recovery struct {
	Capabilities turns.Capabilities
	// NoUsage says that an answer that was looked up without its id has no usage.
	NoUsage bool
}

// recoveredDeltas is how long the replies are that are lost.
const recoveredDeltas = 8

var recovered = scripted.Reply{Deltas: recoveredDeltas, Seed: 7}

// asked is an adapter under test whose calls are lost, and the provider that knows better.
type asked struct {
	subject
	Recovery
	provider *scripted.Server
	origin   turns.Origin
}

// RunRecovery checks an adapter against the promises of turns.Recoverer, as far as the endpoint is said to be able.
func RunRecovery(t *testing.T, a llm.Adapter, r Recovery) {
	if r.Capabilities.Resume {
		t.Run("resume", func(t *testing.T) { runResume(t, a, r) })
	}
	if r.Capabilities.Lookup {
		t.Run("lookup", func(t *testing.T) { runLookup(t, a, r) })
	}
	if r.Capabilities.Cancel {
		t.Run("stop", func(t *testing.T) { runStop(t, a, r) })
	}
	t.Run("origin", func(t *testing.T) { runOrigin(t, a, r) })
	t.Run("an endpoint that is not set up for it is not asked", func(t *testing.T) {
		s := ask(t, a, Recovery{}, scripted.Script{})
		lost := turns.LostCall{Request: s.request(t), ResponseID: "resp_1", Session: "conv_1", Origin: s.origin}
		require.Equal(t, turns.ClassTerminal, s.recover(t, lost).Err.Class)
		require.Zero(t, s.provider.Counts().Asked)
	})
}

func ask(t *testing.T, a llm.Adapter, r Recovery, script scripted.Script) asked {
	t.Helper()
	provider := scripted.Start(t, script)
	s := open(t, a, provider.URL(), turns.Limits{})
	s.route.Capabilities = r.Capabilities
	return asked{s, r, provider, turns.Origin{
		Conversation: turns.ConversationKey(uuid.New()), Turn: turns.TurnID{UUID: uuid.New()}, Generation: 2,
	}}
}

// replies is a script of one reply that something happens to.
func replies(steps ...scripted.Step) scripted.Script {
	return planned(scripted.Plan{Reply: &recovered, Steps: steps})
}

func cutAt(at scripted.Point) scripted.Step { return scripted.Step{At: at, Do: scripted.DoReset} }

// request is one whose response can be told from others.
func (s asked) request(t testing.TB) turns.Request {
	t.Helper()
	req, err := s.caller.Build(s.route, turns.Prompt{
		Origin:   s.origin,
		Options:  turns.Options{System: systemWords},
		Messages: []turns.Message{{Role: turns.RoleUser, Content: []turns.Block{turns.Text{Text: promptWords}}}},
	})
	require.NoError(t, err)
	return req
}

// generate makes a call and returns what came, and the call as it is asked about if it was lost.
func (s asked) generate(t testing.TB) (Result, turns.LostCall) {
	t.Helper()
	call := s.prepare(t)
	return s.send(t, call)
}

// prepare makes a call ready to be sent.
func (s asked) prepare(t testing.TB) turns.Call {
	t.Helper()
	call := turns.Call{Request: s.request(t), Key: callKey}
	if p, ok := s.caller.(llm.Preparer); ok {
		session, err := p.Prepare(t.Context(), call)
		require.NoError(t, err)
		call.Session = session
	}
	return call
}

func (s asked) send(t testing.TB, call turns.Call) (Result, turns.LostCall) {
	t.Helper()
	r := Collect(t, s.caller.Generate(t.Context(), call))
	lost := turns.LostCall{
		ID: call.ID, Request: call.Request, Key: call.Key, Origin: s.origin, Session: call.Session, ResponseID: r.ResponseID,
	}
	if r.Err != nil {
		RequireNoSecrets(t, r.Err)
		lost.Continuation = r.Err.Continuation
	}
	return r, lost
}

// recover asks for the answer of a call from its beginning.
func (s asked) recover(t testing.TB, lost turns.LostCall) Result {
	t.Helper()
	lost.Continuation = nil
	return s.goOn(t, Result{}, lost)
}

// goOn asks for what follows of an answer, and returns it behind what came before.
func (s asked) goOn(t testing.TB, before Result, lost turns.LostCall) Result {
	t.Helper()
	r := Collect(t, behind(before.Deltas, s.caller.(llm.Recoverer).Recover(t.Context(), lost)))
	if r.Err != nil {
		RequireNoSecrets(t, r.Err)
	}
	return r
}

// behind is what came, and then what comes of another connection.
func behind(before []turns.Delta, more iter.Seq2[turns.Delta, error]) iter.Seq2[turns.Delta, error] {
	return func(yield func(turns.Delta, error) bool) {
		for _, d := range before {
			if !yield(d, nil) {
				return
			}
		}
		for d, err := range more {
			if _, again := d.(turns.Responded); again && len(before) > 0 {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// over waits until the provider is done with its calls.
func (s asked) over(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, s.provider.WaitFinished(ctx, 1))
}

// reachedGate waits until the reply stands at a gate.
func (s asked) reachedGate(t testing.TB, gate string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(t, s.provider.WaitGate(ctx, gate, 1))
}

// requireRecovered checks that an answer is whole and was made and paid for once.
func (s asked) requireRecovered(t testing.TB, r Result) {
	t.Helper()
	require.Nil(t, r.Err, "%v", r.Err)
	require.Equal(t, recovered.Text(), r.Text)
	require.Len(t, r.Blocks, 1)
	require.Equal(t, turns.StopEndTurn, r.Finished.StopReason)
	counts := s.provider.Counts()
	require.Equal(t, 1, counts.Requests)
	require.Equal(t, 1, counts.Generations)
	if s.NoUsage && r.ResponseID == "" {
		require.Nil(t, r.Usage)
		return
	}
	require.NotNil(t, r.Usage)
	require.Equal(t, int64(counts.InputTokens), r.Usage.Input)
	require.Equal(t, int64(counts.OutputTokens), r.Usage.Output)
	require.Equal(t, recoveredDeltas, counts.OutputTokens)
}

// requireOutcome checks that asking told how the call itself had failed.
func requireOutcome(t testing.TB, r Result) *turns.CallError {
	t.Helper()
	require.NotNil(t, r.Err, "the call was whole")
	var told *turns.OutcomeError
	require.True(t, errors.As(r.Err, &told), "%v: %v", r.Err, r.Err.Cause)
	require.NotEmpty(t, told.Call.Class)
	return told.Call
}

// requireUnknown checks that the provider knows of no answer.
func requireUnknown(t testing.TB, r Result) {
	t.Helper()
	require.NotNil(t, r.Err, "an answer from nowhere")
	require.ErrorIs(t, r.Err, turns.ErrNotThere)
	require.Empty(t, r.Text)
}
