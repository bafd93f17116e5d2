package archtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTreeKeepsTheRulesOfTheHouse(t *testing.T) {
	tree, err := Load(t.Context(), "../..")
	require.NoError(t, err)
	require.NotEmpty(t, tree.Packages)
	require.NotEmpty(t, tree.Files)
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, breach := range rule.Breaches(tree) {
				t.Errorf("%s\n\trule: %s", breach, rule.Says)
			}
		})
	}
}

func TestTheTreeIsReadAsItLies(t *testing.T) {
	tree, err := Load(t.Context(), "../..")
	require.NoError(t, err)
	packages := map[string]Package{}
	for _, p := range tree.Packages {
		packages[p.Path] = p
	}
	wire := packages["./proto/turns/v1"]
	require.Contains(t, wire.Imports, "google.golang.org/grpc")
	require.Contains(t, wire.Doc, "Package turnsv1 ")
	this := packages["./internal/archtest"]
	require.Contains(t, this.TestImports, "github.com/stretchr/testify/require")
	require.NotContains(t, this.Imports, "github.com/stretchr/testify/require")

	files := map[string]File{}
	for _, f := range tree.Files {
		files[f.Path] = f
	}
	require.NotContains(t, files, "proto/turns/v1/turn.pb.go", "generated files are left out")
	require.Contains(t, files, "proto/turns/v1/turn.proto")
	require.Contains(t, files["internal/archtest/arrows.go"].Funcs, Func{Name: "matchesAny", Lines: 3})
	require.Contains(t, files["internal/archtest/rules.go"].Comments, "as words in capitals")
}
