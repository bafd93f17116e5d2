package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// complaintEvery is how often a line says that telemetry is lost.
const complaintEvery = time.Minute

// errFull drops a span while the collector is slower than spans come.
var errFull = errors.New("the queue is full")

// losses counts what an exporter did not take, and says so once in a while.
type losses struct {
	signal string
	attrs  metric.MeasurementOption
	logger *slog.Logger

	mu      sync.Mutex
	counter metric.Int64Counter // nil until there is one
	since   int64               // lost since the last line
	said    time.Time
}

func newLosses(signal string, logger *slog.Logger) *losses {
	return &losses{signal: signal, logger: logger,
		attrs: metric.WithAttributeSet(attribute.NewSet(attribute.String("signal", signal)))}
}

// countBy sets the counter. Its series is there before the first loss.
func (l *losses) countBy(counter metric.Int64Counter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counter = counter
	counter.Add(context.Background(), 0, l.attrs)
}

// lost counts items.
func (l *losses) lost(n int, why error) {
	l.mu.Lock()
	if l.counter != nil {
		l.counter.Add(context.Background(), int64(n), l.attrs)
	}
	l.since += int64(n)
	since, now := l.since, time.Now()
	quiet := !l.said.IsZero() && now.Sub(l.said) < complaintEvery
	if !quiet {
		l.since, l.said = 0, now
	}
	l.mu.Unlock()
	if !quiet {
		l.logger.Warn("telemetry not taken by the collector and dropped; turns go on", "signal", l.signal, "dropped", since, "why", reason(why))
	}
}

// httpStatus finds the status in what the exporter by HTTP says.
var httpStatus = regexp.MustCompile(`: ([1-5][0-9]{2}) `)

// reason names a failure without any text of a collector's, which could repeat what it was sent.
func reason(err error) string {
	var op *net.OpError
	switch {
	case errors.Is(err, errFull):
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long"
	case errors.Is(err, context.Canceled):
		return "there was no time left"
	case errors.As(err, &op):
		return op.Op + " failed"
	}
	if code := status.Code(err); code != codes.Unknown {
		return "gRPC status " + code.String()
	}
	if found := httpStatus.FindStringSubmatch(err.Error()); found != nil {
		return "HTTP status " + found[1]
	}
	return "it failed"
}

// Complaints takes what the libraries of telemetry would else write to standard error, where a collector's words could be in
// it. It is global to a process.
func Complaints(logger *slog.Logger) otel.ErrorHandler {
	return otel.ErrorHandlerFunc(func(err error) { logger.Debug("telemetry has a problem", "why", reason(err)) })
}
