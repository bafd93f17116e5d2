// Package oteltest is a collector of OpenTelemetry that a test can ask what it got, and that can be as bad as a real one:
// it refuses, or never answers.
package oteltest

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
)

// Span is one span as it was sent.
type Span struct {
	// Name, TraceID, ID and Parent are its own; Parent is empty for the first of a trace.
	Name, TraceID, ID, Parent string
	// Process is the service.instance.id that sent it.
	Process string
	Kind    tracepb.Span_SpanKind
	Attrs   map[string]string
	// Links are the ids of spans that it links to.
	Links []string
	// Begun and Over are its times in nanoseconds.
	Begun, Over uint64
	// Text is all of it, to be searched.
	Text string
}

// Sink is a collector. Its methods may be called by many goroutines.
type Sink struct {
	coltracepb.UnimplementedTraceServiceServer
	// Addr is where it listens, by gRPC in the clear.
	Addr string

	mu      sync.Mutex
	spans   []Span
	asked   int
	refuses bool
	hangs   bool
	headers metadata.MD
}

// Start runs a collector until the test's end, and has the variables of this process lead there.
func Start(t *testing.T) *Sink {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &Sink{Addr: lis.Addr().String()}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	coltracepb.RegisterTraceServiceServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+s.Addr)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	return s
}

// Refuse has it refuse what it is sent from now on, or take it again.
func (s *Sink) Refuse(refuses bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses = refuses
}

// Hang has it answer nothing from now on, until who asks gives up.
func (s *Sink) Hang() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs = true
}

// Asked is how often something was sent, and Headers what came with the last.
func (s *Sink) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Headers came with what was sent last.
func (s *Sink) Headers() metadata.MD {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.headers
}

// Spans are all that it took, in the order in which they came.
func (s *Sink) Spans() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Span(nil), s.spans...)
}

// Named are the spans of a name.
func (s *Sink) Named(name string) (some []Span) {
	for _, span := range s.Spans() {
		if span.Name == name {
			some = append(some, span)
		}
	}
	return some
}

// Export implements coltracepb.TraceServiceServer.
func (s *Sink) Export(ctx context.Context, req *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	s.asked++
	s.headers, _ = metadata.FromIncomingContext(ctx)
	refuses, hangs := s.refuses, s.hangs
	s.mu.Unlock()
	switch {
	case hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case refuses:
		return nil, status.Error(codes.InvalidArgument, "echo: "+s.headers.Get("authorization")[0])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		for _, scope := range r.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.spans = append(s.spans, read(r.GetResource(), span))
			}
		}
	}
	return &coltracepb.ExportTraceServiceResponse{}, nil
}

func read(from *resourcepb.Resource, span *tracepb.Span) Span {
	s := Span{Name: span.GetName(), TraceID: hex.EncodeToString(span.GetTraceId()), ID: hex.EncodeToString(span.GetSpanId()),
		Parent: hex.EncodeToString(span.GetParentSpanId()), Process: attrs(from.GetAttributes())["service.instance.id"],
		Kind: span.GetKind(), Attrs: attrs(span.GetAttributes()), Begun: span.GetStartTimeUnixNano(), Over: span.GetEndTimeUnixNano(),
		Text: prototext.Format(span)}
	for _, link := range span.GetLinks() {
		s.Links = append(s.Links, hex.EncodeToString(link.GetSpanId()))
	}
	return s
}

func attrs(all []*commonpb.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range all {
		text := a.GetValue().GetStringValue()
		if text == "" {
			text = prototext.MarshalOptions{}.Format(a.GetValue())
		}
		m[a.GetKey()] = text
	}
	return m
}
