package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

func user(blocks ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleUser, Content: blocks}
}

func assistant(blocks ...turns.Block) turns.Message {
	return turns.Message{Role: turns.RoleAssistant, Content: blocks}
}

func words(s string) turns.Block { return turns.Text{Text: s} }

func use(id string) turns.Block { return turns.ToolUse{ID: id, Name: "f", InputJSON: "{}"} }

func result(id string, content ...turns.Block) turns.Block {
	return turns.ToolResult{ToolUseID: id, Content: content}
}

func notRun(id string) turns.Block {
	return turns.ToolResult{ToolUseID: id, IsError: true, Content: []turns.Block{words("This tool was not run: the user went on without it.")}}
}

// messagesOf is a history as it goes out to an endpoint that takes all and takes nothing back.
func messagesOf(in []turns.Message) ([]turns.Message, error) {
	h, err := wire.HistoryOf(turns.Prompt{Messages: in}, wire.Takes{})
	return h.Messages, err
}

func TestMessagesAreMergedAndHealed(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []turns.Message
		want []turns.Message
	}{
		{"neighbours of a role", []turns.Message{user(words("a")), user(words("b"), words("c"))}, []turns.Message{user(words("a"), words("b"), words("c"))}},
		{"blank ones go, and what they kept apart meets", []turns.Message{user(words("a")), assistant(words(" \n")), user(words("b"))},
			[]turns.Message{user(words("a"), words("b"))}},
		{"thoughts alone go", []turns.Message{user(words("a")), assistant(turns.Thinking{Text: "hm", Seal: "s"}), user(words("b"))},
			[]turns.Message{user(words("a"), words("b"))}},
		{"NUL and broken text", []turns.Message{user(words("a\x00b\xff"))}, []turns.Message{user(words("ab\uFFFD"))}},
		{"a refusal is text, what only its vendor understands is nothing",
			[]turns.Message{user(words("a")), assistant(turns.Refusal{Text: "no"}, turns.Opaque{Type: "x"}), user(words("b"))},
			[]turns.Message{user(words("a")), assistant(words("no")), user(words("b"))}},
		{"calls with their results", []turns.Message{user(words("a")), assistant(words("I look"), use("1"), use("2")), user(words("so"), result("2"), result("1", words("x")))},
			[]turns.Message{user(words("a")), assistant(words("I look"), use("1"), use("2")), user(result("1", words("x")), result("2"), words("so"))}},
		{"a call that nobody ran", []turns.Message{user(words("a")), assistant(use("1"), use("2")), user(result("2")), user(words("b"))},
			[]turns.Message{user(words("a")), assistant(use("1"), use("2")), user(notRun("1"), result("2"), words("b"))}},
		{"an answer given twice: the newest holds", []turns.Message{user(words("a")), assistant(use("1")), user(result("1", words("old"))), user(result("1", words("new")))},
			[]turns.Message{user(words("a")), assistant(use("1")), user(result("1", words("new")))}},
		{"a result of no call, and a turn of nothing else", []turns.Message{user(words("a")), assistant(words("b")), user(result("9")), assistant(words("c")), user(result("8"), words("d"))},
			[]turns.Message{user(words("a")), assistant(words("b"), words("c")), user(words("d"))}},
		{"a reply to nothing, and the results of its calls", []turns.Message{user(words(" ")), assistant(words("x"), use("1")), user(result("1")), assistant(words("y")), user(words("a"))},
			[]turns.Message{user(words("a"))}},
		{"a reply to nothing, and words beside the results", []turns.Message{assistant(use("1")), user(result("1"), words("a")), assistant(words("b")), user(words("c"))},
			[]turns.Message{user(words("a")), assistant(words("b")), user(words("c"))}},
		{"the same id in one reply", []turns.Message{user(words("a")), assistant(use("1"), use("1")), user(result("1"))},
			[]turns.Message{user(words("a")), assistant(use("1")), user(result("1"))}},
		{"an error without words, and a name of no tool",
			[]turns.Message{user(words("a")), assistant(turns.ToolUse{ID: "1", Name: "a.b é"}, turns.ToolUse{ID: "2"}), user(turns.ToolResult{ToolUseID: "1", IsError: true}, result("2"))},
			[]turns.Message{user(words("a")), assistant(turns.ToolUse{ID: "1", Name: "a_b__"}, turns.ToolUse{ID: "2", Name: "unnamed"}),
				user(turns.ToolResult{ToolUseID: "1", IsError: true, Content: []turns.Block{words("The tool failed.")}}, turns.ToolResult{ToolUseID: "2", Content: []turns.Block{}})}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := fmt.Sprint(tt.in)
			got, err := messagesOf(tt.in)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tt.want, got, cmpopts.EquateEmpty()))
			require.Equal(t, before, fmt.Sprint(tt.in), "what is stored is not changed")
		})
	}
	for _, messages := range [][]turns.Message{nil, {user(words(" "))}, {user(words("a")), assistant(words("b"))}, {user(result("1"))}} {
		_, err := messagesOf(messages)
		require.Equal(t, turns.CodeContentEmpty, turns.CodeOf(err))
	}
}

