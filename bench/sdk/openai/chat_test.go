// Package openai_test asks the scripted provider by OpenAI's own client, on both of its wires.
package openai_test

import (
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/bench/sdk"
	"github.com/turnd/turnd/llm/scripted"
)

func client(s *scripted.Server) openai.Client {
	return openai.NewClient(option.WithBaseURL(s.URL()+"/v1"), option.WithAPIKey("sk-x"), option.WithMaxRetries(0))
}

func params(messages ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	asked := openai.UserMessage("one two three")
	return openai.ChatCompletionNewParams{
		Model: "demo", Messages: append([]openai.ChatCompletionMessageParamUnion{asked}, messages...),
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: sdk.Called.Name})},
	}
}

// streamed reads a completion as it comes.
func streamed(t *testing.T, s *scripted.Server, p openai.ChatCompletionNewParams) (openai.ChatCompletion, error) {
	t.Helper()
	c := client(s)
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	defer stream.Close()
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		require.True(t, acc.AddChunk(stream.Current()), "a chunk does not follow from those before")
	}
	return acc.ChatCompletion, stream.Err()
}

func whole(t *testing.T, s *scripted.Server, p openai.ChatCompletionNewParams) (openai.ChatCompletion, error) {
	t.Helper()
	c := client(s)
	completion, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		return openai.ChatCompletion{}, err
	}
	return *completion, nil
}

// ways are the two ways to be answered.
var ways = map[string]func(*testing.T, *scripted.Server, openai.ChatCompletionNewParams) (openai.ChatCompletion, error){
	"streamed": streamed, "whole": whole,
}

func TestACompletionReadsTheSameStreamedAndWholeAndCanGoBack(t *testing.T) {
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			s := sdk.Serve(t, scripted.Plan{Blocks: sdk.Mixed})
			c, err := ask(t, s, params())
			require.NoError(t, err)
			require.Equal(t, s.Calls()[0].ResponseID, c.ID)
			require.Equal(t, "tool_calls", c.Choices[0].FinishReason)
			m := c.Choices[0].Message
			require.Equal(t, sdk.Words, m.Content)
			require.Len(t, m.ToolCalls, 1)
			require.Equal(t, []string{sdk.Called.ID, sdk.Called.Name, sdk.Input},
				[]string{m.ToolCalls[0].ID, m.ToolCalls[0].Function.Name, m.ToolCalls[0].Function.Arguments})
			counts := s.Counts()
			require.EqualValues(t, counts.InputTokens, c.Usage.PromptTokens)
			require.EqualValues(t, counts.OutputTokens, c.Usage.CompletionTokens)

			_, err = ask(t, s, params(m.ToParam(), openai.ToolMessage("12", sdk.Called.ID)))
			require.NoError(t, err, "the reply goes back as it came, and the provider takes it")
		})
	}
}

func TestARefusalHasItsWords(t *testing.T) {
	for name, ask := range ways {
		c, err := ask(t, sdk.Serve(t, scripted.Plan{Blocks: []scripted.Block{{Refusal: "I can not."}}}), params())
		require.NoError(t, err, name)
		require.Equal(t, "I can not.", c.Choices[0].Message.Refusal, name)
		require.Empty(t, c.Choices[0].Message.Content, name)
	}
}

func TestEveryErrorIsTheVendorsOwn(t *testing.T) {
	for status, code := range map[int]string{400: "", 401: "invalid_api_key", 404: "", 429: "insufficient_quota", 500: "", 503: ""} {
		for name, ask := range ways {
			s := sdk.Serve(t, sdk.Status(status, map[int]string{429: code}[status]))
			_, err := ask(t, s, params())
			var refused *openai.Error
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, status, refused.StatusCode)
			require.Equal(t, code, refused.Code)
			require.NotEmpty(t, refused.Type)
			require.Equal(t, 1, s.Counts().Requests)
		}
	}
}

func TestAnErrorInAStreamIsOne(t *testing.T) {
	_, err := streamed(t, sdk.Serve(t, sdk.At(scripted.DoErrorEvent)), params())
	require.ErrorContains(t, err, "server_error")
}

func TestStoredCompletionsAreListedByTheirMetadata(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{Blocks: sdk.Mixed})
	c := client(s)
	ids := map[string]string{}
	for _, turn := range []string{"one", "two", "one"} {
		p := params()
		p.Store, p.Metadata = openai.Bool(true), openai.Metadata{"turn": turn}
		made, err := streamed(t, s, p)
		require.NoError(t, err)
		ids[made.ID] = turn
	}
	_, err := streamed(t, s, params())
	require.NoError(t, err)
	pages := c.Chat.Completions.ListAutoPaging(t.Context(), openai.ChatCompletionListParams{
		Metadata: openai.Metadata{"turn": "one"}, Order: openai.ChatCompletionListParamsOrderAsc, Limit: openai.Int(1),
	})
	found := 0
	for pages.Next() {
		kept := pages.Current()
		require.Equal(t, "one", ids[kept.ID])
		again, err := c.Chat.Completions.Get(t.Context(), kept.ID)
		require.NoError(t, err)
		require.Equal(t, sdk.Words, again.Choices[0].Message.Content)
		require.Equal(t, openai.Metadata{"turn": "one"}, again.Metadata)
		found++
	}
	require.NoError(t, pages.Err())
	require.Equal(t, 2, found)
}
