package anthropic_test

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

func message(role turns.Role, texts ...string) turns.Message {
	m := turns.Message{Role: role}
	for _, t := range texts {
		m.Content = append(m.Content, turns.Text{Text: t})
	}
	return m
}

func TestARequestIsTheseBytes(t *testing.T) {
	c := anthropic.New(nil, llm.Endpoint{})
	route := turns.Route{ProviderModel: "claude-sonnet-5-5"}
	hello := []turns.Message{message(turns.RoleUser, "hello <b> & 你好")}
	for _, tt := range []struct {
		name   string
		limits turns.Limits
		prompt turns.Prompt
		want   string
	}{
		{"the least", turns.Limits{}, turns.Prompt{Messages: hello},
			`{"model":"claude-sonnet-5-5","max_tokens":4096,"messages":[{"role":"user","content":[{"type":"text","text":"hello <b> & 你好"}]}],"stream":true}`},
		{"all of it", turns.Limits{MaxOutputTokens: 500}, turns.Prompt{
			Options: turns.Options{System: "be brief", MaxOutputTokens: 1000, StopSequences: []string{"END"}},
			Messages: []turns.Message{
				message(turns.RoleUser, "a"), message(turns.RoleAssistant, "b "), message(turns.RoleUser, "c", "d"), message(turns.RoleUser, "e"),
			}},
			`{"model":"claude-sonnet-5-5","max_tokens":500,"system":[{"type":"text","text":"be brief"}],"messages":[` +
				`{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"text","text":"b "}]},` +
				`{"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"},{"type":"text","text":"e"}]}],` +
				`"stop_sequences":["END"],"stream":true}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			route.Limits = tt.limits
			for range 3 {
				got, err := c.Build(route, tt.prompt)
				require.NoError(t, err)
				require.Equal(t, tt.want, string(got.Body))
				require.Equal(t, sha256.Sum256(got.Body), got.Hash)
				require.Equal(t, route, got.Route)
			}
		})
	}
}

func TestATemperatureIsRefused(t *testing.T) {
	temperature := 0.5
	_, err := anthropic.New(nil, llm.Endpoint{}).Build(turns.Route{}, turns.Prompt{
		Options: turns.Options{Temperature: &temperature}, Messages: []turns.Message{message(turns.RoleUser, "a")},
	})
	require.Equal(t, turns.CodeInvalidField, turns.CodeOf(err))
	require.ErrorContains(t, err, "input.options.temperature")
}

func TestARequestHasItsPathAndHeaders(t *testing.T) {
	p := llmtest.Play(t, func(x *llmtest.Exchange) {
		require.Equal(t, "/v1/messages", x.Path)
		require.Equal(t, "sk-1", x.Header.Get("X-Api-Key"))
		require.Empty(t, x.Header.Get("Authorization"))
		require.Equal(t, "2026-10-21", x.Header.Get("Anthropic-Version"))
		require.Equal(t, "application/json", x.Header.Get("Content-Type"))
		require.Equal(t, "turnd-key", x.Header.Get("Idempotency-Key"))
		x.Begin("Request-Id: req_1", "X-Request-Id: other")
		x.Events(voice().Whole("a"))
		x.End()
	})
	http := wire.NewClient(wire.Options{})
	defer http.Close()
	c := anthropic.New(http, llm.Endpoint{BaseURL: p.URL() + "/v1/", Key: "sk-1"})
	req, err := c.Build(turns.Route{ProviderModel: "m"}, turns.Prompt{Messages: []turns.Message{message(turns.RoleUser, "a")}})
	require.NoError(t, err)
	r := llmtest.Collect(t, c.Generate(t.Context(), turns.Call{Request: req, Key: "turnd-key"}))
	require.Nil(t, r.Err)
	require.Equal(t, "req_1", r.Responded.RequestID)
}

func TestThoughtsAtTheEndOfAReplyStayBehind(t *testing.T) {
	thought := turns.Thinking{Text: "hm", Seal: "anthropic.messages/m\ns"}
	got, err := anthropic.New(nil, llm.Endpoint{}).Build(turns.Route{ProviderModel: "m"}, turns.Prompt{Messages: []turns.Message{
		message(turns.RoleUser, "a"), {Role: turns.RoleAssistant, Content: []turns.Block{thought, turns.Text{Text: "b"}, thought, thought}}, message(turns.RoleUser, "c"),
	}})
	require.NoError(t, err)
	require.Contains(t, string(got.Body), `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"b"}]}`)
}

func TestAStopSequenceOfWhiteSpaceIsRefused(t *testing.T) {
	p := turns.Prompt{Messages: []turns.Message{message(turns.RoleUser, "a")}, Options: turns.Options{StopSequences: []string{"END", "\n"}}}
	_, err := anthropic.New(nil, llm.Endpoint{}).Build(turns.Route{ProviderModel: "m"}, p)
	var refused *turns.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, turns.CodeInvalidField, refused.Code)
	require.Equal(t, "input.options.stop_sequences[1]", refused.Field)
}
