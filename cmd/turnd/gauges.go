package main

import (
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/turnd/turnd/internal/instrument"
	"github.com/turnd/turnd/turns"
)

// showGauges shows what this worker does right now, and what waits in the database and in the spool as of the last sweep.
func (a *app) showGauges() error {
	maker := instrument.NewMaker(a.tel.Meter)
	for name, read := range map[string]func() float64{
		instrument.InFlight:  func() float64 { return float64(a.service.InFlight()) },
		instrument.Queued:    func() float64 { return float64(a.service.Queued()) },
		instrument.Followers: func() float64 { return float64(a.hub.Followers()) },
	} {
		maker.Gauge(name, func(o metric.Float64Observer) { o.Observe(read()) })
	}
	for name, read := range map[string]func(turns.Measured) float64{
		instrument.Held:              func(m turns.Measured) float64 { return float64(m.Held) },
		instrument.InLine:            func(m turns.Measured) float64 { return float64(m.InLine) },
		instrument.OldestClaim:       func(m turns.Measured) float64 { return m.OldestClaim.Seconds() },
		instrument.Spooled:           func(m turns.Measured) float64 { return float64(m.Spooled) },
		instrument.LiveDoubled:       func(m turns.Measured) float64 { return float64(m.Doubled) },
		instrument.GuardsBroken:      func(m turns.Measured) float64 { return float64(m.GuardsBroken) },
		instrument.DatabaseClockSkew: func(m turns.Measured) float64 { return m.ClockSkew.Seconds() },
	} {
		maker.Gauge(name, func(o metric.Float64Observer) { o.Observe(read(a.service.Measured())) })
	}
	if a.certs != nil {
		maker.Gauge(instrument.CertificateLeft, func(o metric.Float64Observer) { o.Observe(time.Until(a.certs.Expires()).Seconds()) })
	}
	return errors.Join(maker.Err(), a.showBuild())
}
