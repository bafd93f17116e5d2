package scripted_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/llm/scripted"
)

// texts returns what each text delta of a stream says.
func texts(t *testing.T, plan scripted.Plan) []string {
	var all []string
	for _, e := range events(t, ask(t, start(t, plan), messages, anthropicBody).body) {
		if e.name == "content_block_delta" {
			all = append(all, at(t, e.data, "delta", "text").(string))
		}
	}
	return all
}

func TestReplyDeltasAreWordsOfExactlyTheirSize(t *testing.T) {
	for _, size := range []int{0, 1, 2, 3, 16, 1000} {
		all := texts(t, scripted.Plan{Reply: &scripted.Reply{Deltas: 20, DeltaBytes: size, Seed: 7}})
		require.Len(t, all, 20)
		for _, text := range all {
			want := size
			if size == 0 {
				want = 16
			}
			require.Len(t, text, want)
			require.Empty(t, strings.Trim(text, "abcdefghijklmnopqrstuvwxyz "))
		}
	}
}

func TestASeedGivesItsReplyAgain(t *testing.T) {
	plan := func(seed int64) scripted.Plan {
		return scripted.Plan{Reply: &scripted.Reply{Deltas: 20, Seed: seed}}
	}
	require.Equal(t, texts(t, plan(1)), texts(t, plan(1)))
	require.NotEqual(t, texts(t, plan(1)), texts(t, plan(2)))
}

func TestBlocksAreCutIntoWordsThatJoinToTheText(t *testing.T) {
	for text, words := range map[string]int{
		"one": 1, "one two": 2, " one  two\n": 2, "a\tb c": 3, "你好 世界": 2, "\n\n": 1,
	} {
		all := texts(t, scripted.Plan{Blocks: []scripted.Block{{Text: text}}})
		require.Len(t, all, words, "%q", text)
		require.Equal(t, text, strings.Join(all, ""))
	}
}

func TestToolInputIsCutBetweenRunes(t *testing.T) {
	input := `{"q":"` + strings.Repeat("🦀你", 20) + `"}`
	plan := scripted.Plan{Blocks: []scripted.Block{{ToolUse: &scripted.ToolUse{ID: "t", Name: "f", Input: input}}}}
	var joined strings.Builder
	for _, e := range events(t, ask(t, start(t, plan), messages, anthropicBody).body) {
		if e.name == "content_block_delta" {
			require.True(t, utf8.ValidString(e.data))
			require.NotContains(t, e.data, "\ufffd")
			joined.WriteString(at(t, e.data, "delta", "partial_json").(string))
		}
	}
	require.Equal(t, input, joined.String())
}

func TestAToolWithoutInputAndAnEmptyReplyAreSaid(t *testing.T) {
	plan := scripted.Plan{Blocks: []scripted.Block{{ToolUse: &scripted.ToolUse{ID: "t", Name: "f"}}}}
	got := ask(t, start(t, plan), messages, whole(anthropicBody))
	require.Equal(t, map[string]any{}, at(t, got.body, "content", 0, "input"))

	empty := scripted.Plan{Reply: &scripted.Reply{}}
	require.Equal(t, []string{"message_start", "message_delta", "message_stop"},
		names(events(t, ask(t, start(t, empty), messages, anthropicBody).body)))
	got = ask(t, start(t, empty), completions, whole(openaiBody))
	require.Empty(t, at(t, got.body, "choices", 0, "message", "content"))
}
