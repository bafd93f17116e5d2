package casetest

import (
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// webConn is a client's connection as generated code wants one, over HTTP/1.1 in one of the dialects of the web.
type webConn struct {
	http *http.Client
	base string
	opts []connect.ClientOption
}

// onWeb is a client of the worker over the web.
func (w *worker) onWeb(opts ...connect.ClientOption) *webConn {
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &webConn{http: &http.Client{Transport: transport}, base: "http://" + w.harness.Addr,
		opts: append([]connect.ClientOption{connect.WithCodec(bytesCodec{})}, opts...)}
}

// packed is a message in the form of the wire.
type packed struct{ raw []byte }

// bytesCodec leaves messages as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string                  { return "proto" }
func (bytesCodec) Marshal(m any) ([]byte, error) { return m.(*packed).raw, nil }
func (bytesCodec) Unmarshal(raw []byte, m any) error {
	m.(*packed).raw = append([]byte(nil), raw...)
	return nil
}

func (c *webConn) client(method string) *connect.Client[packed, packed] {
	return connect.NewClient[packed, packed](c.http, c.base+method, c.opts...)
}

func packedFrom(ctx context.Context, m any) (*connect.Request[packed], error) {
	raw, err := proto.Marshal(m.(proto.Message))
	req := connect.NewRequest(&packed{raw})
	md, _ := metadata.FromOutgoingContext(ctx)
	for name, values := range md {
		for _, v := range values {
			req.Header().Add(name, v)
		}
	}
	return req, err
}

// Invoke implements grpc.ClientConnInterface.
func (c *webConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	req, err := packedFrom(ctx, args)
	if err != nil {
		return err
	}
	resp, err := c.client(method).CallUnary(ctx, req)
	if err != nil {
		return grpcError(err)
	}
	return proto.Unmarshal(resp.Msg.raw, reply.(proto.Message))
}

// NewStream implements grpc.ClientConnInterface. The request is sent when its sender is done.
func (c *webConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &webStream{ctx: ctx, conn: c, method: method, streams: desc.ServerStreams}, nil
}

// webStream is a call of one request.
type webStream struct {
	ctx     context.Context
	conn    *webConn
	method  string
	streams bool
	request any
	stream  *connect.ServerStreamForClient[packed]
}

func (s *webStream) SendMsg(m any) error { s.request = m; return nil }

func (s *webStream) CloseSend() (err error) {
	if !s.streams {
		return nil
	}
	req, err := packedFrom(s.ctx, s.request)
	if err != nil {
		return err
	}
	s.stream, err = s.conn.client(s.method).CallServerStream(s.ctx, req)
	return err
}

func (s *webStream) RecvMsg(m any) error {
	if !s.streams {
		return s.conn.Invoke(s.ctx, s.method, s.request, m)
	}
	if s.stream.Receive() {
		return proto.Unmarshal(s.stream.Msg().raw, m.(proto.Message))
	}
	defer s.stream.Close()
	if err := s.stream.Err(); err != nil {
		return grpcError(err)
	}
	return io.EOF
}

func (s *webStream) Header() (metadata.MD, error) { return nil, nil }
func (s *webStream) Trailer() metadata.MD         { return nil }
func (s *webStream) Context() context.Context     { return s.ctx }

// grpcError is an error of Connect's as one of gRPC's.
func grpcError(err error) error {
	var e *connect.Error
	if !errors.As(err, &e) {
		return status.Error(codes.Unavailable, err.Error())
	}
	st := &spb.Status{Code: int32(e.Code()), Message: e.Message()}
	for _, d := range e.Details() {
		st.Details = append(st.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type(), Value: d.Bytes()})
	}
	return status.ErrorProto(st)
}
