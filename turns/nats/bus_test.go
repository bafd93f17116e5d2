package natsbus_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
	"github.com/turnd/turnd/turns/live/bustest"
	natsbus "github.com/turnd/turnd/turns/nats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startServer starts a NATS server of the test's own; port 0 takes any.
func startServer(t testing.TB, port int) *server.Server {
	t.Helper()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true})
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(30*time.Second))
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	return s
}

func newBus(url string) *natsbus.Bus {
	return natsbus.New(natsbus.Config{URL: url, Prefix: "test", Logger: slog.New(slog.DiscardHandler)})
}

func TestTheNATSBusKeepsTheContract(t *testing.T) {
	bustest.Run(t, func(t testing.TB, n int) []live.Bus {
		url := startServer(t, 0).ClientURL()
		buses := make([]live.Bus, n)
		for i := range buses {
			buses[i] = newBus(url)
		}
		return buses
	})
}

// listener notes what a bus delivers.
type listener struct {
	taken     atomic.Int64
	lengths   sync.Map
	connected atomic.Bool
}

func (l *listener) Take(hints []live.Hint) {
	for _, h := range hints {
		l.lengths.Store(h.Length, true)
	}
	l.taken.Add(int64(len(hints)))
}

func (l *listener) heard(length uint32) bool {
	_, yes := l.lengths.Load(length)
	return yes
}

func (l *listener) Connected(yes bool) { l.connected.Store(yes) }

func run(t *testing.T, bus *natsbus.Bus) *listener {
	l := new(listener)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- bus.Run(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return l
}

func eventually(t *testing.T, yes func() bool) {
	t.Helper()
	require.Eventually(t, yes, 30*time.Second, 2*time.Millisecond)
}

func TestAServerThatComesLateOrAgainIsFound(t *testing.T) {
	first := startServer(t, 0)
	url, port := first.ClientURL(), first.Addr().(*net.TCPAddr).Port
	first.Shutdown()
	first.WaitForShutdown()
	ear, mouth := newBus(url), newBus(url)
	reply := turns.ReplyID{UUID: uuid.New()}
	ear.Watch(reply, live.TopicNews)
	heard := run(t, ear)
	run(t, mouth)
	require.Error(t, mouth.Publish(t.Context(), []live.Hint{{Reply: reply}}), "nobody is there")
	for range 2 {
		s := startServer(t, port)
		before := heard.taken.Load()
		eventually(t, func() bool {
			_ = mouth.Publish(t.Context(), []live.Hint{{Reply: reply}}) // fails until the server is found
			return heard.taken.Load() > before
		})
		s.Shutdown()
		s.WaitForShutdown()
		eventually(t, func() bool { return !heard.connected.Load() })
	}
}

func TestOnlyWhatIsWatchedArrives(t *testing.T) {
	url := startServer(t, 0).ClientURL()
	ear, mouth := newBus(url), newBus(url)
	heard, ready := run(t, ear), run(t, mouth)
	eventually(t, func() bool { return heard.connected.Load() && ready.connected.Load() })
	watched, other := turns.ReplyID{UUID: uuid.New()}, turns.ReplyID{UUID: uuid.New()}
	ear.Watch(other, live.TopicNews)
	ear.Watch(watched, live.TopicNews)
	ear.Watch(watched, live.TopicNews)
	ear.Unwatch(watched, live.TopicNews)
	ear.Unwatch(other, live.TopicNews)
	eventually(t, func() bool {
		require.NoError(t, mouth.Publish(t.Context(), []live.Hint{{Reply: watched}}))
		return heard.taken.Load() > 0
	})
	// One connection keeps the order: what comes last says that the others would be there.
	require.NoError(t, mouth.Publish(t.Context(), []live.Hint{
		{Reply: other, Length: 1}, {Reply: watched, Stop: true, Length: 2}, {Reply: watched, Length: 3}}))
	eventually(t, func() bool { return heard.heard(3) })
	require.False(t, heard.heard(1), "nobody follows it here")
	require.False(t, heard.heard(2), "nobody runs it here")
	ear.Unwatch(watched, live.TopicNews)
}

func TestGarbageOnASubjectIsPassedOver(t *testing.T) {
	url := startServer(t, 0).ClientURL()
	ear, mouth := newBus(url), newBus(url)
	reply := turns.ReplyID{UUID: uuid.New()}
	ear.Watch(reply, live.TopicNews)
	heard, ready := run(t, ear), run(t, mouth)
	eventually(t, func() bool { return heard.connected.Load() && ready.connected.Load() })
	conn, err := nats.Connect(url)
	require.NoError(t, err)
	defer conn.Close()
	subject := "test.r." + strings.ReplaceAll(reply.String(), "-", "")
	for _, data := range []string{"", "garbage", "\x01", "\x01\x00\x00\x00\x00", "\xff\xff\xff\xff\xff"} {
		require.NoError(t, conn.Publish(subject, []byte(data)))
	}
	require.NoError(t, conn.Flush())
	eventually(t, func() bool {
		require.NoError(t, mouth.Publish(t.Context(), []live.Hint{{Reply: reply}}))
		return heard.taken.Load() > 0
	})
}

// frozenServer speaks the protocol until a client is connected, and then reads nothing more, as a server that was stopped.
func frozenServer(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var served sync.WaitGroup
	ended := make(chan struct{})
	t.Cleanup(func() {
		close(ended)
		require.NoError(t, l.Close())
		served.Wait()
	})
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				defer conn.Close()
				fmt.Fprintf(conn, "INFO {\"server_id\":\"frozen\",\"version\":\"2.11.0\",\"proto\":1,\"headers\":true,\"max_payload\":1048576}\r\n")
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if strings.HasPrefix(lines.Text(), "PING") {
						fmt.Fprint(conn, "PONG\r\n")
						break
					}
				}
				<-ended
			})
		}
	})
	return "nats://" + l.Addr().String()
}

func TestAServerThatIsStoppedHoldsUpNobody(t *testing.T) {
	bus := newBus(frozenServer(t))
	l := run(t, bus)
	eventually(t, l.connected.Load)
	reply := turns.ReplyID{UUID: uuid.New()}
	var publishing sync.WaitGroup
	refused := make(chan struct{})
	publishing.Go(func() { // more than the sockets between take
		defer close(refused)
		text := turns.Piece{Kind: turns.KindText, Starts: true, Text: strings.Repeat("x", 60<<10)}
		for bus.Publish(context.Background(), []live.Hint{{Reply: reply, Pieces: []turns.Piece{text}}}) == nil {
		}
	})
	defer publishing.Wait()
	asked := make(chan struct{})
	publishing.Go(func() {
		defer close(asked)
		for open := true; open; {
			bus.Watch(reply, live.TopicStops)
			bus.Unwatch(reply, live.TopicStops)
			select {
			case <-refused:
				open = false
			default:
			}
		}
	})
	select {
	case <-asked:
	case <-time.After(20 * time.Second):
		t.Error("who asks for hints, as each claim does, waits for the server")
	}
}
