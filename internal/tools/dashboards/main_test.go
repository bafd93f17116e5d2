package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// deployed is the folder with what is committed.
const deployed = "../../../deploy"

func TestWhatIsCommittedIsCurrentAndNamesWhatThereIs(t *testing.T) {
	if err := run("check", deployed); err != nil {
		t.Fatal(err)
	}
}

// plant copies the folder, with something in one of its files replaced.
func plant(t *testing.T, file, old, replacement string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deploy")
	if err := os.CopyFS(dir, os.DirFS(deployed)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, file)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, []byte(old)) {
		t.Fatalf("%s does not have %q", file, old)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(raw, []byte(old), []byte(replacement)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestARuleWithAMistakeIsRefused(t *testing.T) {
	const alerts, recording = "prometheus/rules/alerts.yml", "prometheus/rules/recording.yml"
	for _, c := range []struct{ name, file, old, new, want string }{
		{"a metric that there is not", alerts, "(turnd_held)", "(turnd_hold)", "TurndHeldGrowing: there is no metric turnd_hold"},
		{"a counter without its end", alerts, "turnd_sweeps_total", "turnd_sweeps", "there is no metric turnd_sweeps"},
		{"a label that the metric has not", alerts, "result!=\"lost_race\"", "outcome!=\"lost_race\"", "turnd_sweeps_total has no label outcome"},
		{"a value that the label has not", alerts, "result!=\"lost_race\"", "result!=\"lost_races\"", `the catalog knows no result "lost_races"`},
		{"a value of several", recording, `direction=~"input|output"`, `direction=~"input|outputs"`, `the catalog knows no direction "outputs"`},
		{"a label to sum by", recording, "sum by (job, cause)", "sum by (job, cuase)", "has no label cuase"},
		{"labels to match by", recording, "/ on (job) group_left () sum by (job) (rate(turnd_provider_cost_total", "/ sum by (job) (rate(turnd_provider_cost_total", "never matches"},
		{"a rule that there is not", alerts, "job:turnd_tokens_retried:ratio_rate30m", "job:turnd_tokens_retried:ratio_rate1h", "there is no metric job:turnd_tokens_retried:ratio_rate1h"},
		{"what is no PromQL", alerts, "[15m])) > 5", "[15m)) > 5", "TurndSweepsRising: "},
		{"a value for what is missing", alerts, "max by (job) (turnd_guards_broken) > 0", "(max by (job) (turnd_guards_broken) or vector(0)) > 0", "vector makes a value of nothing"},
		{"a text with a label that is gone", alerts, "by (job, instance, signal)", "by (job, instance)", "mentions the label signal"},
		{"a field of another name", alerts, "        for: 2m", "        form: 2m", "field form not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run("check", plant(t, c.file, c.old, c.new))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, instead of %q", err, c.want)
			}
		})
	}
}

func TestADashboardThatWasEditedByHandIsRefused(t *testing.T) {
	err := run("check", plant(t, "grafana/turnd-turns.json", "Deliveries by result", "Deliveries"))
	if err == nil || !strings.Contains(err.Error(), "turnd-turns.json is not current") {
		t.Error(err)
	}
}

func TestAFileThatIsLeftOverIsRefused(t *testing.T) {
	dir := plant(t, "grafana/turnd-turns.json", "Deliveries", "Deliveries")
	if err := os.WriteFile(filepath.Join(dir, "grafana", "old.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run("check", dir); err == nil || !strings.Contains(err.Error(), "4 files are in") {
		t.Error(err)
	}
}

func TestAPanelWithAMistakeIsRefused(t *testing.T) {
	good := lines("a title", "about it", count, of("turnd_held"), "{{job}}")
	for _, c := range []struct {
		name string
		edit func(*panel)
		want string
	}{
		{"no description", func(p *panel) { p.about = "" }, "says too little"},
		{"no unit", func(p *panel) { p.unit = "" }, "says too little"},
		{"no query", func(p *panel) { p.queries = nil }, "says too little"},
		{"an unknown metric", func(p *panel) { p.queries[0].expr = of("turnd_helt") }, "no metric turnd_helt"},
		{"an unknown label in the legend", func(p *panel) { p.queries[0].legend = "{{tenant}}" }, "the label tenant"},
		{"all installations at once", func(p *panel) { p.queries[0].expr = "turnd_held" }, "chosen installations"},
		{"a quantile of no buckets", func(p *panel) {
			p.queries[0].expr = "histogram_quantile(0.5, " + by("from", "turnd_follow_lag_seconds_bucket") + ")"
		}, "needs the label le"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := good
			p.queries = []query{good.queries[0]}
			c.edit(&p)
			err := newVocabulary().checkBoard(board{rows: []row{{"row", []panel{p}}}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, instead of %q", err, c.want)
			}
		})
	}
	if err := newVocabulary().checkBoard(board{rows: []row{{"row", []panel{good}}}}); err != nil {
		t.Error(err)
	}
}

func TestGrafanasOwnReaderRefusesWhatItDoesNotKnow(t *testing.T) {
	raw, err := turns().encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new string }{
		{"a field of another name", `"legendFormat"`, `"legendFormt"`},
		{"a field of another type", `"graphTooltip": 1`, `"graphTooltip": "on"`},
		{"a field of a panel", `"transparent"`, `"see_through"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			edited := strings.ReplaceAll(string(raw), c.old, c.new)
			if edited == string(raw) || !json.Valid([]byte(edited)) {
				t.Fatal("nothing was planted")
			}
			if err := strictly([]byte(edited)); err == nil {
				t.Error("it was taken")
			}
		})
	}
}
