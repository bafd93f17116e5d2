package scripted_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

func enforced(rules ...scripted.Rule) scripted.Script {
	return scripted.Script{Endpoint: scripted.Endpoint{Idempotency: scripted.IdempotencyEnforce}, Rules: rules}
}

func TestARepeatedKeyReplaysTheStoredGeneration(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		s := scripted.Start(t, enforced(scripted.Rule{Plan: scripted.Plan{Reply: deltas(5)}}))
		first := ask(t, s, v.path, v.body, "Idempotency-Key: k1")
		second := ask(t, s, v.path, v.body, "Idempotency-Key: k1")
		require.Equal(t, first.body, second.body, "ids and all")
		require.NotEqual(t, first.header.Get(v.idHeader), second.header.Get(v.idHeader), "they are two exchanges")

		require.NoError(t, s.WaitFinished(limit(t), 2))
		calls, counts := s.Calls(), s.Counts()
		require.Equal(t, 1, calls[1].ReplayOf)
		require.Equal(t, 5, calls[1].DeltasSent)
		require.Zero(t, calls[1].OutputTokens)
		require.Equal(t, calls[0].ResponseID, calls[1].ResponseID)
		require.Equal(t, 1, counts.Generations)
		require.Equal(t, 5, counts.OutputTokens)
		require.Equal(t, wordsSent, counts.InputTokens)
		require.Equal(t, scripted.KeyCounts{Requests: 2, Generations: 1}, counts.ByKey["k1"])
	})
}

func TestAnotherBodyUnderAKeyIsAConflict(t *testing.T) {
	for path, kind := range map[string]string{messages: "conflict_error", completions: "invalid_request_error"} {
		s := scripted.Start(t, enforced(scripted.Rule{Plan: scripted.Plan{Reply: deltas(5)}}))
		body := map[string]string{messages: anthropicBody, completions: openaiBody}[path]
		ask(t, s, path, body, "Idempotency-Key: k1")
		got := ask(t, s, path, strings.Replace(body, "hello", "goodbye", 1), "Idempotency-Key: k1")
		require.Equal(t, 409, got.status)
		require.Equal(t, kind, at(t, got.body, "error", "type"))
		require.NoError(t, s.WaitFinished(limit(t), 2))
		require.Equal(t, scripted.EndStatus, s.Calls()[1].End)
		require.Equal(t, 1, s.Counts().Generations)
	}
}

func TestAKeyMeansNothingWhereItIsNotEnforcedOrNotSent(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(5)})
	ask(t, s, messages, anthropicBody, "Idempotency-Key: k1")
	ask(t, s, messages, anthropicBody, "Idempotency-Key: k1")
	require.Equal(t, 2, s.Counts().Generations)

	s = scripted.Start(t, enforced())
	ask(t, s, messages, anthropicBody)
	ask(t, s, messages, anthropicBody)
	ask(t, s, messages, anthropicBody, "Idempotency-Key: k1", "X-Api-Key: one")
	ask(t, s, messages, anthropicBody, "Idempotency-Key: k1", "X-Api-Key: two")
	require.Equal(t, 4, s.Counts().Generations, "a key belongs to its credential")
}

