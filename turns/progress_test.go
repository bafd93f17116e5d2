package turns

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// played is one round of a tool loop: the calls by name and input, and what each was answered with.
type played struct {
	name, input, result string
	failed              bool
}

// loop is a path of rounds, oldest first, that ends in the last round's reply, and the turn that answers it.
func loop(rounds ...[]played) (path []PathRow, answer []Block) {
	path = line(1)
	for i, calls := range rounds {
		reply := &Reply{Status: StatusComplete}
		answer = nil
		for j, c := range calls {
			id := fmt.Sprintf("t%d-%d", i, j)
			reply.Content = append(reply.Content, Piece{Block: uint32(j), Kind: KindToolUse, Starts: true, ToolUseID: id, ToolName: c.name, Text: c.input, Ends: true})
			answer = append(answer, ToolResult{ToolUseID: id, IsError: c.failed, Content: []Block{Text{Text: c.result}}})
		}
		path = append([]PathRow{{ID: rowID(2000 + 2*i), Parent: path[0].ID, Reply: reply}}, path...)
		if i < len(rounds)-1 {
			path = append([]PathRow{{ID: rowID(2001 + 2*i), Parent: path[0].ID, User: &UserTurn{Content: answer}}}, path...)
		}
	}
	return path, answer
}

func one(name, input, result string) []played {
	return []played{{name: name, input: input, result: result}}
}

func TestTheSameCallOrTheSameResultThreeTimesInARowIsNoProgress(t *testing.T) {
	for name, c := range map[string]struct {
		rounds [][]played
		tool   string
		kind   string
	}{
		"the same call":         {[][]played{one("f", `{"a":1}`, "x"), one("f", `{"a":1}`, "y"), one("f", `{"a":1}`, "z")}, "f", "call"},
		"as JSON the same":      {[][]played{one("f", `{"a":1,"b":[ 2 ]}`, "x"), one("f", `{ "b":[2], "a":1 }`, "y"), one("f", "\n{\"a\":1,\"b\":[2]}", "z")}, "f", "call"},
		"no arguments":          {[][]played{one("f", ``, "x"), one("f", `{}`, "y"), one("f", ` { } `, "z")}, "f", "call"},
		"broken the same way":   {[][]played{one("f", `{"a`, "x"), one("f", `{"a`, "y"), one("f", `{"a`, "z")}, "f", "call"},
		"the same result":       {[][]played{one("f", `1`, "no"), one("f", `2`, "no"), one("f", `3`, "no")}, "f", "result"},
		"twice only":            {[][]played{one("f", `1`, "x"), one("f", `{}`, "y"), one("f", `{}`, "z")}, "", ""},
		"with another between":  {[][]played{one("f", `{}`, "x"), one("g", `{}`, "y"), one("f", `{}`, "z"), one("f", `{}`, "w")}, "", ""},
		"another number":        {[][]played{one("f", `{"a":1}`, "x"), one("f", `{"a":1.0}`, "y"), one("f", `{"a":1}`, "z")}, "", ""},
		"the same of two tools": {[][]played{one("f", `1`, "no"), one("g", `1`, "no"), one("f", `1`, "no")}, "", ""},
		"an error and no error": {[][]played{{{"f", "1", "no", true}}, one("f", `2`, "no"), one("f", `3`, "no")}, "", ""},
		"the same error":        {[][]played{{{"f", "1", "no", true}}, {{"f", "2", "no", true}}, {{"f", "3", "no", true}}}, "f", "result"},
		"among calls in parallel": {[][]played{
			{{"g", "1", "a", false}, {"f", "{}", "x", false}}, {{"f", "{}", "y", false}, {"g", "2", "b", false}}, {{"f", "7", "z", false}, {"f", "{}", "w", false}}}, "f", "call"},
		"then something else": {[][]played{one("f", `{}`, "x"), one("f", `{}`, "y"), one("f", `{}`, "z"), one("f", `{"b":1}`, "w")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkProgress(loop(c.rounds...))
			if c.tool == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, CodeNoProgress, CodeOf(err))
			require.Equal(t, map[string]string{"tool": c.tool, "repeated": c.kind}, err.(*Error).Meta)
		})
	}
}

