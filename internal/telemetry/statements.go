package telemetry

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
)

// Statements makes what traces and measures statements of Postgres: below a span that is recorded each is a span, named by
// what it does. Neither its text nor its parameters are in it, nor the text of an error, which can repeat a value.
func (t *Telemetry) Statements() pgx.QueryTracer {
	return statements{otelpgx.NewTracer(otelpgx.WithTracerProvider(t.Tracers), otelpgx.WithMeterProvider(t.Meters),
		otelpgx.WithSpanNameFunc(statementName), otelpgx.WithDisableSQLStatementInAttributes(), otelpgx.WithDisableConnectionDetailsInAttributes())}
}

// writes finds what a statement with several parts writes first.
var writes = regexp.MustCompile(`\b(INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)`)

// statementName names a statement by what it does and the table that it writes, and never by anything else in it.
func statementName(statement string) string {
	if found := writes.FindStringSubmatch(statement); found != nil {
		verb, _, _ := strings.Cut(found[1], " ")
		return verb + " " + found[2]
	}
	return "SELECT"
}

// statements is the library's tracer for queries alone. Connections, and waits for one, are in the figures of the pool.
type statements struct{ tracer *otelpgx.Tracer }

// TraceQueryStart implements pgx.QueryTracer.
func (s statements) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return s.tracer.TraceQueryStart(ctx, conn, data)
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s statements) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	data.Err = bare(data.Err)
	s.tracer.TraceQueryEnd(ctx, conn, data)
}

// errNotShown stands for an error of which nothing is known that may be shown.
var errNotShown = errors.New("the statement failed")

// bare is an error without the words of the server: its code says what it was.
func bare(err error) error {
	var refused *pgconn.PgError
	switch {
	case err == nil || errors.Is(err, pgx.ErrNoRows):
		return err
	case errors.As(err, &refused):
		return &pgconn.PgError{Severity: "ERROR", Code: refused.Code, Message: errNotShown.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return context.Canceled
	}
	return errNotShown
}

// WatchPool shows the figures of a pool of connections under a name.
func (t *Telemetry) WatchPool(name string, pool *pgxpool.Pool) error {
	return otelpgx.RecordStats(pool, otelpgx.WithStatsMeterProvider(t.Meters),
		otelpgx.WithStatsAttributes(attribute.String("db.client.connection.pool.name", name)))
}
