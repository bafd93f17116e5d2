package turns

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/turnd/turnd/internal/instrument"
)

// A turn's trace: the request's span, which is the server's; below it submit and claim; below the claim the reply, which goes
// on after the request; and below that each call and the ending. The claim's context is stored with the reply, so that whoever
// deals with it elsewhere links to it: a takeover, a follower, a replay, a stop.
//
// Most spans are not recorded, so no attribute is made before it is known that one is.

// tracer makes spans. The zero value makes none.
type tracer struct{ trace.Tracer }

// start begins a span, below that of ctx unless an option says otherwise.
func (t tracer) start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t.Tracer == nil {
		return ctx, trace.SpanFromContext(context.Background())
	}
	return t.Start(ctx, name, opts...)
}

// traceparent is a span's context as it is stored: in the form of W3C, empty for one that nobody records.
func traceparent(sc trace.SpanContext) string {
	if !sc.IsValid() || !sc.IsSampled() {
		return ""
	}
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-01"
}

// spanContext reads a stored context; not valid for a text that is none.
func spanContext(text string) (sc trace.SpanContext) {
	const length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(text) != length || text[:3] != "00-" || text[35] != '-' || text[52:] != "-01" {
		return sc
	}
	id, err := trace.TraceIDFromHex(text[3:35])
	if err != nil {
		return sc
	}
	span, err := trace.SpanIDFromHex(text[36:52])
	if err != nil {
		return sc
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true})
}

// linkOf is a link to what a reply was claimed or taken over by.
func linkOf(r Reply) (link trace.Link, ok bool) {
	sc := spanContext(r.Traceparent)
	if !sc.IsValid() {
		return link, false
	}
	return trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{
		attribute.String(instrument.LinkTo, "claim"), attribute.String(instrument.ReplyID, r.ID.String())}}, true
}

// LinkReply links the span of ctx, if one is recorded, to the claim of a reply that it deals with: what follows a reply or
// stops it is mostly in another trace than what makes it.
func LinkReply(ctx context.Context, r Reply) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if link, ok := linkOf(r); ok && link.SpanContext.TraceID() != span.SpanContext().TraceID() {
		span.AddLink(link)
	}
}

// fail marks a span as failed, by a word from a closed list: the text of an error could hold anything.
func fail(span trace.Span, word string) {
	span.SetStatus(codes.Error, word)
	span.SetAttributes(attribute.String(instrument.ErrorType, word))
}

// taken tells a span what a delivery came to.
func taken(span trace.Span, turn TurnID, sub Submission, err error) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(instrument.TurnID, turn.String()))
	if err != nil {
		fail(span, string(CodeOf(err)))
		return
	}
	span.SetAttributes(attribute.String(instrument.Result, string(sub.Result)))
	if !sub.Reply.ID.IsZero() {
		span.SetAttributes(attribute.String(instrument.ReplyID, sub.Reply.ID.String()))
	}
}

// sendClaim sends the pending claim. The first time the claim takes the context of its span with it, which stays the same
// however often it has to be sent.
func (a *arrival) sendClaim(ctx context.Context) ([]ClaimResult, error) {
	ctx, span := a.tracer.start(ctx, instrument.SpanClaim)
	defer span.End()
	p := a.pending
	if !p.span.IsValid() {
		p.span = span.SpanContext()
		p.claim.Reply.Traceparent = traceparent(p.span)
	}
	results, err := a.store.Claim(ctx, []Claim{p.claim})
	if span.IsRecording() {
		span.SetAttributes(attribute.String(instrument.ReplyID, p.claim.Reply.ID.String()),
			attribute.Int64(instrument.Attempt, int64(p.claim.Reply.Attempt)),
			attribute.Int64(instrument.Generation, int64(p.claim.Reply.Generation)),
			attribute.Bool(instrument.Won, err == nil && results[0].Won))
		if err != nil {
			fail(span, string(CodeOf(err)))
		}
	}
	return results, err
}

