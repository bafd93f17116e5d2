package server

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// flaky is a listener that fails in passing a few times, then gives one connection, then, once told so, fails for good.
type flaky struct {
	passing int
	conn    net.Conn
	forGood chan struct{}
	closed  atomic.Bool
}

type passingError struct{ error }

func (passingError) Temporary() bool { return true }

var errForGood = errors.New("listener is broken")

func (l *flaky) Accept() (net.Conn, error) {
	if l.passing > 0 {
		l.passing--
		return nil, passingError{errors.New("too many open files")}
	}
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.forGood
	return nil, errForGood
}

func (l *flaky) Close() error {
	l.closed.Store(true)
	return nil
}

func (l *flaky) Addr() net.Addr { return &net.TCPAddr{} }

func TestAFailureOfAcceptThatPassesIsWaitedOutAndOneForGoodIsReturned(t *testing.T) {
	here, there := net.Pipe()
	lis := &flaky{passing: 3, conn: here, forGood: make(chan struct{})}
	s := newSplitter(lis, 2, time.Minute)
	ran := make(chan error, 1)
	go func() { ran <- s.run() }()
	_, err := there.Write([]byte(preface))
	require.NoError(t, err)
	conn, err := s.grpc.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	close(lis.forGood)
	require.ErrorIs(t, <-ran, errForGood)
	require.True(t, lis.closed.Load())
}

func TestACloseEndsTheWaitForAPassingFailure(t *testing.T) {
	s := newSplitter(&flaky{passing: 1 << 30}, 1, time.Minute)
	ran := make(chan error, 1)
	go func() { ran <- s.run() }()
	s.close()
	require.NoError(t, <-ran)
}

func TestAConnectionThatNobodyAcceptsAnyMoreIsClosed(t *testing.T) {
	here, there := net.Pipe()
	l := newConnListener(&net.TCPAddr{})
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	l.hand(here)
	_, err := there.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestAConnectionReadsFirstWhatWasReadOfItBefore(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	go func() { _, _ = there.Write([]byte("ef")) }()
	conn := &headConn{Conn: here, head: []byte("abcd")}
	var got []byte
	buf := make([]byte, 3)
	for len(got) < 6 {
		n, err := conn.Read(buf)
		require.NoError(t, err)
		got = append(got, buf[:n]...)
	}
	require.Equal(t, "abcdef", string(got))
}

func TestASlotIsGivenBackOnce(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	released := 0
	conn := &slotConn{Conn: here, release: func() { released++ }}
	require.NoError(t, conn.Close())
	_ = conn.Close()
	require.Equal(t, 1, released)
}
