package archtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// importing is a made-up package with a comment, so that only its imports can break a rule.
func importing(path string, imports ...string) Package {
	return Package{Path: path, Name: "p", Doc: "Package p is made up.", Imports: imports, Deps: imports}
}

// breaches runs all rules over a tree and lists what they find, by rule.
func breaches(tree *Tree) map[string][]string {
	found := map[string][]string{}
	for _, rule := range Rules() {
		if broken := rule.Breaches(tree); len(broken) > 0 {
			found[rule.Name] = broken
		}
	}
	return found
}

func TestAnImportAgainstAnArrowIsCaught(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"./proto/turns/v1", "./turns"},
		{"./migrations", "./turns"},
		{"./migrations/postgres", "./migrations"},
		{"./turns", "./turns/live"},
		{"./turns", "./proto/turns/v1"},
		{"./turns", "google.golang.org/grpc/codes"},
		{"./turns", "github.com/jackc/pgx/v5"},
		{"./turns", "go.opentelemetry.io/otel/sdk/trace"},
		{"./turns/live", "./turns/sqlite"},
		{"./turns/postgres", "./turns/sqlite"},
		{"./turns/postgres", "./server"},
		{"./turns/sqlite", "./turns/postgres"},
		{"./turns/sqlite", "./llm"},
		{"./turns/sqlite", "./proto/turns/v1"},
		{"./llm", "./llm/anthropic"},
		{"./llm", "./server"},
		{"./llm/sse", "./llm/openai"},
		{"./llm/anthropic", "./llm/openai"},
		{"./llm/openai", "./llm/anthropic"},
		{"./llm/openai", "./llm/scripted"},
		{"./llm/scripted", "./turns"},
		{"./llm/scripted", "./llm/sse"},
		{"./server", "./turns/postgres"},
		{"./server", "./llm"},
		{"./client", "./turns"},
		{"./client", "./server"},
		{"./internal/telemetry", "./server"},
		{"./internal/pgtest", "./turns/postgres"},
		{"./internal/archtest", "./turns"},
		{"./internal/tools/testsummary", "./turns"},
		{"./bench/history/arrays", "./llm/wire"},
		{"./bench/history/arrays", "github.com/google/uuid"},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			found := breaches(&Tree{Packages: []Package{importing(c.from, c.to)}})
			require.Len(t, found["arrows"], 1)
			require.Contains(t, found["arrows"][0], c.from+" imports "+c.to+": ")
		})
	}
}

func TestAnImportAlongAnArrowIsFine(t *testing.T) {
	for _, p := range []Package{
		importing("./proto/turns/v1", "google.golang.org/grpc"),
		importing("./migrations", "github.com/pressly/goose/v3"),
		importing("./turns", "context", "crypto/sha256", "github.com/google/uuid", "go.opentelemetry.io/otel/metric"),
		importing("./turns/live", "./turns"),
		importing("./turns/postgres", "./turns", "github.com/jackc/pgx/v5"),
		importing("./turns/sqlite", "./turns", "modernc.org/sqlite"),
		importing("./turns/storetest", "./turns", "./internal/pgtest", "github.com/stretchr/testify/require"),
		importing("./llm", "./turns", "./llm/sse"),
		importing("./llm/anthropic", "./turns", "./llm/sse", "./llm/wire"),
		importing("./llm/scripted", "net/http"),
		importing("./server", "./turns", "./turns/live", "./proto/turns/v1"),
		importing("./server/servertest", "./server", "./turns/sqlite"),
		importing("./client", "./proto/turns/v1"),
		importing("./internal/telemetry", "./turns"),
		importing("./internal/pgtest", "./migrations"),
		importing("./bench/checks", "./internal/pgtest", "./client"),
		importing("./bench/history", "./bench/history/arrays", "./llm/anthropic", "./turns"),
		importing("./bench/history/arrays", "encoding/base64", "strings"),
		importing("./cmd/turnd", "./server", "./llm/scripted", "./turns/postgres"),
	} {
		require.Empty(t, breaches(&Tree{Packages: []Package{p}}), p.Path)
	}
}

