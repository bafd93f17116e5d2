package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/turnd/turnd/server/auth"
	"github.com/turnd/turnd/turns"
)

// gate stands before every handler: it names the caller, refuses what is not served or breaks a rule of the wire,
// recovers panics, and makes the status of every error.
type gate struct {
	mapper   mapper
	codec    *codec
	validate *validator
	who      auth.Authenticator // nil: callers are taken at their word
	calls    *calls
	streams  *streams
}

// unary is the interceptor of unary calls. The order matters: a call is counted before anything can fail, so that a drain
// waits for its status too; its error is mapped last, whoever made it; and who calls is settled before the request is
// looked at, so that a stranger learns nothing about its rules.
func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	ctx, _, leave := g.calls.enter(ctx, info.FullMethod)
	defer leave()
	arrived(ctx)
	defer g.finish(ctx, info.FullMethod, &err)
	if ctx, _, err = g.admit(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	if err := g.check(req); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// stream is the interceptor of streams, in the order of unary. A stream's request is not here yet: it is checked when the
// generated code receives it, which is before the handler proper runs.
func (g *gate) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	ctx, cut, leave := g.calls.enter(ss.Context(), info.FullMethod)
	defer leave()
	defer g.finish(ctx, info.FullMethod, &err)
	ctx, token, err := g.admit(ctx, info.FullMethod)
	if err != nil {
		return err
	}
	defer g.streams.watch(token, info.FullMethod, cut)()
	return handler(srv, &checkedStream{ServerStream: ss, ctx: ctx, check: g.check})
}

// finish recovers a panic and makes a status of the call's error. It must be deferred itself, since recover works in no
// other place. One call's panic ends that call alone: the other replies of this worker go on.
func (g *gate) finish(ctx context.Context, method string, err *error) {
	if v := recover(); v != nil {
		*err = &panicError{value: v, stack: debug.Stack()}
	}
	if *err != nil {
		*err = g.mapper.status(ctx, method, *err)
	}
}

// admit finds out who calls, and whether that caller may. Health is open to all, and everything is where callers are taken at
// their word; but there is nothing else that a stranger is told, such as which methods there are. The token is what the caller
// brought as proof, if anything.
func (g *gate) admit(ctx context.Context, method string) (_ context.Context, token string, err error) {
	if isHealth(method) || g.who == nil && !ours(method) {
		return ctx, "", nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	var id auth.Identity
	if g.who == nil {
		id, err = byName(md)
	} else {
		id, token, err = byProof(ctx, g.who, md)
	}
	if err == nil {
		err = mayCall(id, method)
	}
	if err != nil {
		return ctx, "", err
	}
	return withCaller(ctx, id.Caller), token, nil
}

// check refuses a message that could not be decoded or breaks a rule of the wire. Nothing has been written when it fails.
func (g *gate) check(req any) error {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	if err := g.codec.complaint(m); err != nil {
		return err
	}
	return g.validate.check(m)
}

// ours reports a method of turnd's own services.
func ours(method string) bool { return strings.HasPrefix(method, "/turns.v1.") }

// isHealth reports a method of the health service.
func isHealth(method string) bool { return strings.HasPrefix(method, "/grpc.health.v1.Health/") }

// checkedStream checks each message that it receives, and has the context with the caller in it.
type checkedStream struct {
	grpc.ServerStream
	ctx   context.Context
	check func(any) error
}

// Context implements grpc.ServerStream.
func (s *checkedStream) Context() context.Context { return s.ctx }

// RecvMsg implements grpc.ServerStream.
func (s *checkedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	arrived(s.ctx)
	return s.check(m)
}

// panicError is a panic of a handler.
type panicError struct {
	value any
	stack []byte
}

// Error implements error. A runtime error's text is safe; any other value could hold what a handler worked on.
func (e *panicError) Error() string {
	if err, ok := e.value.(interface{ RuntimeError() }); ok {
		return fmt.Sprintf("panic: %v", err)
	}
	return fmt.Sprintf("panic with a %T", e.value)
}

// unknownMethod answers calls of methods that no service has.
func unknownMethod(any, grpc.ServerStream) error {
	return &turns.Error{Code: turns.CodeUnimplemented, Problem: "this server has no such method"}
}
