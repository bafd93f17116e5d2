package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // exporters may ask for it
	"google.golang.org/protobuf/proto"
)

// maxSpans bounds a request with spans.
const maxSpans = 64 << 20

// sink is a collector that counts spans and throws them away. It takes OTLP over gRPC and over HTTP on one port.
type sink struct {
	collector.UnimplementedTraceServiceServer
	grpc  *grpc.Server
	spans atomic.Int64
}

func newSink() *sink {
	s := &sink{grpc: grpc.NewServer(grpc.MaxRecvMsgSize(maxSpans))}
	collector.RegisterTraceServiceServer(s.grpc, s)
	return s
}

// ServeHTTP implements http.Handler. GET answers with how many spans have come.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
		s.grpc.ServeHTTP(w, r)
	case r.Method == http.MethodGet:
		_, _ = fmt.Fprint(w, s.spans.Load())
	default:
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSpans))
		var in collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.count(&in)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}
}

// Export implements the service of OTLP over gRPC.
func (s *sink) Export(_ context.Context, in *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.count(in)
	return &collector.ExportTraceServiceResponse{}, nil
}

func (s *sink) count(in *collector.ExportTraceServiceRequest) {
	for _, resource := range in.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			s.spans.Add(int64(len(scope.GetSpans())))
		}
	}
}