// A breach of each other rule, planted in a tree that keeps the rest.
var planted = []struct {
	rule  string
	tree  Tree
	place string
}{
	{"every package has an arrow", Tree{Packages: []Package{importing("./attic")}}, "./attic"},
	{"every package has an arrow", Tree{Packages: []Package{importing(".")}}, "."},
	{"commands are not imported", Tree{Packages: []Package{importing("./bench/checks", "./cmd/turnd")}}, "./bench/checks imports ./cmd/turnd"},
	{
		"commands are not imported",
		Tree{Packages: []Package{{Path: "./server", Name: "server", TestOnly: true, TestImports: []string{"./cmd/turnd"}}}},
		"./server imports ./cmd/turnd",
	},
	{
		"adapters never link the scripted provider",
		Tree{Packages: []Package{{Path: "./llm/openai", Name: "openai", TestOnly: true, Deps: []string{"./llm/sse", "./llm/scripted"}}}},
		"./llm/openai links ./llm/scripted",
	},
	{"test support stays in tests", Tree{Packages: []Package{importing("./cmd/turnd", "./turns/storetest")}}, "./cmd/turnd imports ./turns/storetest"},
	{"test support stays in tests", Tree{Packages: []Package{importing("./cmd/turnd", "./internal/pgtest")}}, "./cmd/turnd imports ./internal/pgtest"},
	{
		"no test library in production",
		Tree{Packages: []Package{importing("./server", "github.com/stretchr/testify/require")}},
		"./server links github.com/stretchr/testify",
	},
	{"package comments", Tree{Packages: []Package{{Path: "./server", Name: "server"}}}, "./server"},
	{"package comments", Tree{Packages: []Package{{Path: "./server", Name: "server", Doc: "The server."}}}, "./server"},
	{"package comments", Tree{Packages: []Package{{Path: "./cmd/turnd", Name: "main"}}}, "./cmd/turnd"},
	{"file length", Tree{Files: []File{{Path: "turns/service.go", Lines: 601}}}, "turns/service.go has 601 lines"},
	{
		"function length",
		Tree{Files: []File{{Path: "turns/claim_test.go", Funcs: []Func{{"TestClaim", 101}}}}},
		"turns/claim_test.go: TestClaim has 101 lines",
	},
	{
		"function sizes",
		Tree{Files: []File{{Path: "turns/state.go", Funcs: []Func{{"a", 3}, {"b", 11}, {"c", 12}}}}},
		"median is 11 lines",
	},
	{
		"function sizes",
		Tree{Files: []File{{Path: "turns/state.go", Funcs: []Func{{"a", 3}, {"b", 3}, {"c", 41}}}}},
		"90th percentile is 41 lines",
	},
	{"names", Tree{Files: []File{{Path: "turns/util.go"}}}, "turns/util.go"},
	{"names", Tree{Files: []File{{Path: "server/helpers_test.go"}}}, "server/helpers_test.go"},
	{"names", Tree{Packages: []Package{importing("./internal/tools/common")}}, "./internal/tools/common"},
	{"no open ends", Tree{Files: []File{{Path: "turns/turn.go", Comments: "// FIXME later\n"}}}, "turns/turn.go has a FIXME"},
	{"no init", Tree{Files: []File{{Path: "llm/router.go", Funcs: []Func{{"init", 3}}}}}, "llm/router.go"},
	{"no vendor SDK", Tree{GoMod: "require github.com/openai/openai-go/v3 v3.1.0"}, "github.com/openai/openai-go"},
}

func TestABreachOfAnyRuleIsCaughtByThatRuleAlone(t *testing.T) {
	tried := map[string]bool{"arrows": true} // has a test of its own
	for _, c := range planted {
		t.Run(c.rule+" "+c.place, func(t *testing.T) {
			require.Equal(t, map[string][]string{c.rule: {c.place}}, breaches(&c.tree))
		})
		tried[c.rule] = true
	}
	for _, rule := range Rules() {
		require.True(t, tried[rule.Name], "no breach of %q is planted", rule.Name)
		require.NotEmpty(t, rule.Says)
	}
}

func TestWhatIsJustWithinTheRulesPasses(t *testing.T) {
	require.Empty(t, breaches(&Tree{
		Packages: []Package{
			{Path: "./cmd/turnd", Name: "main", Doc: "Turnd is a server."},
			{Path: "./turns/storetest", Name: "storetest", Doc: "Package storetest is a suite.", Deps: []string{"github.com/stretchr/testify/require"}},
			{Path: "./server", Name: "server", TestOnly: true, TestImports: []string{"./server/servertest", "pgregory.net/rapid"}},
		},
		Files: []File{
			{Path: "turns/service.go", Lines: 600, Funcs: []Func{{"Submit", 40}, {"Follow", 10}, {"Cancel", 1}}, Comments: "// Todos are no marks.\n"},
			{Path: "turns/service_test.go", Lines: 600, Funcs: []Func{{"TestSubmit", 100}}},
			{Path: "proto/turns/v1/turn.proto", Lines: 900},
		},
	}))
}

func TestPatternsMatchWholeElements(t *testing.T) {
	require.True(t, matches("./turns/...", "./turns"))
	require.True(t, matches("./turns/...", "./turns/live"))
	require.False(t, matches("./turns/...", "./turnstile"))
	require.False(t, matches("./turns", "./turns/live"))
	require.True(t, matches("./...", "./cmd/turnd"))
}
