package turns_test

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

const scalingDoc = "../docs/scaling.md"

func TestTheDocsSayWhichShardsEachStatementTouches(t *testing.T) {
	raw, err := os.ReadFile(scalingDoc)
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([A-Z]\\w+)` \\| (.+) \\| (yes|no) \\| .+ \\|$").FindAllStringSubmatch(string(raw), -1)
	said := map[string]bool{}
	for _, row := range rows {
		require.Regexp(t, `^(one|item|batch|all|reference|server)\b`, row[2], row[1])
		require.False(t, said[row[1]], "%s is said twice", row[1])
		said[row[1]] = true
	}
	store := reflect.TypeFor[turns.Store]()
	for i := range store.NumMethod() {
		name := store.Method(i).Name
		require.True(t, said[name], "%s has no row in the table of statements", name)
		delete(said, name)
	}
	require.Empty(t, said, "rows of methods that the port has not")
}
