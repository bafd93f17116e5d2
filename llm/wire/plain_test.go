package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

func user(blocks ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleUser, Content: blocks}
}

func assistant(blocks ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleAssistant, Content: blocks}
}

func TestMessagesAreMergedHealedAndRefused(t *testing.T) {
	text := func(s string) turns.Block { return turns.Text{Text: s} }
	for _, tt := range []struct {
		name     string
		messages []turns.Message
		want     []wire.PlainMessage
	}{
		{"neighbours of a role", []turns.Message{user(text("a")), user(text("b"), text("c"))}, []wire.PlainMessage{{Role: turns.RoleUser, Texts: []string{"a", "b", "c"}}}},
		{"blank ones go, and what they kept apart meets", []turns.Message{user(text("a")), assistant(text(" \n")), user(text("b"))},
			[]wire.PlainMessage{{Role: turns.RoleUser, Texts: []string{"a", "b"}}}},
		{"NUL and broken text", []turns.Message{user(text("a\x00b\xff"))}, []wire.PlainMessage{{Role: turns.RoleUser, Texts: []string{"ab\uFFFD"}}}},
		{"a refusal is text", []turns.Message{user(text("a")), assistant(turns.Refusal{Text: "no"}), user(text("b"))},
			[]wire.PlainMessage{{Role: turns.RoleUser, Texts: []string{"a"}}, {Role: turns.RoleAssistant, Texts: []string{"no"}}, {Role: turns.RoleUser, Texts: []string{"b"}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := wire.PlainMessages(turns.Prompt{Messages: tt.messages})
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tt.want, got))
		})
	}
	for _, messages := range [][]turns.Message{nil, {user(text(" "))}, {user(text("a")), assistant(text("b"))}} {
		_, err := wire.PlainMessages(turns.Prompt{Messages: messages})
		require.Equal(t, turns.CodeContentEmpty, turns.CodeOf(err))
	}
}

func TestWhatIsNoTextYetIsRefusedByName(t *testing.T) {
	hello := user(turns.Text{Text: "hello"})
	for name, tt := range map[string]struct {
		prompt turns.Prompt
		field  string
	}{
		"an image":              {turns.Prompt{Messages: []turns.Message{user(turns.Image{URL: "u"})}}, "input.content"},
		"a document":            {turns.Prompt{Messages: []turns.Message{user(turns.Document{})}}, "input.content"},
		"a tool result":         {turns.Prompt{Messages: []turns.Message{user(turns.ToolResult{})}}, "input.content"},
		"a tool call":           {turns.Prompt{Messages: []turns.Message{assistant(turns.ToolUse{}), hello}}, "input.content"},
		"thinking":              {turns.Prompt{Messages: []turns.Message{assistant(turns.Thinking{}), hello}}, "input.content"},
		"only its vendor":       {turns.Prompt{Messages: []turns.Message{assistant(turns.Opaque{}), hello}}, "input.content"},
		"a tool definition":     {turns.Prompt{Options: turns.Options{Tools: []turns.Tool{{Name: "f"}}}}, "input.options.tools"},
		"a choice of tools":     {turns.Prompt{Options: turns.Options{ToolChoice: &turns.ToolChoice{}}}, "input.options.tool_choice"},
		"a budget for thinking": {turns.Prompt{Options: turns.Options{ThinkingBudgetTokens: 1}}, "input.options.thinking_budget_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wire.PlainMessages(tt.prompt)
			var refused *turns.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, turns.CodeUnimplemented, refused.Code)
			require.Equal(t, tt.field, refused.Field)
			require.Contains(t, refused.Problem, name)
		})
	}
}

func TestASecretShowsNowhere(t *testing.T) {
	const key = "sk-very-secret"
	s := wire.Secret(key)
	var out bytes.Buffer
	for _, verb := range []string{"%s", "%v", "%+v", "%#v", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", struct{ Key wire.Secret }{s})
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "key", s, "in", struct{ Key wire.Secret }{s})
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "key", s, "in", struct{ Key wire.Secret }{s})
	require.NoError(t, json.NewEncoder(&out).Encode(map[string]any{"key": s}))
	require.NotContains(t, out.String(), key)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", key))
	require.Contains(t, out.String(), "[redacted]")
	require.Equal(t, key, s.Reveal())
	require.Empty(t, fmt.Sprint(wire.Secret("")), "no key shows as none")
}

func TestACountTakesWhateverAServerWrites(t *testing.T) {
	for literal, want := range map[string]int64{"7": 7, "7.9": 7, "-1": 0, "null": 0, `"7"`: 0, "{}": 0, "1e30": 0, "1e3": 1000} {
		var v struct{ N *wire.Count }
		require.NoError(t, json.Unmarshal([]byte(`{"N":`+literal+`}`), &v))
		require.Equal(t, want, v.N.Value(), literal)
	}
}

func TestZerosAreReportedOnlyForAnEmptyReply(t *testing.T) {
	var m wire.Meter
	require.Empty(t, m.Report(nil, turns.Usage{}))
	require.Empty(t, m.Finish(nil, true))
	require.Equal(t, []turns.Delta{turns.UsageReported{Usage: turns.Usage{Source: turns.SourceReported}}}, m.Finish(nil, false))
	require.Len(t, m.Report(nil, turns.Usage{Input: 1}), 1)
	require.Empty(t, m.Finish(nil, false), "what was reported stands")
	require.Empty(t, new(wire.Meter).Finish(nil, false), "nothing was said")
}

func TestAReplyTakesTheSmallerOfWhatIsAskedAndAllowed(t *testing.T) {
	for _, tt := range []struct{ asked, limit, want int }{{0, 0, 0}, {5, 0, 5}, {0, 5, 5}, {5, 9, 5}, {9, 5, 5}} {
		got := wire.MaxOutput(turns.Options{MaxOutputTokens: int32(tt.asked)}, turns.Limits{MaxOutputTokens: tt.limit})
		require.Equal(t, tt.want, got)
	}
}
