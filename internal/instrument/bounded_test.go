package instrument_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/internal/instrument"
)

func TestAPlainNameIsItsOwnValue(t *testing.T) {
	b := instrument.NewBounded(3)
	for _, name := range []string{"gpt-5", "", "Qwen/Qwen3-8B", "modèle"} {
		if name != "modèle" {
			require.Equal(t, name, b.Value(name))
			continue
		}
		require.Equal(t, instrument.Other, b.Value(name), "past the bound")
	}
	require.Equal(t, "gpt-5", b.Value("gpt-5"), "what is known stays known")
}

func TestNoNameOfAModelsFileBreaksALabel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := instrument.NewBounded(8)
		for _, name := range rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.StringN(60, 4000, -1),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })), 1, 20).Draw(t, "names") {
			value := b.Value(name)
			if !utf8.ValidString(value) || len(value) > 64 || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				t.Fatalf("%q became %q", name, value)
			}
			if b.Value(name) != value {
				t.Fatalf("%q is not always %q", name, value)
			}
		}
	})
}

func TestHoweverManyNamesThereAreTheyHaveFewValues(t *testing.T) {
	b := instrument.NewBounded(10)
	var all sync.WaitGroup
	var mu sync.Mutex
	values := map[string]bool{}
	for g := range 8 {
		all.Go(func() {
			for i := range 500 {
				value := b.Value(fmt.Sprintf("model-%d-%d", g, i))
				mu.Lock()
				values[value] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	require.Len(t, values, 11)
	require.True(t, values[instrument.Other])
}
