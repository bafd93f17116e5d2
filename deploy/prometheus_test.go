package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	rulesFolder     = "prometheus/rules"
	ruleTestsFolder = "prometheus/tests"
	runbookFile     = "../docs/runbook.md"
	runbookURL      = "https://github.com/turnd/turnd/blob/main/docs/runbook.md#"
)

// rule is one rule of Prometheus, and its file.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type ruleFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

// ruleTest is one test of promtool, as far as it says what is expected.
type ruleTest struct {
	Name   string `yaml:"name"`
	Alerts []struct {
		Alert    string           `yaml:"alertname"`
		Expected []map[string]any `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
	Values []struct {
		Expr     string           `yaml:"expr"`
		Expected []map[string]any `yaml:"exp_samples"`
	} `yaml:"promql_expr_test"`
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	for _, file := range yamlFiles(t, rulesFolder) {
		var f ruleFile
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &f), file)
		for _, g := range f.Groups {
			all = append(all, g.Rules...)
		}
	}
	require.NotEmpty(t, all)
	return all
}

func yamlFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func ruleTests(t *testing.T) (all []ruleTest) {
	t.Helper()
	for _, file := range yamlFiles(t, ruleTestsFolder) {
		var f struct {
			Tests []ruleTest `yaml:"tests"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &f), file)
		all = append(all, f.Tests...)
	}
	return all
}

