package client_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/turnd/turnd/client"
)

// firstByte is what a client says first to a target: P of HTTP/2's preface in the clear, 0x16 with TLS.
func firstByte(t *testing.T, target string) byte {
	t.Helper()
	near, far := net.Pipe()
	dialed := make(chan struct{}, 1)
	conn, err := client.Dial(target, grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
		select {
		case dialed <- struct{}{}:
			return near, nil
		default:
			return nil, net.ErrClosed
		}
	}))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan error, 1)
	go func() {
		called <- conn.Invoke(ctx, "/turns.v1.TurnService/GetTurn", &emptypb.Empty{}, &emptypb.Empty{})
	}()
	first := make([]byte, 1)
	_, err = far.Read(first)
	require.NoError(t, err)
	cancel()
	require.NoError(t, far.Close())
	require.Error(t, <-called)
	require.NoError(t, conn.Close())
	return first[0]
}

func TestOnlyTargetsOnThisMachineAreSpokenToInTheClear(t *testing.T) {
	for _, target := range []string{"127.0.0.1:8080", "localhost:8080", "[::1]:8080", "passthrough:///127.0.0.1:8080", "unix:turnd.sock"} {
		require.Equal(t, byte('P'), firstByte(t, target), target)
	}
	for _, target := range []string{"passthrough:///turnd.example:443", "passthrough:///127.0.0.1.example:443", "192.0.2.1:443"} {
		require.Equal(t, byte(0x16), firstByte(t, target), target)
	}
}

func TestATargetThatMakesNoSenseIsAnError(t *testing.T) {
	_, err := client.Dial("passthrough:///\x7f", grpc.WithTransportCredentials(nil))
	require.Error(t, err)
}
