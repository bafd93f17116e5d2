package archtest

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	maxFileLines = 600 // a file that is longer holds more than one concept
	maxFuncLines = 100 // a function that is longer is not read but skimmed

	medianFuncLines = 10 // half of the functions outside tests are at most this long
	p90FuncLines    = 40 // and nine of ten are at most this long
)

// Rule is one rule of the house.
type Rule struct {
	Name string
	Says string // what holds, and so what to do about a breach
	// Breaches lists where the rule is broken; empty if it holds.
	Breaches func(*Tree) []string
}

// Rules is the table of all rules.
func Rules() []Rule {
	return []Rule{
		{"arrows", "packages import along the arrows of arrows.go only", againstArrows},
		{"every package has an arrow", "a new package needs a row in arrows.go that says what it may import", withoutArrow},
		{"commands are not imported", "nothing imports a command; move what is shared into a package", importingCommands},
		{"adapters never link the scripted provider", "vendor adapters and the scripted provider share no code, not even by way of others", linkingScripted},
		{"test support stays in tests", "packages named ..test are imported by _test files and by other test support only", importingSupport},
		{"no test library in production", "testify, go-cmp, rapid and goleak are linked by tests and test support only", linkingTestLibraries},
		{"package comments", "each package says what it means, in a comment that begins with \"Package name\"", withoutComment},
		{"file length", fmt.Sprintf("no file is longer than %d lines; split it by concept", maxFileLines), longFiles},
		{"function length", fmt.Sprintf("no function is longer than %d lines; split it", maxFuncLines), longFuncs},
		{
			"function sizes",
			fmt.Sprintf("outside tests the median of function lengths is at most %d lines, the 90th percentile %d", medianFuncLines, p90FuncLines),
			funcSizes,
		},
		{"names", "packages and files are named after what they hold, never util, common or helpers", vagueNames},
		{"no open ends", "what is to be done is done or filed, not left in a comment", openEnds},
		{"no init", "nothing happens by being imported; construct it in the command", initFuncs},
		{"no vendor SDK", "providers are spoken to over net/http; no SDK of a vendor is in go.mod", vendorSDKs},
	}
}

func againstArrows(t *Tree) (breaches []string) {
	for _, p := range t.Packages {
		a, ok := arrowOf(p.Path)
		if !ok {
			continue
		}
		for _, imported := range p.Imports {
			if a.forbids(imported) {
				breaches = append(breaches, fmt.Sprintf("%s imports %s: %s", p.Path, imported, a.Why))
			}
		}
	}
	return breaches
}

func withoutArrow(t *Tree) (breaches []string) {
	for _, p := range t.Packages {
		if _, ok := arrowOf(p.Path); !ok {
			breaches = append(breaches, p.Path)
		}
	}
	return breaches
}

func importingCommands(t *Tree) (breaches []string) {
	for _, p := range t.Packages {
		for _, imported := range slices.Concat(p.Imports, p.TestImports) {
			// The test of a command may import its own package, when it is an external test.
			if matches("./cmd/...", imported) && !matches("./cmd/...", p.Path) {
				breaches = append(breaches, p.Path+" imports "+imported)
			}
		}
	}
	return breaches
}

func linkingScripted(t *Tree) (breaches []string) {
	for _, p := range t.Packages {
		if !matchesAny([]string{"./llm/anthropic/...", "./llm/openai/..."}, p.Path) {
			continue
		}
		for _, dep := range p.Deps {
			if matches("./llm/scripted/...", dep) {
				breaches = append(breaches, p.Path+" links "+dep)
			}
		}
	}
	return breaches
}

func importingSupport(t *Tree) (breaches []string) {
	for _, p := range t.Packages {
		if isSupport(p.Path) {
			continue
		}
		for _, imported := range p.Imports {
			if isOurs(imported) && isSupport(imported) {
				breaches = append(breaches, p.Path+" imports "+imported)
			}
		}
	}
	return breaches
}

