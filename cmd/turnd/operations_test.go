package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// quoted is a log line, a metric or a flag in the first column of a table of the manual.
var quoted = regexp.MustCompile("(?m)^\\| `([^`{]+)")

func TestWhatTheManualOfOperationsQuotesIsSaidByTheProgram(t *testing.T) {
	manual, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	said := sources(t)
	found := quoted.FindAllStringSubmatch(string(manual), -1)
	require.Greater(t, len(found), 10)
	for _, q := range found {
		// A counter is named with dots in the code, and Prometheus adds the end, as it does the unit.
		metric := strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(q[1], "_total"), "_seconds"), "_", ".")
		require.True(t, strings.Contains(said, q[1]) || strings.HasPrefix(q[1], "turnd_") && metricIsMade(said, metric), q[1])
	}
	for _, name := range regexp.MustCompile(`TURND_[A-Z_]+`).FindAllString(string(manual), -1) {
		require.Contains(t, said, `env:"`+name+`"`)
	}
	for _, name := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(string(manual), -1) {
		variable := `env:"TURND_` + strings.ToUpper(strings.ReplaceAll(name[1], "-", "_")) + `"`
		require.True(t, strings.Contains(said, variable) || strings.Contains(said, `name:"`+name[1]+`"`) || regexp.MustCompile(`\n\t`+field(name[1])+` +[a-z*]`).MatchString(said), name[1])
	}
}

// field is the field of a command that a flag without a variable fills.
func field(flag string) (name string) {
	for word := range strings.SplitSeq(flag, "-") {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}

// metricIsMade compares without the dots: turnd_in_flight is turnd.in_flight in the code.
func metricIsMade(said, metric string) bool {
	flat := strings.NewReplacer(".", "", "_", "")
	return strings.Contains(flat.Replace(said), `"`+flat.Replace(metric)+`"`)
}

// sources is all code of the program.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, root := range []string{".", "../../turns", "../../server", "../../internal/instrument"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	}
	return all.String()
}
