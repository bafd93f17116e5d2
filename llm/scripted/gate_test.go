package scripted_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

func gated(n int, gate string) scripted.Plan {
	return one(scripted.Step{At: scripted.AfterDelta(n), Do: scripted.DoWait, Gate: gate})
}

func TestAnArrivalIsAnnouncedWhenEverythingBeforeItWasWritten(t *testing.T) {
	eachVendor(t, func(t *testing.T, v vendor) {
		s := start(t, gated(4, "mid"))
		l := dial(t, s).post(v.path, v.body)
		require.NoError(t, s.WaitGate(limit(t), "mid", 1))
		call := s.Calls()[0]
		require.Equal(t, 4, call.DeltasGenerated)
		require.Equal(t, 4, call.DeltasSent)
		require.Equal(t, scripted.EndRunning, call.End)
		require.Equal(t, 1, s.Counts().Running)
		require.NoError(t, s.OpenGate("mid"))
		require.Len(t, said(t, parse(t, l).body), 80)
	})
}

func TestAnOpenGateLetsLaterOnesPassUntilTheReset(t *testing.T) {
	s := start(t, gated(4, "mid"))
	require.NoError(t, s.OpenGate("mid"))
	ask(t, s, messages, anthropicBody)
	ask(t, s, messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "mid", 2))

	s.Reset()
	dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "mid", 1))
	require.Equal(t, 1, s.Counts().Running)
}

func TestAGateHoldsAStatusToo(t *testing.T) {
	s := start(t, scripted.Plan{Steps: []scripted.Step{
		{At: scripted.AtRequestRead, Do: scripted.DoWait, Gate: "first"},
		{At: scripted.AtRequestRead, Do: scripted.DoStatus, Status: 503},
	}})
	l := dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "first", 1))
	require.Zero(t, s.Calls()[0].Status)
	require.NoError(t, s.OpenGate("first"))
	require.Equal(t, 503, parse(t, l).status)
}

func TestAGenerationIsFinishedAfterItsClientHasGone(t *testing.T) {
	s := start(t, gated(4, "mid"))
	l := dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "mid", 1))
	require.NoError(t, l.Close())
	require.NoError(t, s.OpenGate("mid"))
	call := only(t, s)
	require.Equal(t, scripted.EndClientGone, call.End)
	require.NotNil(t, call.ClientGoneAt)
	require.Less(t, call.DeltasSent, 10)
	generated(t, s)
}

func TestAGenerationStopsWithItsClientWhenThePlanSaysSo(t *testing.T) {
	plan := gated(4, "mid")
	plan.OnClientGone = scripted.ClientGoneStop
	s := start(t, plan)
	l := dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "mid", 1))
	require.NoError(t, l.Close())
	call := only(t, s)
	require.Equal(t, scripted.EndClientGone, call.End)
	require.Equal(t, 4, call.DeltasGenerated, "the gate was never opened")
	require.Equal(t, 4, s.Counts().OutputTokens)
	require.Zero(t, s.Counts().Running)
}

func TestAResetCutsWhatRunsAndForgetsIt(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(10), Steps: []scripted.Step{
		{At: scripted.AfterDelta(4), Do: scripted.DoWait, Gate: "mid"},
	}})
	require.NoError(t, s.SetScript(scripted.Script{Rules: []scripted.Rule{{Name: "other", Plan: gated(2, "mid")}}}))
	held := dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitGate(limit(t), "mid", 1))
	s.Reset()
	raw, err := held.all()
	require.Error(t, err)
	require.Equal(t, 2, strings.Count(raw, "text_delta"))
	require.Equal(t, scripted.Counts{ByKey: map[string]scripted.KeyCounts{}}, s.Counts())
	require.Empty(t, s.Calls())

	require.NoError(t, s.OpenGate("mid"))
	ask(t, s, messages, anthropicBody)
	require.Equal(t, "rule", only(t, s).Rule, "the first script is back")
}

func TestAResetFreesAWriteToAClientThatDoesNotRead(t *testing.T) {
	s := start(t, one(scripted.Step{At: scripted.AfterDelta(2), Do: scripted.DoEndless}))
	l := dial(t, s).post(messages, anthropicBody)
	_, err := io.CopyN(io.Discard, l, 1<<20)
	require.NoError(t, err)
	s.Reset()
	require.Empty(t, s.Calls())
}

func TestAWaitSurvivesAResetAndEndsWithItsContextOrTheServer(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(1)})
	done := make(chan error, 1)
	go func() { done <- s.WaitRequests(limit(t), 1) }()
	s.Reset()
	ask(t, s, messages, anthropicBody)
	require.NoError(t, <-done)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.WaitFinished(ctx, 2), context.Canceled)

	go func() { done <- s.WaitRequests(limit(t), 99) }()
	closing, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	require.NoError(t, s.Close(closing))
	require.Error(t, <-done)
}

func TestAPacedReplyIsCutInItsPause(t *testing.T) {
	s := start(t, scripted.Plan{Reply: deltas(10), PaceMS: 600_000})
	dial(t, s).post(messages, anthropicBody)
	require.NoError(t, s.WaitRequests(limit(t), 1))
	s.Reset()
	require.Zero(t, s.Counts().Running)
}
