package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/internal/certs/certstest"
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

func TestAHandshakeThatDripsIsCutOffInTime(t *testing.T) {
	pair := certstest.NewAuthority(t).Issue(t).TLS(t)
	for _, config := range []*tls.Config{nil, {Certificates: []tls.Certificate{pair}}} {
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			lis := &flaky{conn: here, forGood: make(chan struct{})}
			s := newSplitter(lis, 2, 5*time.Second)
			s.tls = config
			ran := make(chan error, 1)
			go func() { ran <- s.run() }()
			began := time.Now()
			// A record of 512 bytes is announced in TLS, or a method that never ends, and comes a byte every two seconds.
			said := append([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc}, make([]byte, 500)...)
			if config == nil {
				said = []byte("GET")
			}
			var err error
			for i := 0; err == nil; i++ {
				if i < len(said) {
					_, err = there.Write(said[i : i+1])
					time.Sleep(2 * time.Second)
				} else {
					_, err = there.Read(make([]byte, 1))
				}
			}
			require.Less(t, time.Since(began), 9*time.Second)
			synctest.Wait()
			require.Len(t, s.slots, 1, "that of the next one")
			close(lis.forGood)
			require.ErrorIs(t, <-ran, errForGood)
		})
	}
}

func TestTheLongestSilentConnectionMakesRoomAndTheOthersStay(t *testing.T) {
	w := waiting{most: 2}
	var ends [3]net.Conn
	var leaves [3]func() bool
	for i := range ends {
		var here net.Conn
		here, ends[i] = net.Pipe()
		leaves[i] = w.join(here)
	}
	_ = ends[0].SetReadDeadline(time.Now())
	_, err := ends[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the first was closed")
	require.False(t, leaves[0]())
	require.True(t, leaves[1]())
	require.False(t, leaves[1](), "who has left is not in line")
	_, ends[0] = net.Pipe()
	w.join(ends[0])
	require.True(t, leaves[2](), "and nobody was closed for a place that was free")
}
