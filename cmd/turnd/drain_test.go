package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// behindOneName is a connection to several processes, as through a load balancer of the given policy.
func behindOneName(t *testing.T, policy string, all ...*process) *grpc.ClientConn {
	t.Helper()
	r := manual.NewBuilderWithScheme("turnd")
	var state resolver.State
	for _, p := range all {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: p.ready.Listen})
	}
	r.InitialState(state)
	conn, err := client.Dial("turnd:///workers", grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"loadBalancingConfig":[{%q:{}}]}`, policy)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// count asks a database for a number.
func count(t *testing.T, database, query string) (n int) {
	t.Helper()
	pastTurnd(t, database, func(db *sql.DB) { require.NoError(t, db.QueryRowContext(t.Context(), query).Scan(&n)) })
	return n
}

// heard is what a stream came to.
type heard struct {
	name string
	text string
	end  *turnsv1.Event
	err  error
}

// crowd hears many streams at once.
type crowd struct {
	t     *testing.T
	all   sync.WaitGroup
	begun sync.WaitGroup

	mu    sync.Mutex
	heard []heard
}

// hear reads a stream to its end.
func (c *crowd) hear(name string, s *client.Stream) {
	c.begun.Add(1)
	begin := sync.OnceFunc(c.begun.Done)
	c.all.Go(func() {
		defer begin()
		h := heard{name: name}
		for e, err := range s.Events(c.t.Context()) {
			if h.err = err; err != nil {
				break
			}
			if e.GetDelta() != nil {
				begin()
			}
		}
		h.text, h.end = s.Reply().Text(), s.Reply().End()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.heard = append(c.heard, h)
	})
}

// send sends new turns.
func (c *crowd) send(conn *grpc.ClientConn, n int) (sent []*turnsv1.TurnInput) {
	for range n {
		in := hello(uuid.NewString()).GetInput()
		in.ConversationId = uuid.NewString()
		s, err := client.New(conn, client.Options{}).Send(c.t.Context(), in)
		require.NoError(c.t, err)
		c.hear("turn "+in.GetTurnId(), s)
		sent = append(sent, in)
	}
	return sent
}

// follow follows turns that are running.
func (c *crowd) follow(conn *grpc.ClientConn, sent []*turnsv1.TurnInput) {
	for _, in := range sent {
		c.hear("follower of "+in.GetTurnId(), client.New(conn, client.Options{}).Follow(in.GetConversationId(), client.Target{TurnID: in.GetTurnId()}, 0))
	}
}

// whole waits for all and demands that each has heard a whole reply.
func (c *crowd) whole(n int) {
	c.t.Helper()
	c.all.Wait()
	require.Len(c.t, c.heard, n)
	for _, h := range c.heard {
		require.NoError(c.t, h.err, h.name)
		require.NotNil(c.t, h.end.GetCompleted(), h.name)
		require.Equal(c.t, c.heard[0].text, h.text, h.name)
	}
}

func TestADrainUnderLoadLosesNoReplyAndNoClientSeesAnError(t *testing.T) {
	const n = 24
	database := emptyDatabases[enginePostgres](t)
	provider, file := fast(t, gated())
	leaving, staying := serveModels(t, database, file), serveModels(t, database, file)
	conn := behindOneName(t, "round_robin", leaving, staying)
	c := &crowd{t: t}
	sent := c.send(behindOneName(t, "pick_first", leaving, staying), n/2)
	sent = append(sent, c.send(behindOneName(t, "pick_first", staying, leaving), n/2)...)
	c.begun.Wait()
	require.Equal(t, n/2, count(t, database, `SELECT min(n) FROM (SELECT count(*) AS n FROM turns WHERE status = 'in_flight' GROUP BY owner) o`))
	c.follow(conn, sent)
	c.begun.Wait()
	leaving.signal(syscall.SIGTERM)
	late := c.send(conn, 6)
	c.begun.Wait()
	require.NoError(t, provider.OpenGate("mid"))
	c.whole(2*n + len(late))
	require.Equal(t, 0, leaving.code())
	require.Equal(t, n+len(late), provider.Counts().Requests)
	require.Zero(t, count(t, database, `SELECT count(*) FROM turns WHERE role = 'assistant' AND status <> 'complete'`))
	require.Zero(t, count(t, database, `SELECT count(*) FROM provider_calls WHERE class <> 'ok'`))
	require.Equal(t, 1, count(t, database, `SELECT count(*) FROM workers WHERE dead`))
}

func TestADrainDoesNotWaitForFollowersOfOtherWorkersReplies(t *testing.T) {
	database := emptyDatabases[enginePostgres](t)
	provider, file := fast(t, gated())
	leaving, staying := serveModels(t, database, file, "--grace", "10m"), serveModels(t, database, file)
	c := &crowd{t: t}
	sent := c.send(behindOneName(t, "pick_first", staying), 1)
	c.begun.Wait()
	c.follow(behindOneName(t, "pick_first", leaving, staying), sent)
	c.begun.Wait()
	leaving.signal(syscall.SIGTERM)
	require.Equal(t, 0, leaving.code(), "though the reply still runs")
	require.NoError(t, provider.OpenGate("mid"))
	c.whole(2)
}

// spooledFiles lists what lies in a spool.
func spooledFiles(t *testing.T, dir string) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // dropped meanwhile
		}
		if err == nil && !e.IsDir() {
			all = append(all, path)
		}
		return err
	}))
	return all
}

func TestRepliesThatEndWhileTheDatabaseIsAwaySurviveTheirProcess(t *testing.T) {
	const n = 5
	database := emptyDatabases[enginePostgres](t)
	between := proxied(t, database)
	provider, file := fast(t, gated())
	dir := filepath.Join(t.TempDir(), "spool")
	p := serveModels(t, between.url, file, "--grace", "100ms", "--spool-dir", dir)
	conn := connect(t, p)
	var sent []*turnsv1.TurnRequest
	for range n {
		request := hello(uuid.NewString())
		untilItRuns(t, conn, request)
		sent = append(sent, request)
	}
	between.cut()
	require.NoError(t, provider.OpenGate("mid"))
	p.until(func() bool { return provider.Counts().Running == 0 })
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.code(), "nothing is lost")
	require.Regexp(t, `endings spooled.* replies=5`, p.err.String())
	require.Len(t, spooledFiles(t, dir), n)

	between.open()
	next := serveModels(t, between.url, file, "--spool-dir", dir)
	next.until(func() bool { return len(spooledFiles(t, dir)) == 0 })
	for _, request := range sent {
		text, last := take(t, connect(t, next), request.GetInput().GetTurnId(), ignore)
		require.NotNil(t, last.GetCompleted())
		require.NotEmpty(t, text)
	}
	require.Equal(t, n, provider.Counts().Requests)
	require.Equal(t, n, count(t, database, `SELECT count(*) FROM provider_calls WHERE class = 'ok' AND token_source = 'reported' AND wasted_tokens = 0`))
	require.Equal(t, n, count(t, database, `SELECT count(*) FROM provider_calls`))
	require.Equal(t, n, count(t, database, `SELECT count(*) FROM turns WHERE role = 'assistant' AND status = 'complete'`))
}

// overWithoutADatabase is a process that drains for as long as it may, with replies that are over and can't be stored.
func overWithoutADatabase(t *testing.T, n int) (p *process, spool string) {
	t.Helper()
	between := proxied(t, emptyDatabases[enginePostgres](t))
	provider, file := fast(t, gated())
	spool = filepath.Join(t.TempDir(), "spool")
	p = serveModels(t, between.url, file, "--grace", "10m", "--lease", "10m", "--spool-dir", spool)
	conn := connect(t, p)
	for range n {
		untilItRuns(t, conn, hello(uuid.NewString()))
	}
	between.cut()
	require.NoError(t, provider.OpenGate("mid"))
	p.until(func() bool { return provider.Counts().Running == 0 })
	p.signal(syscall.SIGTERM)
	p.until(func() bool { return strings.Contains(p.err.String(), "draining") })
	require.Empty(t, spooledFiles(t, spool), "it is not time yet")
	p.signal(syscall.SIGTERM)
	return p, spool
}

func TestASecondSignalSpoolsWhatTheDatabaseDoesNotTake(t *testing.T) {
	p, spool := overWithoutADatabase(t, 3)
	require.Equal(t, 0, p.code(), "nothing is lost")
	require.Len(t, spooledFiles(t, spool), 3)
}

func TestAThirdSignalEndsTheProcessAtOnce(t *testing.T) {
	p, _ := overWithoutADatabase(t, 1)
	p.until(func() bool { return strings.Contains(p.err.String(), "a third ends the process") })
	p.signal(syscall.SIGINT)
	require.Equal(t, 1, p.code())
}

// untilItRuns sends a turn and goes on listening to it in the background, once the first bytes of its reply are here.
func untilItRuns(t *testing.T, conn *grpc.ClientConn, request *turnsv1.TurnRequest) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := turnsv1.NewTurnServiceClient(conn).Turn(ctx, request)
	require.NoError(t, err)
	for begun := false; !begun; {
		m, err := stream.Recv()
		require.NoError(t, err)
		begun = m.GetEvent().GetDelta() != nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var err error
		for err == nil {
			_, err = stream.Recv()
		}
		if err == io.EOF {
			t.Error("a stream ended as if its reply were stored")
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestASpoolThatWasNamedAndCannotBeWrittenIsAnError(t *testing.T) {
	text := fails(t, 1, nil, "serve", "--demo", "--listen", ":0", "--database-url", emptyDatabases[engineSQLite](t), "--spool-dir", "/dev/null/spool")
	require.Contains(t, text, "turnd: --spool-dir: make the spool dir")
}

func TestWithoutAPlaceForASpoolItIsServedAndSaid(t *testing.T) {
	p := serve(t, emptyDatabases[engineSQLite](t)) // without a home directory
	require.Contains(t, p.err.String(), "WRN there is no spool")
}
