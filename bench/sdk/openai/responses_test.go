package openai_test

import (
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/bench/sdk"
	"github.com/turnd/turnd/llm/scripted"
)

func respond(items ...responses.ResponseInputItemUnionParam) responses.ResponseNewParams {
	asked := responses.ResponseInputItemParamOfMessage("one two three", responses.EasyInputMessageRoleUser)
	return responses.ResponseNewParams{
		Model: "demo", Input: responses.ResponseNewParamsInputUnion{OfInputItemList: append(responses.ResponseInputParam{asked}, items...)},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction(sdk.Called.Name, map[string]any{"type": "object"}, false)},
	}
}

// heard is what a stream of events said: text and arguments by their deltas, the numbers of the events, and the last response.
type heard struct {
	text, args string
	numbers    []int64
	last       responses.Response
	lastType   string
}

func hear(t *testing.T, stream *ssestream.Stream[responses.ResponseStreamEventUnion]) (h heard) {
	t.Helper()
	defer stream.Close()
	for stream.Next() {
		e := stream.Current()
		h.numbers = append(h.numbers, e.SequenceNumber)
		h.lastType = e.Type
		switch e.Type {
		case "response.output_text.delta":
			h.text += e.Delta
		case "response.function_call_arguments.delta":
			h.args += e.Delta
		case "response.completed", "response.incomplete", "response.failed":
			h.last = e.Response
		}
	}
	require.NoError(t, stream.Err())
	return h
}

// checkOutput goes through the output of a response to what Mixed asks.
func checkOutput(t *testing.T, r responses.Response) {
	t.Helper()
	require.Equal(t, responses.ResponseStatusCompleted, r.Status)
	require.Equal(t, sdk.Words, r.OutputText())
	last := r.Output[len(r.Output)-1].AsFunctionCall()
	require.Equal(t, []string{sdk.Called.ID, sdk.Called.Name, sdk.Input}, []string{last.CallID, last.Name, last.Arguments})
}

func TestAResponseReadsTheSameStreamedAndWholeAndCanGoBack(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{Blocks: sdk.Mixed})
	c := client(s)
	made, err := c.Responses.New(t.Context(), respond())
	require.NoError(t, err)
	checkOutput(t, *made)
	require.Equal(t, s.Calls()[0].ResponseID, made.ID)
	require.EqualValues(t, s.Calls()[0].InputTokens, made.Usage.InputTokens)
	require.EqualValues(t, s.Calls()[0].OutputTokens, made.Usage.OutputTokens)

	h := hear(t, c.Responses.NewStreaming(t.Context(), respond()))
	require.Equal(t, "response.completed", h.lastType)
	checkOutput(t, h.last)
	require.Equal(t, sdk.Words, h.text)
	require.Equal(t, sdk.Input, h.args)
	for i, n := range h.numbers {
		require.EqualValues(t, i, n, "events are numbered")
	}

	_, err = c.Responses.New(t.Context(), respond(
		responses.ResponseInputItemParamOfFunctionCall(sdk.Input, sdk.Called.ID, sdk.Called.Name), answer(sdk.Called.ID, "12")))
	require.NoError(t, err)
	_, err = c.Responses.New(t.Context(), respond(answer("of no call", "12")))
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 400, refused.StatusCode)
}

func answer(call, text string) responses.ResponseInputItemUnionParam {
	item := responses.ResponseInputItemParamOfFunctionCallOutput(text)
	item.OfFunctionCallOutput.CallID = openai.String(call)
	return item
}

func background() responses.ResponseNewParams {
	p := respond()
	p.Background, p.Store = openai.Bool(true), openai.Bool(true)
	return p
}

func TestABackgroundResponseIsReadAgainAfterAnyEvent(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{Blocks: sdk.Mixed})
	c := client(s)
	first := hear(t, c.Responses.NewStreaming(t.Context(), background()))
	checkOutput(t, first.last)
	for _, after := range []int{0, len(first.numbers) / 2, len(first.numbers) - 2} {
		params := responses.ResponseGetParams{StartingAfter: openai.Int(int64(after))}
		// The client asks for the stream in a body, where the vendor does not look for it.
		again := hear(t, c.Responses.GetStreaming(t.Context(), first.last.ID, params, option.WithQuery("stream", "true")))
		require.Equal(t, first.numbers[after+1:], again.numbers)
		checkOutput(t, again.last)
	}
	kept, err := c.Responses.Get(t.Context(), first.last.ID, responses.ResponseGetParams{})
	require.NoError(t, err)
	checkOutput(t, *kept)
	require.Equal(t, 1, s.Counts().Generations)
}

func TestABackgroundResponseIsCancelled(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{Blocks: []scripted.Block{{Text: sdk.Words}}, Steps: []scripted.Step{
		{At: scripted.AfterDelta(2), Do: scripted.DoWait, Gate: "middle"}}})
	c := client(s)
	made, err := c.Responses.New(t.Context(), background())
	require.NoError(t, err)
	require.Contains(t, []responses.ResponseStatus{responses.ResponseStatusQueued, responses.ResponseStatusInProgress}, made.Status)
	for range 2 {
		stopped, err := c.Responses.Cancel(t.Context(), made.ID)
		require.NoError(t, err)
		require.Equal(t, responses.ResponseStatusCancelled, stopped.Status)
	}
}

func TestAConversationHasWhatWasSaidInIt(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{Blocks: sdk.Mixed})
	c := client(s)
	place, err := c.Conversations.New(t.Context(), conversations.ConversationNewParams{})
	require.NoError(t, err)
	p := respond()
	p.Conversation = responses.ResponseNewParamsConversationUnion{OfString: openai.String(place.ID)}
	made, err := c.Responses.New(t.Context(), p)
	require.NoError(t, err)
	checkOutput(t, *made)
	items := c.Conversations.Items.ListAutoPaging(t.Context(), place.ID, conversations.ItemListParams{Order: conversations.ItemListParamsOrderAsc, Limit: openai.Int(2)})
	var kinds []string
	for items.Next() {
		kinds = append(kinds, items.Current().Type)
	}
	require.NoError(t, items.Err())
	require.Equal(t, "message", kinds[0])
	require.Equal(t, "function_call", kinds[len(kinds)-1])
}

func TestAResponseThatFailsSaysSo(t *testing.T) {
	c := client(sdk.Serve(t, sdk.At(scripted.DoErrorEvent)))
	h := hear(t, c.Responses.NewStreaming(t.Context(), respond()))
	require.Contains(t, []string{"error", "response.failed"}, h.lastType)
	c = client(sdk.Serve(t, sdk.Status(429, "insufficient_quota")))
	_, err := c.Responses.New(t.Context(), respond())
	var refused *openai.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "insufficient_quota", refused.Code)
}
