package archtest

import (
	"path"
	"slices"
	"strings"
)

// arrow says what packages may import. The first arrow whose From matches a package holds for it.
//
// Patterns name a package ("./turns"), or with "/..." a package and all below it.
type arrow struct {
	From string
	To   []string // packages of ours
	Only []string // all that may be imported besides ours and the standard library; nil leaves it open
	Why  string
}

// adapterTo is what an adapter of a provider may see: the domain, the router's words, and help with the wire.
var adapterTo = []string{"./turns", "./llm", "./llm/sse", "./llm/wire", "./internal/instrument"}

// arrows is the map of the house.
var arrows = []arrow{
	{From: "./proto/...", Why: "the wire is made from .proto files and knows nothing of the house"},
	{From: "./migrations/...", Why: "released migrations must not change when code does"},
	{
		From: "./turns",
		To:   []string{"./internal/instrument"},
		Only: []string{
			"github.com/google/uuid", "go.opentelemetry.io/otel", "go.opentelemetry.io/otel/attribute",
			"go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/trace",
		},
		Why: "the domain owns its ports and knows no database, no wire and no vendor",
	},
	{From: "./turns/storetest/...", To: []string{"./turns/...", "./internal/..."}, Why: "the suite knows stores by their port"},
	{From: "./turns/access/accesstest/...", To: []string{"./turns", "./turns/access"}, Why: "the suite knows where keys are kept by the port"},
	{From: "./turns/access/...", Only: []string{"github.com/google/uuid"}, Why: "who may call is known without what serves turns"},
	{From: "./turns/archive/...", To: []string{"./turns"}, Why: "an archive knows databases by their port, and is read without what serves turns"},
	{From: "./turns/group/...", Why: "who shares a statement is a matter of turns, whatever is written"},
	{From: "./turns/limiter/...", To: []string{"./turns"}, Only: []string{"github.com/hashicorp/golang-lru/v2", "golang.org/x/time/rate"}, Why: "a limit is memory and arithmetic"},
	{From: "./turns/quota/...", To: []string{"./turns"}, Why: "what is charged is decided without a database, so that all charge alike"},
	{From: "./turns/spool/...", To: []string{"./turns"}, Why: "the spool keeps files, and leaves to the domain what becomes of them"},
	{From: "./turns/live/bustest/...", To: []string{"./turns", "./turns/live"}, Why: "the suite knows buses by their port"},
	{From: "./turns/live/...", To: []string{"./turns", "./turns/live/...", "./internal/instrument"}, Why: "the live log serves the domain alone"},
	{From: "./turns/postgres/...", To: []string{"./turns", "./turns/access", "./turns/group", "./turns/live", "./turns/quota", "./turns/postgres/..."}, Why: "a store knows the domain alone and the port of the bus, not its sister, the server or a model"},
	{From: "./turns/nats/...", To: []string{"./turns", "./turns/live"}, Why: "a bus knows its port alone"},
	{From: "./turns/sqlite/...", To: []string{"./turns", "./turns/access", "./turns/group", "./turns/quota", "./turns/sqlite/..."}, Why: "a store knows the domain alone, not its sister, the server or a model"},
	{From: "./llm/scripted/...", Why: "the scripted provider declares the wire a second time, so that a mistake in ours shows"},
	{From: "./llm/llmtest/...", To: []string{"./turns", "./llm/...", "./internal/..."}, Why: "the suite knows generators by their port"},
	{From: "./llm/anthropic/...", To: append([]string{"./llm/anthropic/..."}, adapterTo...), Why: "an adapter knows neither another adapter nor the scripted provider"},
	{From: "./llm/gemini/...", To: append([]string{"./llm/gemini/..."}, adapterTo...), Why: "an adapter knows neither another adapter nor the scripted provider"},
	{From: "./llm/openai/...", To: append([]string{"./llm/openai/..."}, adapterTo...), Why: "an adapter knows neither another adapter nor the scripted provider"},
	{From: "./llm/probe/...", To: []string{"./turns", "./llm"}, Why: "a probe asks endpoints through the router, as the domain does"},
	{From: "./llm/...", To: []string{"./turns", "./llm/sse", "./llm/wire", "./internal/instrument"}, Why: "the router gets its adapters from the command and does not name them"},
	{From: "./server/auth/oidc/oidctest/...", Why: "an issuer of tokens is somebody else's, and knows nothing of the house"},
	{From: "./server/servertest/...", To: []string{"./..."}, Why: "a whole server is put together here"},
	{From: "./server/...", To: []string{"./turns", "./turns/access", "./turns/live/...", "./proto/...", "./server/...", "./internal/instrument"}, Why: "the server talks to the domain, and never to a store or a model"},
	{From: "./client/...", To: []string{"./proto/...", "./client/..."}, Why: "a client knows the wire alone, as one in another language does"},
	{From: "./examples/...", To: []string{"./proto/...", "./client/...", "./examples/..."}, Why: "an example knows what a program elsewhere can know"},
	{
		From: "./internal/instrument/...",
		Only: []string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/metric"},
		Why:  "what is measured is named in one place, which knows nothing of what measures",
	},
	{From: "./internal/telemetry/...", To: []string{"./turns", "./internal/instrument"}, Why: "telemetry wraps the domain's ports"},
	{From: "./internal/pgtest/...", To: []string{"./migrations/..."}, Why: "a throw-away Postgres knows the schema, and nothing of what is stored in it"},
	{From: "./internal/certs/...", Why: "certificates are files, and know nothing of the house"},
	{From: "./internal/tenanttest/...", To: []string{"./proto/..."}, Why: "strangers know the wire alone, so that every server can be asked by them"},
	{From: "./internal/casetest/...", To: []string{"./..."}, Why: "cases are played through the whole house"},
	{From: "./web/...", Only: []string{}, Why: "the console is files: it knows turnd by its wire, in another language"},
	{From: "./deploy/...", To: []string{"./internal/pgtest", "./turns"}, Why: "its tests hold files to the schema"},
	{From: "./internal/archtest/...", Why: "the rules are not part of what they rule"},
	{From: "./internal/tools/...", To: []string{"./internal/tools/..."}, Why: "tools work on files, not on the house"},
	{From: "./bench/history/arrays/...", Only: []string{}, Why: "the validator declares each wire once more, so that a mistake in ours shows"},
	{From: "./bench/...", To: []string{"./..."}, Why: "checks may look at everything"},
	{From: "./cmd/...", To: []string{"./..."}, Why: "commands put the house together"},
}

// arrowOf finds the arrow that holds for a package.
func arrowOf(pkg string) (arrow, bool) {
	for _, a := range arrows {
		if matches(a.From, pkg) {
			return a, true
		}
	}
	return arrow{}, false
}

// forbids tells whether the arrow rules out an import.
func (a arrow) forbids(imported string) bool {
	if isOurs(imported) {
		return !matchesAny(a.To, imported)
	}
	return a.Only != nil && !isStandard(imported) && !slices.Contains(a.Only, imported)
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

func matches(pattern, pkg string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return pkg == base || below && strings.HasPrefix(pkg, base+"/")
}

func isOurs(pkg string) bool { return pkg == "." || strings.HasPrefix(pkg, "./") }

// isStandard tells packages of the standard library by the lack of a dot in their first element.
func isStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return !isOurs(pkg) && !strings.Contains(first, ".")
}

// isSupport tells packages that exist for tests and checks: their name ends in test, or they lie in bench.
func isSupport(pkg string) bool {
	if matches("./bench/...", pkg) {
		return true
	}
	return slices.ContainsFunc(strings.Split(pkg, "/"), func(element string) bool {
		return strings.HasSuffix(path.Base(element), "test")
	})
}
