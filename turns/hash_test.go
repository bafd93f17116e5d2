package turns_test

import (
	"encoding/hex"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

func sampleInput() turns.Input {
	return turns.Input{
		Conversation: turns.ConversationID{UUID: uuid.MustParse("11111111-1111-4111-8111-111111111111")},
		Turn:         turns.TurnID{UUID: uuid.MustParse("22222222-2222-4222-8222-222222222222")},
		Content:      []turns.Block{turns.Text{Text: "hello"}},
	}
}

// TestTheHashOfAnInputNeverChanges pins the encoding: a turn stored by an older version must be known again.
func TestTheHashOfAnInputNeverChanges(t *testing.T) {
	require.Equal(t, "h1", string(turns.HashInput(sampleInput())[:2]))
	full := sampleInput()
	warm := 0.5
	full.ParentSet, full.Parent = true, turns.RowID{UUID: uuid.MustParse("33333333-3333-4333-8333-333333333333")}
	full.Content = append(full.Content, turns.Image{MediaType: "image/png", Data: []byte{1, 2}},
		turns.ToolResult{ToolUseID: "t", Content: []turns.Block{turns.Text{Text: "x"}}})
	full.Options = turns.Options{Model: "m", System: "s", MaxOutputTokens: 5, Temperature: &warm, StopSequences: []string{"end"}}
	require.Equal(t, goldenPlain, hex.EncodeToString(turns.HashInput(sampleInput())[2:]))
	require.Equal(t, goldenFull, hex.EncodeToString(turns.HashInput(full)[2:]))
}

func TestEveryPartOfTheInputChangesTheHash(t *testing.T) {
	zero := 0.0
	base := string(turns.HashInput(sampleInput()))
	seen := map[string]string{base: "the plain input"}
	for name, change := range map[string]func(*turns.Input){
		"text":            func(in *turns.Input) { in.Content = []turns.Block{turns.Text{Text: "hello!"}} },
		"white space":     func(in *turns.Input) { in.Content = []turns.Block{turns.Text{Text: "hello "}} },
		"split in two":    func(in *turns.Input) { in.Content = []turns.Block{turns.Text{Text: "hel"}, turns.Text{Text: "lo"}} },
		"another parent":  func(in *turns.Input) { in.ParentSet, in.Parent = true, turns.RowID{UUID: uuid.Max} },
		"root":            func(in *turns.Input) { in.ParentSet = true },
		"model":           func(in *turns.Input) { in.Options.Model = "m" },
		"system":          func(in *turns.Input) { in.Options.System = "m" },
		"max tokens":      func(in *turns.Input) { in.Options.MaxOutputTokens = 1 },
		"temperature 0":   func(in *turns.Input) { in.Options.Temperature = &zero },
		"stop sequence":   func(in *turns.Input) { in.Options.StopSequences = []string{"m"} },
		"stop sequences":  func(in *turns.Input) { in.Options.StopSequences = []string{"m", ""} },
		"conversation":    func(in *turns.Input) { in.Conversation = turns.ConversationID{UUID: uuid.Max} },
		"thinking budget": func(in *turns.Input) { in.Options.ThinkingBudgetTokens = 1 },
	} {
		in := sampleInput()
		change(&in)
		hash := string(turns.HashInput(in))
		require.NotContains(t, seen, hash, "%s hashes as %s", name, seen[hash])
		seen[hash] = name
	}
}

func TestADerivedConversationHashesAsItsOwnId(t *testing.T) {
	unset := sampleInput()
	unset.Conversation = turns.ConversationID{}
	named := unset
	named.Conversation = turns.DeriveConversation(unset.Turn)
	require.Equal(t, turns.HashInput(named), turns.HashInput(unset))
}

func TestNULIsDroppedOnceBeforeTheHash(t *testing.T) {
	in := sampleInput()
	in.Content = []turns.Block{turns.Text{Text: "hel\x00lo"}}
	in.Options.System = "s\x00"
	clean := sampleInput()
	clean.Options.System = "s"
	require.Equal(t, turns.HashInput(clean), turns.HashInput(in.Normalise()))
	require.Equal(t, in.Normalise(), in.Normalise().Normalise())
}

func TestTenantsNeverShareAKey(t *testing.T) {
	id := sampleInput().Conversation
	require.NotEqual(t, turns.KeyOf("a", id), turns.KeyOf("b", id))
	require.Equal(t, turns.KeyOf("a", id), turns.KeyOf("a", id))
}

const (
	goldenPlain = "ce3503bb42cd9e11c783680643e15b8a209923ac96b88dbbc2be4183e5107d4a"
	goldenFull  = "a04cee9918b63cb6864b51580f775d1e581ed1f875325f1e01fe70a215a97169"
)
