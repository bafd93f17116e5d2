package arrays_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/bench/history/arrays"
)

func TestEachPlantedErrorIsCaught(t *testing.T) {
	for _, p := range arrays.Plants() {
		t.Run(string(p.Wire)+"/"+p.Name, func(t *testing.T) { require.Empty(t, p.Missed()) })
	}
}

func TestEachWireHasItsPlantedErrors(t *testing.T) {
	own := map[arrays.Wire]int{}
	names := map[string]bool{}
	for _, p := range arrays.Plants() {
		own[p.Wire]++
		require.False(t, names[string(p.Wire)+p.Name], "%s: %s is planted twice", p.Wire, p.Name)
		names[string(p.Wire)+p.Name] = true
	}
	for _, wire := range arrays.Wires {
		require.GreaterOrEqual(t, own[wire], 24, wire)
		require.Empty(t, arrays.Validate(wire, []byte(arrays.Valid(wire))), wire)
	}
}

// A validator without a rule would let its plants pass, so each rule has one. Two have none: a body of their size would
// take longer to read than all others together.
func TestEachKindOfViolationIsPlanted(t *testing.T) {
	source, err := os.ReadFile("violation.go")
	require.NoError(t, err)
	planted := map[string]bool{string(arrays.TooMany): true, string(arrays.JSONDepth): true}
	for _, p := range arrays.Plants() {
		planted[string(p.Want)] = true
	}
	kinds := regexp.MustCompile(`Kind = "([a-z_0-9]+)"`).FindAllStringSubmatch(string(source), -1)
	require.NotEmpty(t, kinds)
	kinds = append(kinds, regexp.MustCompile(`(?m)^\t[A-Za-z]+ +Kind = "([a-z_0-9]+)"`).FindAllStringSubmatch(string(source), -1)...)
	for _, kind := range kinds {
		require.True(t, planted[kind[1]], kind[1])
	}
}

func TestABodyThatIsTooDeepIsRefused(t *testing.T) {
	body := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	require.Equal(t, []arrays.Kind{arrays.JSONDepth}, arrays.Kinds(arrays.Validate(arrays.OpenAIChat, []byte(body))))
}

func TestAReportQuotesNothingOfABody(t *testing.T) {
	for _, v := range arrays.Validate(arrays.OpenAIChat, []byte(`{"my secret words":1,"model":"m","messages":[]}`)) {
		require.NotContains(t, v.String(), "secret")
	}
}

func FuzzValidateNeverPanics(f *testing.F) {
	for i, wire := range arrays.Wires {
		f.Add(uint8(i), []byte(arrays.Valid(wire)))
	}
	for _, body := range []string{"", "{", "[]", "null", `{"model":"m","messages":[null,1,"x",[],{}]}`, `{"contents":[{"parts":[{}]}]}`, `"\ud800"`} {
		f.Add(uint8(0), []byte(body))
	}
	f.Fuzz(func(t *testing.T, wire uint8, body []byte) {
		first := arrays.Validate(arrays.Wires[int(wire)%len(arrays.Wires)], body)
		require.Equal(t, first, arrays.Validate(arrays.Wires[int(wire)%len(arrays.Wires)], body))
		if len(first) == 0 {
			require.True(t, json.Valid(body), "what encoding/json refuses is valid here")
		}
	})
}
