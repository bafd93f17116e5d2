// Package anthropic_test asks the scripted provider by Anthropic's own client.
package anthropic_test

import (
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/bench/sdk"
	"github.com/turnd/turnd/llm/scripted"
)

func client(s *scripted.Server) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(s.URL()), option.WithAPIKey("sk-x"), option.WithMaxRetries(0))
}

func params(messages ...anthropic.MessageParam) anthropic.MessageNewParams {
	asked := anthropic.NewUserMessage(anthropic.NewTextBlock("one two three"))
	return anthropic.MessageNewParams{
		Model: "demo", MaxTokens: 100, Messages: append([]anthropic.MessageParam{asked}, messages...),
		Tools: []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{}, sdk.Called.Name)},
	}
}

// streamed reads a reply as it comes.
func streamed(t *testing.T, s *scripted.Server, p anthropic.MessageNewParams) (anthropic.Message, error) {
	t.Helper()
	c := client(s)
	stream := c.Messages.NewStreaming(t.Context(), p)
	defer stream.Close()
	var message anthropic.Message
	for stream.Next() {
		require.NoError(t, message.Accumulate(stream.Current()))
	}
	return message, stream.Err()
}

func whole(t *testing.T, s *scripted.Server, p anthropic.MessageNewParams) (anthropic.Message, error) {
	t.Helper()
	c := client(s)
	message, err := c.Messages.New(t.Context(), p)
	if err != nil {
		return anthropic.Message{}, err
	}
	return *message, nil
}

// ways are the two ways to be answered.
var ways = map[string]func(*testing.T, *scripted.Server, anthropic.MessageNewParams) (anthropic.Message, error){
	"streamed": streamed, "whole": whole,
}

func TestAReplyReadsTheSameStreamedAndWholeAndCanGoBack(t *testing.T) {
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			s := sdk.Serve(t, scripted.Plan{Blocks: append([]scripted.Block{{Redacted: "c2VhbGVk"}}, sdk.Mixed...)})
			m, err := ask(t, s, params())
			require.NoError(t, err)
			require.Equal(t, s.Calls()[0].ResponseID, m.ID)
			require.Equal(t, anthropic.StopReasonToolUse, m.StopReason)
			require.Len(t, m.Content, 4)
			require.Equal(t, "c2VhbGVk", m.Content[0].AsRedactedThinking().Data)
			thought := m.Content[1].AsThinking()
			require.Equal(t, "let me see", thought.Thinking)
			require.Equal(t, "EqQB+/==", thought.Signature)
			require.Equal(t, sdk.Words, m.Content[2].AsText().Text)
			call := m.Content[3].AsToolUse()
			require.Equal(t, []string{sdk.Called.ID, sdk.Called.Name}, []string{call.ID, call.Name})
			require.JSONEq(t, sdk.Input, string(call.Input))
			counts := s.Counts()
			require.EqualValues(t, counts.InputTokens, m.Usage.InputTokens)
			require.EqualValues(t, counts.OutputTokens, m.Usage.OutputTokens)

			result := anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.ID, "12", false))
			_, err = ask(t, s, params(m.ToParam(), result))
			require.NoError(t, err, "the reply goes back as it came, and the provider takes it")
			require.Equal(t, 2, s.Counts().Requests)
		})
	}
}

func TestARefusalHasItsCategory(t *testing.T) {
	for name, ask := range ways {
		m, err := ask(t, sdk.Serve(t, scripted.Plan{Blocks: []scripted.Block{{Refusal: "I can not."}}}), params())
		require.NoError(t, err, name)
		require.Equal(t, anthropic.StopReasonRefusal, m.StopReason, name)
		require.NotEmpty(t, m.StopDetails.Category, name)
	}
}

func TestEveryErrorIsTheVendorsOwn(t *testing.T) {
	for status, kind := range map[int]string{
		400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
		409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error", 529: "overloaded_error",
	} {
		for name, ask := range ways {
			s := sdk.Serve(t, sdk.Status(status, ""))
			_, err := ask(t, s, params())
			var refused *anthropic.Error
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, status, refused.StatusCode)
			require.Equal(t, kind, string(refused.Type()))
			require.NotEmpty(t, refused.RequestID)
			require.Equal(t, 1, s.Counts().Requests)
		}
	}
}

func TestAnErrorInAStreamIsOne(t *testing.T) {
	_, err := streamed(t, sdk.Serve(t, sdk.At(scripted.DoErrorEvent)), params())
	require.ErrorContains(t, err, "overloaded_error")
}

func TestAHistoryThatTheVendorRefusesIsRefused(t *testing.T) {
	s := sdk.Serve(t, scripted.Plan{})
	_, err := streamed(t, s, params(anthropic.NewUserMessage(anthropic.NewToolResultBlock("of no call", "12", false))))
	var refused *anthropic.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, 400, refused.StatusCode)
}
