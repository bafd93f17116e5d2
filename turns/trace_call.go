package turns

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnd/turnd/internal/instrument"
)

// A physical request to a provider is one span of its own, however it turns out. What the vendor says is in it only as far
// as it comes from a closed list: no id, code or text of theirs.

// callSpan begins the span of a request for a route's model.
func (s *Service) callSpan(ctx context.Context, operation string, route Route) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, trace.SpanFromContext(context.Background())
	}
	ctx, span := s.tracer.start(ctx, operation+" "+route.ProviderModel, trace.WithSpanKind(trace.SpanKindClient))
	route.describe(span, operation)
	return ctx, span
}

// describe tells a span who is asked for what.
func (r Route) describe(span trace.Span, operation string) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(instrument.OperationName, operation), attribute.String(instrument.ProviderName, r.Provider),
		attribute.String(instrument.RequestModel, r.ProviderModel), attribute.String(instrument.Endpoint, r.Endpoint),
		attribute.Bool(instrument.RequestStream, true))
}

// sent tells a call's span which one it is.
func (r *run) sent(span trace.Span) {
	if !span.IsRecording() {
		return
	}
	try := "retry"
	if r.call.First {
		try = "first"
	}
	span.SetAttributes(attribute.String(instrument.CallID, r.call.ID.String()), attribute.Int(instrument.CallNumber, r.call.Number),
		attribute.String(instrument.Try, try))
}

// came tells a call's span what came of it.
func (c *callResult) came(span trace.Span) {
	if !span.IsRecording() {
		return
	}
	class, phase := ClassOK, PhaseDone
	status := c.httpStatus
	switch {
	case c.err != nil:
		class, phase = c.err.Class, c.err.Phase
		if status == 0 {
			status = c.err.HTTPStatus
		}
		fail(span, string(class))
	case c.cut:
		class, phase = ClassCancelled, PhaseBody
	}
	span.SetAttributes(attribute.String(instrument.Class, string(class)), attribute.String(instrument.Phase, string(phase)))
	if status != 0 {
		span.SetAttributes(attribute.Int(instrument.HTTPStatus, status))
	}
	finish := string(c.stopReason)
	if c.err != nil && c.used {
		finish = "error"
	}
	if finish != "" {
		span.SetAttributes(attribute.StringSlice(instrument.FinishReasons, []string{finish}))
	}
	if u := c.reported; u != nil {
		span.SetAttributes(attribute.Int64(instrument.InputTokens, u.Input), attribute.Int64(instrument.OutputTokens, u.Output))
	}
}

// lookupSpan begins the span of a question about the call of a held reply. Nobody's request asks it: it begins a trace, linked
// to that of the reply.
func (s *Service) lookupSpan(ctx context.Context, held Reply, route Route) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	if link, ok := linkOf(held); ok {
		opts = append(opts, trace.WithLinks(link))
	}
	ctx, span := s.tracer.start(ctx, instrument.OperationFetch+" "+route.ProviderModel, opts...)
	route.describe(span, instrument.OperationFetch)
	return ctx, span
}