func TestAKeyIsForgottenAfterItsRetention(t *testing.T) {
	var now atomic.Int64
	script := enforced(scripted.Rule{Plan: scripted.Plan{Reply: deltas(5)}})
	script.Endpoint.RetentionS = 60
	s := serve(t, script, scripted.Options{Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	for _, second := range []int64{0, 59, 60, 119} {
		now.Store(second)
		ask(t, s, messages, anthropicBody, "Idempotency-Key: k1")
	}
	require.NoError(t, s.WaitFinished(limit(t), 4))
	require.Equal(t, 2, s.Counts().Generations)
	require.Equal(t, 3, s.Calls()[3].ReplayOf)
}

func TestConcurrentRequestsWithOneKeyReadOneGeneration(t *testing.T) {
	s := scripted.Start(t, enforced(scripted.Rule{Plan: gated(3, "mid")}))
	const readers = 8
	bodies := make([]string, readers)
	var asking sync.WaitGroup
	for i := range readers {
		l := dial(t, s).post(messages, anthropicBody, "Idempotency-Key: k1")
		asking.Go(func() { bodies[i] = parse(t, l).body })
	}
	require.NoError(t, s.WaitRequests(limit(t), readers))
	for n := range readers {
		require.NoError(t, s.WaitDeltas(limit(t), n+1, 3))
	}
	require.Equal(t, 1, s.Counts().Running)
	require.NoError(t, s.OpenGate("mid"))
	asking.Wait()
	for _, body := range bodies {
		require.Equal(t, bodies[0], body)
	}
	require.NoError(t, s.WaitFinished(limit(t), readers))
	require.Equal(t, 1, s.Counts().Generations)
	require.Equal(t, 10, s.Counts().OutputTokens)
}

func TestAReplayIsWholeAlthoughItsFirstCallWasCut(t *testing.T) {
	cut := one(scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoReset})
	late := scripted.Plan{Steps: []scripted.Step{
		{At: scripted.AfterDelta(6), Do: scripted.DoWait, Gate: "own"},
		{At: scripted.AfterDelta(7), Do: scripted.DoClose},
	}}
	s := scripted.Start(t, enforced(
		scripted.Rule{Name: "cut", Match: scripted.Match{Nth: 1}, Plan: cut},
		scripted.Rule{Name: "late", Match: scripted.Match{Nth: 3}, Plan: late},
	))
	_, err := dial(t, s).post(messages, anthropicBody, "Idempotency-Key: k1").all()
	require.Error(t, err)
	got := ask(t, s, messages, anthropicBody, "Idempotency-Key: k1")
	require.Len(t, said(t, got.body), 80)
	require.NoError(t, s.OpenGate("own"))
	got = ask(t, s, messages, anthropicBody, "Idempotency-Key: k1")
	require.Len(t, said(t, got.body), 7*8, "the third request's own plan closes it")
	require.NoError(t, s.WaitFinished(limit(t), 3))
	require.Equal(t, 1, s.Counts().Generations)
}

func TestAFailedGenerationIsNotReplayed(t *testing.T) {
	fails := one(scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoErrorEvent})
	s := scripted.Start(t, enforced(
		scripted.Rule{Times: 1, Plan: fails},
		scripted.Rule{Plan: scripted.Plan{Reply: deltas(5)}},
	))
	require.NotContains(t, ask(t, s, messages, anthropicBody, "Idempotency-Key: k1").body, "message_stop")
	require.Contains(t, ask(t, s, messages, anthropicBody, "Idempotency-Key: k1").body, "message_stop")
	require.NoError(t, s.WaitFinished(limit(t), 2))
	require.Equal(t, 2, s.Counts().Generations)
	require.Equal(t, 8, s.Counts().OutputTokens)
}

func TestAReaderThatLeavesItsOwnGateOrStreamDoesNotTroubleTheGeneration(t *testing.T) {
	own := scripted.Plan{Steps: []scripted.Step{{At: scripted.AfterDelta(2), Do: scripted.DoWait, Gate: "own"}}}
	first := gated(5, "mid")
	first.OnClientGone = scripted.ClientGoneStop
	s := scripted.Start(t, enforced(
		scripted.Rule{Match: scripted.Match{Nth: 1}, Plan: first},
		scripted.Rule{Plan: own},
	))
	owner := dial(t, s).post(messages, anthropicBody, "Idempotency-Key: k1")
	require.NoError(t, s.WaitGate(limit(t), "mid", 1))
	reader := dial(t, s).post(messages, anthropicBody, "Idempotency-Key: k1")
	require.NoError(t, s.WaitGate(limit(t), "own", 1))
	require.NoError(t, reader.Close())
	require.NoError(t, s.WaitFinished(limit(t), 1))
	require.Equal(t, scripted.EndClientGone, s.Calls()[1].End)
	require.Equal(t, 2, s.Calls()[1].DeltasSent)

	require.NoError(t, s.OpenGate("mid"))
	require.Len(t, said(t, parse(t, owner).body), 80, "somebody still listens, so it was not stopped")
	require.NoError(t, s.WaitFinished(limit(t), 2))
	require.Equal(t, 10, s.Counts().OutputTokens)
}

func TestAStoppedGenerationIsMadeAnew(t *testing.T) {
	first := gated(5, "mid")
	first.OnClientGone = scripted.ClientGoneStop
	s := scripted.Start(t, enforced(
		scripted.Rule{Times: 1, Plan: first},
		scripted.Rule{Plan: scripted.Plan{Reply: deltas(3)}},
	))
	owner := dial(t, s).post(messages, anthropicBody, "Idempotency-Key: k1")
	require.NoError(t, s.WaitGate(limit(t), "mid", 1))
	require.NoError(t, owner.Close())
	require.NoError(t, s.WaitFinished(limit(t), 1))
	require.Len(t, said(t, ask(t, s, messages, anthropicBody, "Idempotency-Key: k1").body), 24)
	require.Equal(t, 2, s.Counts().Generations)
	require.Equal(t, 5+3, s.Counts().OutputTokens)
}