func linkingTestLibraries(t *Tree) (breaches []string) {
	libraries := []string{"github.com/stretchr/testify", "github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak"}
	for _, p := range t.Packages {
		if isSupport(p.Path) {
			continue
		}
		for _, library := range libraries {
			if slices.ContainsFunc(p.Deps, func(dep string) bool { return matches(library+"/...", dep) }) {
				breaches = append(breaches, p.Path+" links "+library)
			}
		}
	}
	return breaches
}

func withoutComment(t *Tree) (breaches []string) {
	for _, p := range t.Packages {
		switch {
		case p.TestOnly:
		case p.Name == "main" && p.Doc != "":
			// Commands and programs begin with their own name, as godoc shows it.
		case !strings.HasPrefix(p.Doc, "Package "+p.Name+" "):
			breaches = append(breaches, p.Path)
		}
	}
	return breaches
}

func longFiles(t *Tree) (breaches []string) {
	for _, f := range t.Files {
		if strings.HasSuffix(f.Path, ".go") && f.Lines > maxFileLines {
			breaches = append(breaches, fmt.Sprintf("%s has %d lines", f.Path, f.Lines))
		}
	}
	return breaches
}

func longFuncs(t *Tree) (breaches []string) {
	for _, f := range t.Files {
		for _, fn := range f.Funcs {
			if fn.Lines > maxFuncLines {
				breaches = append(breaches, fmt.Sprintf("%s: %s has %d lines", f.Path, fn.Name, fn.Lines))
			}
		}
	}
	return breaches
}

func funcSizes(t *Tree) (breaches []string) {
	var lines []int
	for _, f := range t.Files {
		if strings.HasSuffix(f.Path, "_test.go") {
			continue
		}
		for _, fn := range f.Funcs {
			lines = append(lines, fn.Lines)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	slices.Sort(lines)
	if median := lines[len(lines)/2]; median > medianFuncLines {
		breaches = append(breaches, fmt.Sprintf("median is %d lines", median))
	}
	if p90 := lines[len(lines)*9/10]; p90 > p90FuncLines {
		breaches = append(breaches, fmt.Sprintf("90th percentile is %d lines", p90))
	}
	return breaches
}

// vague matches names that say nothing about what is inside.
var vague = regexp.MustCompile(`^(utils?|common|helpers?|misc)(_test)?$`)

func vagueNames(t *Tree) (breaches []string) {
	for _, f := range t.Files {
		stem, ok := strings.CutSuffix(path.Base(f.Path), ".go")
		if ok && vague.MatchString(stem) {
			breaches = append(breaches, f.Path)
		}
	}
	for _, p := range t.Packages {
		if vague.MatchString(p.Name) || vague.MatchString(path.Base(p.Path)) {
			breaches = append(breaches, p.Path)
		}
	}
	return breaches
}

// openEnd matches the marks that people leave for later, as words in capitals.
var openEnd = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)

func openEnds(t *Tree) (breaches []string) {
	for _, f := range t.Files {
		if mark := openEnd.FindString(f.Comments); mark != "" {
			breaches = append(breaches, f.Path+" has a "+mark)
		}
	}
	return breaches
}

func initFuncs(t *Tree) (breaches []string) {
	for _, f := range t.Files {
		if slices.ContainsFunc(f.Funcs, func(fn Func) bool { return fn.Name == "init" }) {
			breaches = append(breaches, f.Path)
		}
	}
	return breaches
}

func vendorSDKs(t *Tree) (breaches []string) {
	for _, sdk := range []string{
		"github.com/openai/openai-go", "github.com/anthropics/anthropic-sdk-go", "google.golang.org/genai",
		"github.com/sashabaranov/go-openai",
	} {
		if strings.Contains(t.GoMod, sdk) {
			breaches = append(breaches, sdk)
		}
	}
	return breaches
}
