package openai_test

import (
	"crypto/sha256"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/llmtest"
	"github.com/turnd/turnd/llm/openai"
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
	zero := 0.0
	vendor, compatible := llm.Endpoint{}, llm.Endpoint{BaseURL: "http://127.0.0.1:8000/v1"}
	least := turns.Prompt{Messages: []turns.Message{message(turns.RoleUser, "hello <b> & 你好")}}
	full := turns.Prompt{
		Options: turns.Options{System: "be brief", MaxOutputTokens: 1000, StopSequences: []string{"END"}, Temperature: &zero},
		Messages: []turns.Message{
			message(turns.RoleUser, "a"), message(turns.RoleAssistant, "b "), message(turns.RoleUser, "c", "d"), message(turns.RoleUser, "e"),
		},
	}
	const tail = `"temperature":0,"stop":["END"],"stream":true,"stream_options":{"include_usage":true}}`
	const talk = `{"role":"user","content":"a"},{"role":"assistant","content":"b "},{"role":"user","content":"c\n\nd\n\ne"}]`
	for _, tt := range []struct {
		name     string
		endpoint llm.Endpoint
		prompt   turns.Prompt
		want     string
	}{
		{"the least", vendor, least,
			`{"model":"m","messages":[{"role":"user","content":"hello <b> & 你好"}],"stream":true,"stream_options":{"include_usage":true}}`},
		{"the vendor's names", vendor, full,
			`{"model":"m","messages":[{"role":"developer","content":"be brief"},` + talk + `,"max_completion_tokens":1000,` + tail},
		{"a compatible server's names", compatible, full,
			`{"model":"m","messages":[{"role":"system","content":"be brief"},` + talk + `,"max_tokens":1000,` + tail},
		{"a region of the vendor", llm.Endpoint{BaseURL: "https://eu.api.openai.com/v1"}, full,
			`{"model":"m","messages":[{"role":"developer","content":"be brief"},` + talk + `,"max_completion_tokens":1000,` + tail},
		{"a host that only looks like the vendor", llm.Endpoint{BaseURL: "https://evilapi.openai.com.example/v1"}, full,
			`{"model":"m","messages":[{"role":"system","content":"be brief"},` + talk + `,"max_tokens":1000,` + tail},
		{"a dialect that is named", llm.Endpoint{BaseURL: "http://127.0.0.1:8000/v1", Dialect: llm.DialectVendor}, full,
			`{"model":"m","messages":[{"role":"developer","content":"be brief"},` + talk + `,"max_completion_tokens":1000,` + tail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := openai.New(nil, tt.endpoint)
			for range 3 {
				got, err := c.Build(turns.Route{ProviderModel: "m"}, tt.prompt)
				require.NoError(t, err)
				require.Equal(t, tt.want, string(got.Body))
				require.Equal(t, sha256.Sum256(got.Body), got.Hash)
			}
		})
	}
}

func TestARequestHasItsPathAndHeaders(t *testing.T) {
	p := llmtest.Play(t, func(x *llmtest.Exchange) {
		require.Equal(t, "/v1/chat/completions", x.Path)
		require.Equal(t, "Bearer sk-1", x.Header.Get("Authorization"))
		require.Equal(t, "application/json", x.Header.Get("Content-Type"))
		require.Equal(t, "turnd-key", x.Header.Get("Idempotency-Key"))
		x.Begin("X-Request-Id: req_1")
		x.Events(voice().Whole("a"))
		x.End()
	})
	http := wire.NewClient(wire.Options{})
	defer http.Close()
	c := openai.New(http, llm.Endpoint{BaseURL: p.URL(), Key: "sk-1"})
	req, err := c.Build(turns.Route{ProviderModel: "m"}, turns.Prompt{Messages: []turns.Message{message(turns.RoleUser, "a")}})
	require.NoError(t, err)
	r := llmtest.Collect(t, c.Generate(t.Context(), turns.Call{Request: req, Key: "turnd-key"}))
	require.Nil(t, r.Err)
	require.Equal(t, "req_1", r.Responded.RequestID)
}
