package server

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"connectrpc.com/vanguard"
	"google.golang.org/grpc"
)

// maxTranscoded bounds a message that is translated, on its way out too: several times the largest answer there is, which JSON
// makes larger. What comes in is bounded before, by Config.MaxRecvBytes.
const maxTranscoded = 512 << 20

// newTranscoder serves what speaks Connect, gRPC-Web or REST by a server of gRPC. Everything is translated to its protobuf
// form, whichever form it came in, so that one codec and one gate look at it.
func newTranscoder(bridge *grpc.Server, codec *codec, maxRecv int, unknown http.Handler) (http.Handler, error) {
	var services []*vanguard.Service
	for name := range bridge.GetServiceInfo() {
		services = append(services, vanguard.NewService(name, bridge))
	}
	unpack := func() connect.Decompressor { return &boundedGzip{most: int64(maxRecv)} }
	pack := func() connect.Compressor { return gzip.NewWriter(io.Discard) }
	t, err := vanguard.NewTranscoder(services,
		vanguard.WithDefaultServiceOptions(
			vanguard.WithTargetProtocols(vanguard.ProtocolGRPC),
			vanguard.WithTargetCodecs(vanguard.CodecProto),
			vanguard.WithNoTargetCompression(),
			vanguard.WithMaxMessageBufferBytes(maxTranscoded),
		),
		vanguard.WithCodec(func(r vanguard.TypeResolver) vanguard.Codec { return newJSONCodec(codec, r) }),
		vanguard.WithCodec(func(r vanguard.TypeResolver) vanguard.Codec { return bridgeCodec{vanguard.NewProtoCodec(r), codec} }),
		vanguard.WithCompression(vanguard.CompressionGzip, pack, unpack),
		vanguard.WithUnknownHandler(unknown),
	)
	if err != nil {
		return nil, fmt.Errorf("serve the web by gRPC: %w", err)
	}
	return t, nil
}

// boundedGzip unpacks no more than a request may have: a thousand times the bytes that came would else be no trouble to send.
type boundedGzip struct {
	most, left int64
	r          gzip.Reader
}

// Reset implements connect.Decompressor.
func (z *boundedGzip) Reset(r io.Reader) error {
	z.left = z.most
	return z.r.Reset(r)
}

// Read implements connect.Decompressor.
func (z *boundedGzip) Read(p []byte) (int, error) {
	n, err := z.r.Read(p)
	if z.left -= int64(n); z.left < 0 {
		return 0, connect.NewError(connect.CodeResourceExhausted, errTooLargeUnpacked)
	}
	return n, err
}

// Close implements connect.Decompressor.
func (z *boundedGzip) Close() error { return z.r.Close() }

var errTooLargeUnpacked = errors.New("the request is too large once it is unpacked; send less at a time")
