package arrays_test

import (
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