func TestWhatOnlyItsVendorUnderstandsGoesBackWholeOrNotAtAll(t *testing.T) {
	mine := func(seal string) bool { return strings.HasPrefix(seal, "mine") }
	call, answered := turns.Opaque{Type: "call", Seal: "mine 1"}, turns.Opaque{Type: "result", Seal: "mine 2"}
	reply := func(blocks ...turns.Block) []turns.Message {
		return []turns.Message{user(words("a")), assistant(blocks...), user(words("b"))}
	}
	for name, tt := range map[string]struct{ in, want []turns.Message }{
		"where it stood":        {reply(words("1"), call, answered, words("2")), reply(words("1"), call, answered, words("2"))},
		"as all of a reply":     {reply(call, answered), reply(call, answered)},
		"one has lost its seal": {reply(call, turns.Opaque{Type: "result"}, words("2")), reply(words("2"))},
		"one is another's":      {reply(turns.Opaque{Seal: "yours"}, call, words("2")), reply(words("2"))},
		"all of a lost reply":   {reply(turns.Opaque{}), []turns.Message{user(words("a"), words("b"))}},
	} {
		got, err := wire.HistoryOf(turns.Prompt{Messages: tt.in}, wire.Takes{Mine: mine})
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(tt.want, got.Messages), name)
	}
}

func TestIdsThatNotAllVendorsTakeAreReplacedAlikeInCallAndResult(t *testing.T) {
	long := strings.Repeat("x", 41)
	ids := []string{"functions.f:0", "", long, "ok", "ok"}
	in := []turns.Message{user(words("a"))}
	for _, id := range ids {
		in = append(in, assistant(use(id)), user(result(id, words("of "+id))))
	}
	got, err := messagesOf(in)
	require.NoError(t, err)
	seen := map[string]bool{}
	for i := range ids {
		call, answered := got[1+2*i].Content[0].(turns.ToolUse), got[2+2*i].Content[0].(turns.ToolResult)
		require.Regexp(t, `^[A-Za-z0-9_-]{1,40}$`, call.ID)
		require.Equal(t, call.ID, answered.ToolUseID)
		require.Equal(t, "of "+ids[i], turns.PlainText(answered.Content))
		require.False(t, seen[call.ID])
		seen[call.ID] = true
	}
	require.True(t, seen["ok"])
	again, err := messagesOf(in)
	require.NoError(t, err)
	require.Equal(t, got, again, "the same history has the same ids anywhere")
}

