package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/turnd/turnd/bench/rig"
)

// scrapes is how often workers are scraped and rules evaluated here.
const scrapes = "500ms"

// prometheus is a Prometheus in a process of its own.
type prometheus struct {
	*rig.Process
	url     string
	targets string // the file that names the workers
	http    *http.Client
}

// startPrometheus starts one that has the rules of a folder.
func startPrometheus(ctx context.Context, dir, rules string) (*prometheus, error) {
	free, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	_ = free.Close()
	p := &prometheus{url: "http://" + address, targets: filepath.Join(dir, "targets.json"), http: &http.Client{Timeout: 20 * time.Second}}
	if err := p.watches(nil); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: %[1]s, scrape_timeout: %[1]s, evaluation_interval: %[1]s}\nrule_files: [%[2]q]\n"+
		"scrape_configs:\n  - job_name: turnd\n    file_sd_configs: [{files: [%[3]q], refresh_interval: 1s}]\n", scrapes, rules+"/*.yml", p.targets)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p.Process, err = rig.Start(dir, "prometheus", "prometheus", "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "tsdb"),
		"--web.listen-address", address, "--log.level", "warn")
	if err != nil {
		return nil, err
	}
	return p, until(ctx, 30*time.Second, "Prometheus to be ready", func() (bool, error) {
		_, err := p.get(ctx, "/-/ready", nil)
		return err == nil, nil
	})
}

// watches says which workers are scraped, by name.
func (p *prometheus) watches(workers map[string]string) error {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := []group{}
	for name, address := range workers {
		groups = append(groups, group{[]string{address}, map[string]string{"instance": name}})
	}
	raw, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	next := p.targets + ".next"
	if err := os.WriteFile(next, raw, 0o600); err != nil {
		return err
	}
	return os.Rename(next, p.targets)
}

func (p *prometheus) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	res, err := p.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("prometheus answers %s with %d: %s", path, res.StatusCode, body)
	}
	return body, err
}

// sample is one series of an answer.
type sample struct {
	labels map[string]string
	value  float64
}

// ask asks an expression now.
func (p *prometheus) ask(ctx context.Context, expr string) (samples []sample, err error) {
	raw, err := p.get(ctx, "/api/v1/query", url.Values{"query": {expr}})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct {
			ResultType string
			Result     []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	if answer.Data.ResultType != "vector" {
		return nil, fmt.Errorf("%s gives a %s", expr, answer.Data.ResultType)
	}
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		if !math.IsNaN(value) { // a share of nothing
			samples = append(samples, sample{r.Metric, value})
		}
	}
	return samples, nil
}

// alert is one that is pending or fires.
type alert struct {
	Labels      map[string]string
	Annotations map[string]string
	State       string
}

// firing are the alerts that fire, by name.
func (p *prometheus) firing(ctx context.Context) (map[string]alert, error) {
	raw, err := p.get(ctx, "/api/v1/alerts", nil)
	if err != nil {
		return nil, err
	}
	var answer struct{ Data struct{ Alerts []alert } }
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, err
	}
	all := map[string]alert{}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			all[a.Labels["alertname"]] = a
		}
	}
	return all, nil
}

// loaded demands that all rules are there and healthy, and counts the alerts.
func (p *prometheus) loaded(ctx context.Context) (alerts int, err error) {
	raw, err := p.get(ctx, "/api/v1/rules", nil)
	if err != nil {
		return 0, err
	}
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Type, Health, LastError string }
			}
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return 0, err
	}
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			if r.Health == "err" {
				return 0, fmt.Errorf("%s: %s", r.Name, r.LastError)
			}
			if r.Type == "alerting" {
				alerts++
			}
		}
	}
	if alerts == 0 {
		return 0, errors.New("Prometheus has no alerts") //nolint:staticcheck // its name
	}
	return alerts, nil
}

// until asks again until the answer is yes.
func until(ctx context.Context, patience time.Duration, what string, ask func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s in vain for %s", patience, what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// said is a set of labels as people write it.
func said(labels map[string]string, only ...string) string {
	var parts []string
	for _, name := range only {
		if value, ok := labels[name]; ok {
			parts = append(parts, name+"="+strconv.Quote(value))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}
