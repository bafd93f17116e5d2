package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// tracer is what Config.Trace names, as the driver asks for it.
type tracer func(ctx context.Context, statement string)

// TraceQueryStart implements pgx.QueryTracer.
func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t(ctx, data.SQL)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
