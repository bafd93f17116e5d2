package instrument

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric"
)

// Maker makes instruments of a Meter by their names in the Catalog. Its methods are called in a row, and Err then says
// whether all of them could be made.
type Maker struct {
	meter   metric.Meter
	metrics map[string]Metric
	err     error
}

// NewMaker makes a Maker.
func NewMaker(meter metric.Meter) *Maker {
	m := &Maker{meter: meter, metrics: map[string]Metric{}}
	for _, entry := range Catalog() {
		m.metrics[entry.Name] = entry
	}
	return m
}

// Err is the first thing that went wrong, nil if nothing did.
func (m *Maker) Err() error { return m.err }

// entry finds a metric of a kind. A name that is not in the catalog is a mistake in the program, which Err says.
func (m *Maker) entry(name string, kind Kind) Metric {
	entry, ok := m.metrics[name]
	if m.err == nil && (!ok || entry.Kind != kind) {
		m.err = fmt.Errorf("no %s is called %s", kind, name)
	}
	return entry
}

func (m *Maker) note(name string, err error) {
	if m.err == nil && err != nil {
		m.err = fmt.Errorf("make %s: %w", name, err)
	}
}

// Counter makes a counter.
func (m *Maker) Counter(name string) metric.Int64Counter {
	entry := m.entry(name, Counter)
	c, err := m.meter.Int64Counter(name, metric.WithUnit(entry.Unit), metric.WithDescription(entry.About))
	m.note(name, err)
	return c
}

// Histogram makes a histogram with the buckets of the catalog.
func (m *Maker) Histogram(name string) metric.Float64Histogram {
	entry := m.entry(name, Histogram)
	h, err := m.meter.Float64Histogram(name, metric.WithUnit(entry.Unit), metric.WithDescription(entry.About),
		metric.WithExplicitBucketBoundaries(entry.Buckets...))
	m.note(name, err)
	return h
}

// Observable makes a gauge without a callback, for who registers one that ends before the meter does.
func (m *Maker) Observable(name string) metric.Float64ObservableGauge {
	entry := m.entry(name, Gauge)
	g, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(entry.Unit), metric.WithDescription(entry.About))
	m.note(name, err)
	return g
}

// Gauge shows what read observes at each collection. Read must be quick and may be called by several collections at once.
func (m *Maker) Gauge(name string, read func(metric.Float64Observer)) {
	entry := m.entry(name, Gauge)
	_, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(entry.Unit), metric.WithDescription(entry.About),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			read(o)
			return nil
		}))
	m.note(name, err)
}

// Observed shows a counter that something else keeps. Read must be quick and may be called by several collections at once.
func (m *Maker) Observed(name string, read func(metric.Int64Observer)) {
	entry := m.entry(name, ObservedCounter)
	_, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(entry.Unit), metric.WithDescription(entry.About),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			read(o)
			return nil
		}))
	m.note(name, err)
}
