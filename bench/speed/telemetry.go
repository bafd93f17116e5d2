package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/turnd/turnd/bench/speed/load"
)

const (
	streamClients = 64
	streamDeltas  = 64
	scrapeEvery   = time.Second
	traceSample   = "0.1"
	telemetryGoal = 0.9
)

// streamed is the plan of a reply in many pieces from a model that needs no time to think.
func streamed(deltas int) object {
	return object{"reply": object{"deltas": deltas, "delta_bytes": load.PieceBytes, "seed": 1}}
}

// telemetryCost measures streamed turns of a service that is scraped and sends spans to a collector, against one that does
// neither. A machine that does other things at the same time can fail it, so the short form only says what it found.
func telemetryCost(s *stage) error {
	provider, err := s.provider(streamed(streamDeltas))
	if err != nil {
		return err
	}
	collector, err := s.serve("sink", served{Sink: true})
	if err != nil {
		return err
	}
	on, err := s.service(provider.Addr, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + collector.Listen},
		"--ops-listen", "127.0.0.1:0", "--traces", "otlp", "--trace-sample", traceSample)
	if err != nil {
		return err
	}
	off, err := s.service(provider.Addr, []string{"OTEL_SDK_DISABLED=true"})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	scraped := make(chan scrapes, 1)
	go func() { scraped <- scrape(ctx, "http://"+on.Ops+"/metrics") }()
	entrant := func(name string, service *server) entrant {
		return entrant{name, load.Spec{
			Shape: load.Turn, Target: service.Listen, Clients: streamClients, Deltas: streamDeltas,
			Watch: map[string]int{"turnd": service.PID(), "provider": provider.PID(), "postgres": s.pg.server.PID()},
		}}
	}
	p := pace{warm: 2 * time.Second, window: 8 * time.Second, rounds: 7}
	if s.short {
		p = pace{warm: time.Second, window: 2 * time.Second, rounds: 3}
	}
	found, err := s.compete(p, entrant("telemetry on", on), entrant("telemetry off", off))
	cancel()
	seen := <-scraped
	if err != nil {
		return err
	}
	spans, err := get(s.ctx, "http://"+collector.Listen+"/")
	if err != nil {
		return err
	}
	if seen.failed > 0 || seen.good == 0 {
		return fmt.Errorf("%d of %d scrapes failed", seen.failed, seen.good+seen.failed)
	}
	if string(spans) == "0" {
		return errors.New("the collector got no spans")
	}
	return judgeTelemetry(s.short, found, seen, string(spans))
}

func judgeTelemetry(short bool, found rounds, seen scrapes, spans string) error {
	ratio := found.of(func(at func(string) load.Result) float64 {
		return at("telemetry on").PerSecond() / at("telemetry off").PerSecond()
	})
	cpu := found.of(func(at func(string) load.Result) float64 {
		return at("telemetry off").CPU["turnd"] / at("telemetry on").CPU["turnd"]
	})
	figure("on_turns_s", fmt.Sprintf("%.0f", found.perSecond("telemetry on")))
	figure("off_turns_s", fmt.Sprintf("%.0f", found.perSecond("telemetry off")))
	figure("on_cpu_ms", fmt.Sprintf("%.3f", found.cpu("telemetry on", "turnd")))
	figure("off_cpu_ms", fmt.Sprintf("%.3f", found.cpu("telemetry off", "turnd")))
	figure("ratio", fmt.Sprintf("%.3f", ratio))
	figure("cpu_ratio", fmt.Sprintf("%.3f", cpu))
	figure("goal", telemetryGoal)
	figure("scrapes", seen.good)
	figure("metrics_bytes", seen.bytes)
	figure("spans", spans)
	if ratio < telemetryGoal && !short {
		return fmt.Errorf("with telemetry %.3f of the turns a second are left, the goal is %v", ratio, telemetryGoal)
	}
	return nil
}

// scrapes is what a scraper has seen.
type scrapes struct{ good, failed, bytes int }

// scrape reads the metrics each second, as a Prometheus would, until the context ends.
func scrape(ctx context.Context, url string) (seen scrapes) {
	tick := time.NewTicker(scrapeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return seen
		case <-tick.C:
		}
		page, err := get(ctx, url)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			seen.failed++
		default:
			seen.good++
			seen.bytes = len(page)
		}
	}
}

// maxPage bounds what is read of an answer.
const maxPage = 64 << 20

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	page, err := io.ReadAll(io.LimitReader(res.Body, maxPage))
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, res.Status)
	}
	return page, err
}
