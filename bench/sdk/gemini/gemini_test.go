// Package gemini_test asks the scripted provider by Gemini's own client, on both of its wires.
package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/turnd/turnd/bench/sdk"
	"github.com/turnd/turnd/llm/scripted"
)

func client(t *testing.T, s *scripted.Server) *genai.Client {
	t.Helper()
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "k-x", HTTPOptions: genai.HTTPOptions{BaseURL: s.URL()},
	})
	require.NoError(t, err)
	return c
}

func asked(more ...*genai.Content) []*genai.Content {
	return append(genai.Text("one two three"), more...)
}

// config leaves the client no way to send a second request.
func config() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		AutomaticContinuation: genai.Ptr(false),
		Tools:                 []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: sdk.Called.Name}}}},
	}
}

// said is what a reply said, its parts joined.
type said struct {
	id, text, thoughts string
	calls              []*genai.FunctionCall
	parts              []*genai.Part
	finish             genai.FinishReason
	usage              *genai.GenerateContentResponseUsageMetadata
}

func (r *said) add(g *genai.GenerateContentResponse) {
	r.id = g.ResponseID
	if g.UsageMetadata != nil {
		r.usage = g.UsageMetadata
	}
	for _, c := range g.Candidates {
		if c.FinishReason != "" {
			r.finish = c.FinishReason
		}
		if c.Content == nil {
			continue
		}
		for _, p := range c.Content.Parts {
			if p.Text != "" || p.FunctionCall != nil { // one without either can be read by this client, and not written
				r.parts = append(r.parts, p)
			}
			switch {
			case p.FunctionCall != nil:
				r.calls = append(r.calls, p.FunctionCall)
			case p.Thought:
				r.thoughts += p.Text
			default:
				r.text += p.Text
			}
		}
	}
}

func streamed(t *testing.T, s *scripted.Server, contents []*genai.Content) (r said, err error) {
	t.Helper()
	for g, err := range client(t, s).Models.GenerateContentStream(t.Context(), "demo", contents, config()) {
		if err != nil {
			return r, err
		}
		r.add(g)
	}
	return r, nil
}

func whole(t *testing.T, s *scripted.Server, contents []*genai.Content) (r said, err error) {
	t.Helper()
	g, err := client(t, s).Models.GenerateContent(t.Context(), "demo", contents, config())
	if err == nil {
		r.add(g)
	}
	return r, err
}

// ways are the two ways to be answered.
var ways = map[string]func(*testing.T, *scripted.Server, []*genai.Content) (said, error){"streamed": streamed, "whole": whole}

func TestAReplyReadsTheSameStreamedAndWholeAndCanGoBack(t *testing.T) {
	for name, ask := range ways {
		t.Run(name, func(t *testing.T) {
			s := sdk.Serve(t, scripted.Plan{Blocks: sdk.Mixed})
			r, err := ask(t, s, asked())
			require.NoError(t, err)
			require.Equal(t, s.Calls()[0].ResponseID, r.id)
			require.Equal(t, genai.FinishReasonStop, r.finish)
			require.Equal(t, sdk.Words, r.text)
			require.Equal(t, "let me see", r.thoughts)
			require.Len(t, r.calls, 1)
			require.Equal(t, sdk.Called.Name, r.calls[0].Name)
			require.Equal(t, "Zürich", r.calls[0].Args["city"])
			counts := s.Counts()
			require.EqualValues(t, counts.InputTokens, r.usage.PromptTokenCount)
			require.EqualValues(t, counts.OutputTokens, r.usage.CandidatesTokenCount+r.usage.ThoughtsTokenCount)

			result := genai.NewPartFromFunctionResponse(sdk.Called.Name, map[string]any{"output": "12"})
			result.FunctionResponse.ID = r.calls[0].ID
			_, err = ask(t, s, asked(&genai.Content{Role: "model", Parts: r.parts}, &genai.Content{Role: "user", Parts: []*genai.Part{result}}))
			require.NoError(t, err, "the reply goes back as it came, and the provider takes it")
		})
	}
}

func TestEveryErrorIsTheVendorsOwn(t *testing.T) {
	for status, word := range map[int]string{
		400: "INVALID_ARGUMENT", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL",
		503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	} {
		for name, ask := range ways {
			s := sdk.Serve(t, sdk.Status(status, ""))
			_, err := ask(t, s, asked())
			var refused genai.APIError
			require.ErrorAs(t, err, &refused, name)
			require.Equal(t, status, refused.Code)
			require.Equal(t, word, refused.Status)
			require.Equal(t, 1, s.Counts().Requests)
		}
	}
}

func TestAnErrorInAStreamIsOne(t *testing.T) {
	_, err := streamed(t, sdk.Serve(t, sdk.At(scripted.DoErrorEvent)), asked())
	require.Error(t, err)
}