// promtool runs the tool of Prometheus in a folder. In CI it must be there.
func promtool(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatal("promtool is missing, and without it no rule is tested: run make deps, or install prometheus")
	} else if err != nil {
		t.Skip("promtool is missing, so that no rule is tested here: install prometheus")
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPrometheusTakesTheFilesForIt(t *testing.T) {
	out, err := promtool(t, "prometheus", "check", "config", "prometheus.yml")
	require.NoError(t, err, out)
	require.Contains(t, out, "2 rule files found")
}

func TestTheRulesPassTheirTests(t *testing.T) {
	tests := []string{"test", "rules"}
	for _, file := range yamlFiles(t, ruleTestsFolder) {
		tests = append(tests, filepath.Join("tests", filepath.Base(file)))
	}
	out, err := promtool(t, "prometheus", tests...)
	require.NoError(t, err, out)
}

func TestEachAlertHasATestInWhichItFiresAndOneInWhichItDoesNot(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range ruleTests(t) {
		for _, a := range test.Alerts {
			fires[a.Alert] = fires[a.Alert] || len(a.Expected) > 0
			silent[a.Alert] = silent[a.Alert] || len(a.Expected) == 0
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" {
			require.True(t, fires[r.Alert], "no test has %s fire", r.Alert)
			require.True(t, silent[r.Alert], "no test has %s not fire", r.Alert)
		}
	}
}

func TestEachRecordingRuleHasATestWithAValueAndAnotherOfRestOrOfOtherNumbers(t *testing.T) {
	tests := ruleTests(t)
	for _, r := range rules(t) {
		if r.Record == "" {
			continue
		}
		values := map[string]bool{}
		for _, test := range tests {
			for _, v := range test.Values {
				if !regexp.MustCompile(`(^|[^\w:])` + regexp.QuoteMeta(r.Record) + `($|[^\w:])`).MatchString(v.Expr) {
					continue
				}
				if len(v.Expected) == 0 {
					values["none"] = true
				}
				for _, e := range v.Expected {
					values[string(must(yaml.Marshal(e["value"])))] = true
				}
			}
		}
		want := 2
		if strings.HasPrefix(r.Record, "job:turnd_c") || strings.Contains(r.Record, "_seconds:p99") || strings.Contains(r.Record, "follow_lag") {
			want = 1 // a quantile of one distribution
		}
		require.GreaterOrEqual(t, len(values), want, "%s is expected to have %v", r.Record, values)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestEachRuleIsMissedByItsTests changes one rule after the other, and demands that its tests notice each.
func TestEachRuleIsMissedByItsTests(t *testing.T) {
	bound := regexp.MustCompile(`(>|>=|<|==) ([\d.]+)( |$)`)
	for _, r := range rules(t) {
		changes := map[string]string{"it says twice as much": "1 + 2 * (" + r.Expr + ")"}
		if r.Alert != "" {
			changes = map[string]string{
				"it never fires":  "(" + r.Expr + ") unless (" + r.Expr + ")",
				"it has no bound": bound.ReplaceAllString(strings.Replace(r.Expr, "> max by", ">= max by", 1), "> -1$3"),
			}
		}
		out, err := promtool(t, edited(t, r.Record+r.Alert, r.Expr), "test", "rules", "test.yml")
		require.NoError(t, err, "%s as it is: %s", r.Record+r.Alert, out)
		for name, expr := range changes {
			t.Run(r.Record+r.Alert+" "+name, func(t *testing.T) {
				out, err := promtool(t, edited(t, r.Record+r.Alert, expr), "test", "rules", "test.yml")
				require.Error(t, err, "the tests pass all the same")
				require.Contains(t, out, "FAILED")
			})
		}
	}
}

// edited writes one rule, with another expression, and the rules that it builds on, and the tests that name it.
func edited(t *testing.T, name, expr string) string {
	t.Helper()
	dir := t.TempDir()
	var kept []map[string]any
	for _, r := range rules(t) {
		switch {
		case r.Record+r.Alert == name:
			kept = append(kept, r.as(expr))
		case r.Record != "" && strings.Contains(expr, r.Record):
			kept = append([]map[string]any{r.as(r.Expr)}, kept...)
		}
	}
	require.NotEmpty(t, kept)
	var tests []map[string]any
	for _, file := range yamlFiles(t, ruleTestsFolder) {
		var f struct {
			Tests []map[string]any `yaml:"tests"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &f))
		for _, test := range f.Tests {
			for part, key := range map[string]string{"alert_rule_test": "alertname", "promql_expr_test": "expr"} {
				asked, _ := test[part].([]any)
				asked = slices.DeleteFunc(asked, func(a any) bool { return !strings.Contains(a.(map[string]any)[key].(string), name) })
				if len(asked) > 0 {
					test[part] = asked
					tests = append(tests, test)
				}
			}
		}
	}
	for file, content := range map[string]any{
		"rules.yml": map[string]any{"groups": []any{map[string]any{"name": "edited", "rules": kept}}},
		"test.yml":  map[string]any{"rule_files": []string{"rules.yml"}, "evaluation_interval": "1m", "tests": tests},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), must(yaml.Marshal(content)), 0o600))
	}
	return dir
}

// as is a rule as its file has it, with an expression.
func (r rule) as(expr string) map[string]any {
	all := map[string]any{"expr": expr}
	for name, value := range map[string]string{"record": r.Record, "alert": r.Alert, "for": r.For} {
		if value != "" {
			all[name] = value
		}
	}
	if r.Alert != "" {
		all["labels"], all["annotations"] = r.Labels, r.Annotations
	}
	return all
}

func TestPrometheusRefusesARuleWithAMistake(t *testing.T) {
	for name, expr := range map[string]string{
		"a bracket that is not closed": "sum(rate(turnd_sweeps_total[5m])",
		"an unknown function":          "rates(turnd_sweeps_total[5m])",
		"a rate of an instant":         "rate(turnd_sweeps_total)",
	} {
		t.Run(name, func(t *testing.T) {
			out, err := promtool(t, edited(t, "TurndSweepsRising", expr), "check", "rules", "rules.yml")
			require.Error(t, err, out)
		})
	}
}

func TestEachAlertSaysWhatToDo(t *testing.T) {
	runbook := read(t, runbookFile)
	entries := regexp.MustCompile(`(?m)^## (Turnd\w+)$`).FindAllStringSubmatch(runbook, -1)
	var titles, alerts []string
	for _, e := range entries {
		titles = append(titles, e[1])
	}
	for _, r := range rules(t) {
		if r.Alert == "" {
			require.Empty(t, r.Annotations)
			continue
		}
		alerts = append(alerts, r.Alert)
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["description"], r.Alert)
		require.Equal(t, runbookURL+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		_, entry, found := strings.Cut(runbook, "\n## "+r.Alert+"\n")
		require.True(t, found, "%s has no entry in %s", r.Alert, runbookFile)
		entry, _, _ = strings.Cut(entry, "\n## ")
		for _, part := range []string{"**Means.**", "**Look.**", "**Do.**", "**Don't.**"} {
			require.Contains(t, entry, part, "the entry of %s", r.Alert)
		}
	}
	slices.Sort(titles)
	slices.Sort(alerts)
	require.Equal(t, alerts, titles, "the runbook has entries of alerts that there are, and no others")
}

// What stands in for a value that is missing hides that it is: the alert never fires, and the panel says that all is well.
func TestNothingStandsInForAMissingValue(t *testing.T) {
	files := append(yamlFiles(t, rulesFolder), must(filepath.Glob("grafana/*.json"))...)
	for _, file := range files {
		require.NotRegexp(t, `vector\s*\(|\bor\b[^"\n]*\b0\b|absent`, expressions(t, file), file)
	}
}

// expressions are the lines of a file that hold PromQL.
func expressions(t *testing.T, file string) string {
	t.Helper()
	var all []string
	for _, m := range regexp.MustCompile(`"expr": (".*")`).FindAllStringSubmatch(read(t, file), -1) {
		all = append(all, m[1])
	}
	if filepath.Ext(file) == ".yml" {
		var f ruleFile
		require.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &f))
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				all = append(all, r.Expr)
			}
		}
	}
	require.NotEmpty(t, all)
	return strings.Join(all, "\n")
}
