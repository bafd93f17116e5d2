package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"
	"google.golang.org/genai/interactions/models/apierrors"
	"google.golang.org/genai/interactions/models/interactions"
	"google.golang.org/genai/interactions/models/operations"
	"google.golang.org/genai/interactions/retry"
	"google.golang.org/genai/interactions/types/stream"

	"github.com/turnd/turnd/bench/sdk"
	"github.com/turnd/turnd/llm/scripted"
)

// once leaves the client no way to send a second request. What goes on in the background can't be cut short anyway, and the
// client takes the first of the two alone there.
var once = []operations.Option{operations.WithRetries(retry.Config{Strategy: "none"}), operations.WithAutomaticContinuation(false)}

func interact(streamed, background bool) operations.CreateInteractionRequest {
	return operations.CreateInteractionRequest{Body: operations.NewCreateInteractionRequestBody(interactions.CreateModelInteraction{
		Model: "demo", Input: genai.Ptr(interactions.NewInteractionsInput("one two three")),
		Stream: genai.Ptr(streamed), Background: genai.Ptr(background), Store: genai.Ptr(true),
	})}
}

// heard is what a stream of events said.
type heard struct {
	id, text string
	events   []string
	done     *interactions.InteractionSseEventInteraction
	failed   bool
}

func hear(t *testing.T, events *stream.EventStream[interactions.InteractionSSEStreamEvent]) (h heard) {
	t.Helper()
	defer events.Close()
	for events.Next() {
		e := events.Value().GetData()
		switch {
		case e.InteractionCreatedEvent != nil:
			h.id = e.InteractionCreatedEvent.Interaction.ID
			h.events = append(h.events, *e.InteractionCreatedEvent.EventID)
		case e.StepDelta != nil:
			h.events = append(h.events, *e.StepDelta.EventID)
			if text := e.StepDelta.GetDeltaText(); text != nil {
				h.text += text.Text
			}
		case e.InteractionCompletedEvent != nil:
			h.done = &e.InteractionCompletedEvent.Interaction
		case e.ErrorEvent != nil:
			h.failed = true
		}
	}
	return h
}

func TestAnInteractionReadsTheSameStreamedAndWhole(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{Blocks: sdk.Mixed})
	c := client(t, s)
	made, err := c.Interactions.Create(t.Context(), interact(false, false), once...)
	require.NoError(t, err)
	require.Equal(t, s.Calls()[0].ResponseID, *made.Interaction.ID)
	require.Equal(t, interactions.InteractionStatusRequiresAction, made.Interaction.Status)
	var text string
	var call *interactions.FunctionCallStep
	for _, step := range made.Interaction.Steps {
		if step.FunctionCallStep != nil {
			call = step.FunctionCallStep
		}
		if out := step.ModelOutputStep; out != nil {
			for _, part := range out.Content {
				text += part.TextContent.Text
			}
		}
	}
	require.Equal(t, sdk.Words, text)
	require.Equal(t, []string{sdk.Called.ID, sdk.Called.Name}, []string{call.ID, call.Name})
	require.Equal(t, "Zürich", call.Arguments["city"])
	require.Equal(t, s.Calls()[0].InputTokens, *made.Interaction.Usage.TotalInputTokens)

	streamed, err := c.Interactions.Create(t.Context(), interact(true, false), once...)
	require.NoError(t, err)
	h := hear(t, streamed.InteractionSSEStreamEvent)
	require.NoError(t, streamed.InteractionSSEStreamEvent.Err())
	require.Equal(t, s.Calls()[1].ResponseID, h.id)
	require.Equal(t, sdk.Words, h.text)
	require.NotNil(t, h.done)
	require.Equal(t, s.Calls()[1].InputTokens, *h.done.Usage.TotalInputTokens)
}

func TestAnInteractionInTheBackgroundIsReadAgainAfterAnyEvent(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{Blocks: []scripted.Block{{Text: sdk.Words}}})
	c := client(t, s)
	made, err := c.Interactions.Create(t.Context(), interact(true, true), once[0])
	require.NoError(t, err)
	first := hear(t, made.InteractionSSEStreamEvent)
	require.Equal(t, sdk.Words, first.text)
	for _, after := range []int{0, len(first.events) / 2, len(first.events) - 1} {
		again, err := c.Interactions.Get(t.Context(), operations.GetInteractionByIDRequest{
			ID: first.id, Stream: genai.Ptr(true), LastEventID: &first.events[after],
		})
		require.NoError(t, err)
		rest := hear(t, again.InteractionSSEStreamEvent)
		require.Equal(t, first.events[after+1:], append([]string{}, rest.events...))
		require.NotNil(t, rest.done)
	}
	kept, err := c.Interactions.Get(t.Context(), operations.GetInteractionByIDRequest{ID: first.id})
	require.NoError(t, err)
	require.Equal(t, interactions.InteractionStatusCompleted, kept.Interaction.Status)
	require.Equal(t, sdk.Words, *kept.Interaction.OutputText)
	require.Equal(t, 1, s.Counts().Generations)
}

func TestAnInteractionInTheBackgroundIsCancelled(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{Blocks: []scripted.Block{{Text: sdk.Words}}, Steps: []scripted.Step{
		{At: scripted.AfterDelta(2), Do: scripted.DoWait, Gate: "middle"}}})
	c := client(t, s)
	made, err := c.Interactions.Create(t.Context(), interact(false, true), once[0])
	require.NoError(t, err)
	require.Equal(t, interactions.InteractionStatusInProgress, made.Interaction.Status)
	stopped, err := c.Interactions.Cancel(t.Context(), operations.CancelInteractionByIDRequest{ID: *made.Interaction.ID})
	require.NoError(t, err)
	require.Equal(t, interactions.InteractionStatusCancelled, stopped.Interaction.Status)
}

func TestAnInteractionThatFailsSaysSo(t *testing.T) {
	c := client(t, sdk.Serve(t, sdk.At(scripted.DoErrorEvent)))
	made, err := c.Interactions.Create(t.Context(), interact(true, false), once...)
	require.NoError(t, err)
	h := hear(t, made.InteractionSSEStreamEvent)
	require.True(t, h.failed || made.InteractionSSEStreamEvent.Err() != nil)
	require.Nil(t, h.done)
	_, err = client(t, sdk.Serve(t, sdk.Status(429, ""))).Interactions.Create(t.Context(), interact(false, false), once...)
	var refused *apierrors.CreateInteractionClientError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 429, refused.HTTPMeta.Response.StatusCode)
}
