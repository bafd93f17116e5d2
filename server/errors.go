package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/turnd/turnd/turns"
)

// errorDomain is ErrorInfo.domain of every status.
const errorDomain = "turnd"

// errDraining ends what is still running when the grace of a shutdown is over.
var errDraining = &turns.Error{Code: turns.CodeDraining, Problem: "this server is shutting down; send the same turn again"}

// fieldErrors are the fields at fault in a request, at least one. The first decides about code and reason; all are named
// in BadRequest, so that a client can mend them at one go.
type fieldErrors []*turns.Error

// Error implements error.
func (e fieldErrors) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%s (and %d more)", e[0].Error(), len(e)-1)
}

// mapper makes statuses of errors. It is the only place that does.
type mapper struct{ log *slog.Logger }

// status maps an error of a call. A cause never gets into it: what is not meant for clients is logged here, once, under
// a number that the status gives too. Codes decide, and texts never do.
//
// ctx is the call's, with its end not yet called: whether and why it is done tells a caller that left from a fault.
func (m mapper) status(ctx context.Context, method string, err error) error {
	var fields fieldErrors
	if errors.As(err, &fields) {
		return build(ruleOf(fields[0].Code), fields[0], fields.Error(), badRequest(fields...))
	}
	if gone := callerGone(ctx, err); gone != nil {
		return gone
	}
	e := asDomain(ctx, err)
	if e == nil {
		if st, ok := status.FromError(err); ok {
			return fromLibrary(st)
		}
		e = &turns.Error{Code: turns.CodeInternal}
	}
	rule := ruleOf(e.Code)
	if e.Final {
		rule.advice, rule.waits = turns.AdviceDoNotRetry, false
	}
	if rule.code == codes.Internal {
		return m.internal(ctx, method, err)
	}
	if e.Code == turns.CodeStoreUnavailable {
		m.log.WarnContext(ctx, "store unavailable", "method", method, "error", err, "cause", errors.Unwrap(e))
	}
	return build(rule, e, e.Error(), details(rule, e)...)
}

// internal answers with a fixed text and logs what it was. The number in both is made at random, so that somebody who
// reports it tells the operator which line it was and tells nobody anything else.
func (m mapper) internal(ctx context.Context, method string, err error) error {
	id := uuid.NewString()
	attrs := []any{"method", method, "correlation_id", id, "error", err}
	var e *turns.Error
	if errors.As(err, &e) && errors.Unwrap(e) != nil {
		attrs = append(attrs, "cause", errors.Unwrap(e))
	}
	var p *panicError
	if errors.As(err, &p) {
		attrs = append(attrs, "stack", string(p.stack))
	}
	m.log.ErrorContext(ctx, "call failed inside turnd", attrs...)
	e = &turns.Error{Code: turns.CodeInternal, Meta: map[string]string{"correlation_id": id}}
	rule := ruleOf(turns.CodeInternal)
	return build(rule, e, "a fault of turnd's own; its log tells more under correlation id "+id, details(rule, e)...)
}

// asDomain finds the domain's error, or the reason for which this server ended the call.
func asDomain(ctx context.Context, err error) *turns.Error {
	var e, cause *turns.Error
	errors.As(err, &e)
	if aboutRequest(e) {
		return e
	}
	if ctx.Err() != nil && errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	return e
}

// aboutRequest reports an error that says something of the request, so that it stands even if the call ended meanwhile.
func aboutRequest(e *turns.Error) bool {
	if e == nil {
		return false
	}
	switch e.Code {
	case turns.CodeInternal, turns.CodeStoreUnavailable, turns.CodeIdentityUnavailable:
		return false
	}
	return true
}

// callerGone is the status of a call whose caller left or ran out of time, if that is what ended it. What the caller
// asked for goes on all the same, so the same id is right, at once.
func callerGone(ctx context.Context, err error) error {
	var e *turns.Error
	var p *panicError
	errors.As(err, &e)
	if ctx.Err() == nil || !errors.Is(context.Cause(ctx), ctx.Err()) || aboutRequest(e) || errors.As(err, &p) {
		return nil
	}
	rule := rule{code: codes.Canceled, advice: turns.AdviceSameIDNow}
	text := "the caller cancelled the call; a reply that was begun goes on"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		rule.code, text = codes.DeadlineExceeded, "the caller's deadline passed; a reply that was begun goes on"
	}
	return build(rule, &turns.Error{}, text)
}

// build assembles a status. The same failure makes the same bytes: maps are written in the order of their keys, so that two
// answers can be told apart by what they say alone. The details are this package's own messages, so packing them can't fail.
func build(r rule, e *turns.Error, text string, extra ...protoadapt.MessageV1) error {
	meta := map[string]string{}
	maps.Copy(meta, e.Meta)
	meta["retry"] = string(r.advice)
	st := &spb.Status{Code: int32(r.code), Message: text}
	info := &errdetails.ErrorInfo{Reason: r.reasonName(), Domain: errorDomain, Metadata: meta}
	for _, detail := range append([]protoadapt.MessageV1{info}, extra...) {
		packed := &anypb.Any{}
		err := anypb.MarshalFrom(packed, protoadapt.MessageV2Of(detail), proto.MarshalOptions{Deterministic: true})
		if err != nil {
			return status.New(r.code, text).Err()
		}
		st.Details = append(st.Details, packed)
	}
	return status.ErrorProto(st)
}

// details are those besides ErrorInfo that the wire promises for a reason. Clients act on the reason and the advice;
// these are for generic tools, which know the types of google.rpc and nothing of turnd.
func details(r rule, e *turns.Error) []protoadapt.MessageV1 {
	var out []protoadapt.MessageV1
	if e.Field != "" && (r.code == codes.InvalidArgument || r.code == codes.Unimplemented) {
		out = append(out, badRequest(e))
	}
	switch r.code {
	case codes.NotFound, codes.AlreadyExists:
		kind := e.Meta["resource"]
		if kind == "" {
			kind = r.resource
		}
		out = append(out, &errdetails.ResourceInfo{ResourceType: kind, Description: e.Problem})
	case codes.FailedPrecondition:
		out = append(out, &errdetails.PreconditionFailure{Violations: []*errdetails.PreconditionFailure_Violation{
			{Type: r.reasonName(), Subject: e.Field, Description: e.Problem}}})
	}
	if e.Code == turns.CodeQuotaExceeded {
		out = append(out, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
			{Subject: e.Meta["subject"], Description: e.Problem}}})
	}
	if r.waits {
		out = append(out, &errdetails.RetryInfo{RetryDelay: durationpb.New(max(e.RetryAfter, r.least))})
	}
	return out
}

func badRequest(errs ...*turns.Error) *errdetails.BadRequest {
	out := &errdetails.BadRequest{}
	for _, e := range errs {
		out.FieldViolations = append(out.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field: e.Field, Description: e.Problem, Reason: string(e.Code)})
	}
	return out
}

// fromLibrary gives a status of grpc-go's own, such as health's for an unknown service, the details that every status
// has. Its text is the library's and holds nothing of ours.
func fromLibrary(st *status.Status) error {
	r, ok := libraryRules[st.Code()]
	if !ok {
		r = rule{code: st.Code(), reason: ruleOf(turns.CodeInternal).reason, advice: turns.AdviceSameIDAfter, waits: true, least: time.Second}
	}
	e := &turns.Error{Problem: st.Message()}
	if r.code == codes.InvalidArgument {
		e.Code = turns.CodeInvalidField
	}
	return build(r, e, st.Message(), details(r, e)...)
}
