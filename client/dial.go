package client

import (
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Dial makes a connection that fits a Client: gRPC retries nothing on it and takes no service config from name
// resolution, since tries are this package's own matter. A target on loopback or a Unix socket is spoken to in the clear,
// any other by TLS with the roots of the system; opts come last and can change all of it. Nothing is connected yet.
func Dial(target string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	creds := credentials.NewTLS(nil)
	if isLocal(target) {
		creds = insecure.NewCredentials()
	}
	own := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		// A server that is back has to be found before the tries of a Client run out.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	conn, err := grpc.NewClient(target, append(own, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", target, err)
	}
	return conn, nil
}

// isLocal tells targets that no wire leads to.
func isLocal(target string) bool {
	if strings.HasPrefix(target, "unix:") || strings.HasPrefix(target, "unix-abstract:") {
		return true
	}
	if i := strings.LastIndex(target, "/"); i >= 0 {
		target = target[i+1:]
	}
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		host = strings.Trim(target, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