func TestAnAnswerThatIsSentAgainSinceItsReplyFailedIsNoRound(t *testing.T) {
	path, answer := loop(one("f", "1", "no"), one("f", "2", "no"))
	require.NoError(t, checkProgress(failed(below(path, answer)), answer))
	path, answer = loop(one("f", "1", "no"), one("f", "2", "no"), one("f", "3", "no"))
	require.Error(t, checkProgress(failed(below(path, answer)), answer))
	require.NoError(t, checkProgress(path, []Block{Text{Text: "stop that"}}), "a plain message answers nothing")
}

func TestAMessageThatAnswersNoCallIsProgress(t *testing.T) {
	same := one("f", "{}", "no")
	path, answer := loop(same, same, same)
	require.Error(t, checkProgress(path, answer))
	message := []Block{Text{Text: "stop searching"}}
	require.NoError(t, checkProgress(path, message))
	require.Error(t, checkProgress(path, append(message, answer...)), "a word along with the results is none")

	said := below(path, message)
	after, answer := loop(same, same)
	require.NoError(t, checkProgress(append(after[:len(after)-1:len(after)-1], said...), answer), "two rounds since the message")
	after, answer = loop(same, same, same)
	require.Error(t, checkProgress(append(after[:len(after)-1:len(after)-1], said...), answer), "three since")

	path, answer = loop(same, same)
	said = failed(below(path, message))
	require.NoError(t, checkProgress(said, answer))
}

func TestAnEndlessNameOfAToolIsCutInTheError(t *testing.T) {
	name := strings.Repeat("é", 50)
	path, answer := loop(one(name, "", "1"), one(name, "", "2"), one(name, "", "3"))
	require.Equal(t, strings.Repeat("é", 32), checkProgress(path, answer).(*Error).Meta["tool"])
}

// anyJSON is a value of objects, lists, texts and numbers.
func anyJSON(depth int) *rapid.Generator[any] {
	scalar := rapid.OneOf(rapid.Map(rapid.IntRange(0, 3), func(n int) any { return n }), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Just[any](nil))
	if depth == 0 {
		return scalar
	}
	return rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(anyJSON(depth-1), 0, 3), func(v []any) any { return v }),
		rapid.Map(rapid.MapOfN(rapid.StringN(0, 3, -1), anyJSON(depth-1), 0, 3), func(v map[string]any) any { return v }))
}

func TestWritingJSONOtherwiseIsTheSameCall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := anyJSON(3).Draw(t, "value")
		plain, err := json.Marshal(value)
		require.NoError(t, err)
		indented, err := json.MarshalIndent(value, "\t", "  ")
		require.NoError(t, err)
		require.Equal(t, canonicalJSON(string(plain)), canonicalJSON(string(indented)))
		require.Equal(t, canonicalJSON(string(plain)), canonicalJSON(string(canonicalJSON(string(plain)))), "canonical once is canonical")
		other := anyJSON(3).Draw(t, "other")
		encoded, err := json.Marshal(other)
		require.NoError(t, err)
		require.Equal(t, string(plain) == string(encoded), string(canonicalJSON(string(plain))) == string(canonicalJSON(string(encoded))))
	})
}

func TestALoopIsStoppedExactlyWhenItsLastThreeRoundsRepeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rounds := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) played {
			return played{rapid.SampledFrom([]string{"f", "g"}).Draw(t, "name"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "input"),
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "result"), rapid.Bool().Draw(t, "failed")}
		}), 1, 3), 1, 5).Draw(t, "rounds")
		want := false
		if n := len(rounds); n >= 3 {
			for _, c := range rounds[n-1] {
				calls, outcomes := 0, 0
				for _, r := range rounds[n-3:] {
					sameCall, sameResult := false, false
					for _, d := range r {
						sameCall = sameCall || d.name == c.name && d.input == c.input
						sameResult = sameResult || d.name == c.name && d.result == c.result && d.failed == c.failed
					}
					if sameCall {
						calls++
					}
					if sameResult {
						outcomes++
					}
				}
				want = want || calls == 3 || outcomes == 3
			}
		}
		require.Equal(t, want, checkProgress(loop(rounds...)) != nil)
	})
}