// drawBlock draws what can be stored of a turn or a reply, poison included.
func drawBlock(t *rapid.T, role turns.Role) turns.Block {
	id := rapid.SampledFrom([]string{"a", "b", "c", "", "not/taken"}).Draw(t, "id")
	said := rapid.SampledFrom([]string{"hi", "", " ", "\x00"}).Draw(t, "words")
	if role == turns.RoleUser {
		return rapid.SampledFrom([]turns.Block{words(said), result(id, words(said)), turns.ToolResult{ToolUseID: id, IsError: true}}).Draw(t, "block")
	}
	return rapid.SampledFrom([]turns.Block{words(said), use(id), turns.Thinking{Text: said}, turns.Refusal{Text: said}, turns.Opaque{}}).Draw(t, "block")
}

func TestWhateverIsStoredAProviderGetsAHistoryInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []turns.Message
		for range rapid.IntRange(0, 8).Draw(t, "messages") {
			m := turns.Message{Role: rapid.SampledFrom([]turns.Role{turns.RoleUser, turns.RoleAssistant}).Draw(t, "role")}
			for range rapid.IntRange(0, 4).Draw(t, "blocks") {
				m.Content = append(m.Content, drawBlock(t, m.Role))
			}
			in = append(in, m)
		}
		got, err := messagesOf(append(in, user(words("now"))))
		require.NoError(t, err)
		used := map[string]bool{}
		var open []string
		for i, m := range got {
			require.NotEmpty(t, m.Content)
			if i > 0 {
				require.NotEqual(t, got[i-1].Role, m.Role, "roles alternate")
			}
			var calls, results []string
			for n, b := range m.Content {
				switch b := b.(type) {
				case turns.ToolUse:
					require.False(t, used[b.ID], "an id twice")
					used[b.ID], calls = true, append(calls, b.ID)
				case turns.ToolResult:
					require.Len(t, results, n, "results come first")
					results = append(results, b.ToolUseID)
				}
			}
			require.Equal(t, open, results, "each call has its result in the next message, and each result its call")
			open = calls
		}
		require.Empty(t, open)
	})
}

func TestInputOfACallGoesOutAsTheModelWroteItOrAsNothing(t *testing.T) {
	for _, tt := range []struct{ stored, object, value string }{
		{`{"b":1,"a":12345678901234567890.10,"c":2}`, `{"b":1,"a":12345678901234567890.10,"c":2}`, ""},
		{`{"b":1,"a":2 , "b" : {"c":1, "\u0063":[2,{"d":1,"d":1,"d":[]}]},"e":0}`, `{"a":2 , "b" : {"\u0063":[2,{"d":[]}]},"e":0}`, ""},
		{`{"a":{"b":1,"b":2},"a":"}\"," }`, `{"a":"}\"," }`, ""},
		{`{"\ud83e":1,"\udd80":2}`, `{"\ufffd":2}`, ""},
		{`[{"a":1,"a":2}]`, `{}`, `[{"a":2}]`},
		{`{"a":"\u0000\\u0000"}`, `{"a":"\ufffd\\u0000"}`, ""},
		{` {"a": "\u00e9\\\"\n"} `, `{"a": "\u00e9\\\"\n"}`, ""},
		{`{"a":"\ud83e\udd80 \ud83e \udd80 \\ud83e"}`, `{"a":"\ud83e\udd80 \ufffd \ufffd \\ud83e"}`, ""},
		{`{"a":"\ud83e\ud83e\udd80"}`, `{"a":"\ufffd\ud83e\udd80"}`, ""},
		{`{"a":"cut sh`, `{}`, ""},
		{``, `{}`, ""},
		{`{"a":1}{"b":2}`, `{}`, ""},
		{`[1]`, `{}`, `[1]`},
		{`null`, `{}`, `null`},
	} {
		require.Equal(t, tt.object, string(wire.Object(tt.stored)), tt.stored)
		if tt.value == "" {
			tt.value = tt.object
		}
		require.Equal(t, tt.value, string(wire.Value(tt.stored)), tt.stored)
		require.True(t, json.Valid(wire.Value(tt.stored)))
	}
}