// traced begins the span of a run below the span that it was claimed or taken over by. It is over with the run.
func (r *run) traced(ctx context.Context) context.Context {
	ctx, r.span = r.tracer.start(trace.ContextWithSpanContext(ctx, r.claimed), instrument.SpanReply)
	if r.span.IsRecording() {
		r.span.SetAttributes(attribute.String(instrument.ReplyID, r.reply.ID.String()), attribute.String(instrument.TurnID, r.reply.Turn.String()),
			attribute.String(instrument.ConversationID, r.reply.Conversation.String()),
			attribute.Int64(instrument.Attempt, int64(r.reply.Attempt)), attribute.Int64(instrument.Generation, int64(r.reply.Generation)),
			attribute.Int64(instrument.Epoch, r.reply.Epoch))
	}
	return ctx
}

// endingSpan begins the span of an ending's way into the store.
func (r *run) endingSpan(ctx context.Context, e Ending) (context.Context, trace.Span) {
	name := instrument.SpanAbandon
	switch e.Status {
	case StatusComplete:
		name = instrument.SpanComplete
	case StatusHeld:
		name = instrument.SpanHold
	}
	return r.tracer.start(ctx, name)
}

// saw tells a run's span how its reply ended.
func (r *run) saw(ctx context.Context, status Status, reason Reason) {
	for _, span := range []trace.Span{trace.SpanFromContext(ctx), r.span} {
		if span == nil || !span.IsRecording() {
			continue
		}
		span.SetAttributes(attribute.String(instrument.Status, string(status)))
		if reason != "" {
			span.SetAttributes(attribute.String(instrument.Reason, string(reason)))
		}
		if status == StatusAbandoned {
			fail(span, string(reason))
		}
	}
}

// maxLinks bounds the links of one span.
const maxLinks = 64

// checkpointSpan begins the span of a checkpoint of some runs, if any of them is recorded. It is of no single trace, and
// links to all.
func (s *Service) checkpointSpan(ctx context.Context, held []heldTail) (context.Context, trace.Span) {
	var links []trace.Link
	for _, h := range held {
		if h.run.span != nil && h.run.span.IsRecording() && len(links) < maxLinks {
			links = append(links, trace.Link{SpanContext: h.run.span.SpanContext()})
		}
	}
	if links == nil {
		return ctx, trace.SpanFromContext(ctx)
	}
	ctx, span := s.tracer.start(ctx, instrument.SpanCheckpoint)
	if span.IsRecording() {
		span.SetAttributes(attribute.Int(instrument.RepliesN, len(held)))
		for _, link := range links { // not before: it is not kept for the sake of them, there are too many
			span.AddLink(link)
		}
	}
	return ctx, span
}

// takeoverSpan begins the span of a takeover. Where nobody's request makes it, it begins a trace, linked to the one that it
// goes on with.
func (s *Service) takeoverSpan(ctx context.Context, r Reply) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption(nil)
	if link, ok := linkOf(r); ok {
		opts = append(opts, trace.WithLinks(link))
	}
	if !trace.SpanFromContext(ctx).IsRecording() {
		opts = append(opts, trace.WithNewRoot())
	}
	return s.tracer.start(ctx, instrument.SpanTakeover, opts...)
}

// tookOver tells a takeover's span what came of it.
func tookOver(span trace.Span, t takeover, r Reply, won bool) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.String(instrument.ReplyID, r.ID.String()), attribute.String(instrument.TurnID, r.Turn.String()),
		attribute.Int64(instrument.Epoch, t.item.Fence.Epoch+1), attribute.String(instrument.Way, string(t.way)),
		attribute.Bool(instrument.Won, won))
}

// tracedSuccessor gives a claim in a reply's place the context of its span.
func (p *pendingRun) tracedSuccessor(span trace.Span) {
	p.span = span.SpanContext()
	p.claim.Reply.Traceparent = traceparent(p.span)
	if span.IsRecording() {
		span.SetAttributes(attribute.String(instrument.ReplyID, p.claim.Reply.ID.String()),
			attribute.Int64(instrument.Attempt, int64(p.claim.Reply.Attempt)))
	}
}
