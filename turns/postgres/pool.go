package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// limits are how long the parts of one use of a connection may take. None is waited for longer, whatever the network does.
type limits struct {
	connect   time.Duration // making a connection to one of the hosts, unless the URL has a connect_timeout
	idle      time.Duration // how long a connection may be idle without being looked at before its next use
	ping      time.Duration // that look
	wait      time.Duration // for a connection of the pool, a new one included
	statement time.Duration
}

var defaultLimits = limits{
	connect: 3 * time.Second, idle: time.Second, ping: 2 * time.Second, wait: 5 * time.Second, statement: 10 * time.Second,
}

// ErrReadOnly says that the server takes no writes: it is a standby, or was set to be read-only.
var ErrReadOnly = errors.New("this Postgres takes no writes")

// errSlow is a statement or a wait that took longer than it may. What the driver says of it is dropped, since it looks
// as if the caller's time had run out.
var errSlow = errors.New("the database did not answer in time")

// pool is a bounded number of connections.
//
// A connection that breaks leaves the pool at once and is closed beside it. The pool of the driver would keep its place
// taken until the closing ends, which takes as long as the server stays silent: for the one connection of a lease that is
// longer than the lease.
type pool struct {
	*pgxpool.Pool
	limits  limits
	pooled  bool
	closing sync.WaitGroup
}

func newPool(ctx context.Context, config Config, conns int) (*pool, error) {
	p := &pool{limits: defaultLimits, pooled: config.Pooled}
	if config.StatementTime > 0 {
		p.limits.statement = config.StatementTime
	}
	c, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, fmt.Errorf("read the database's address: %w", err)
	}
	c.MaxConns, c.MinConns, c.MinIdleConns = int32(conns), 0, 0
	c.ShouldPing = noteIdle
	if c.ConnConfig.ConnectTimeout <= 0 {
		c.ConnConfig.ConnectTimeout = p.limits.connect
	}
	c.ConnConfig.DialFunc = dial
	c.ConnConfig.ValidateConnect = p.validate
	if config.Pooled && c.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	switch {
	case config.Trace != nil:
		c.ConnConfig.Tracer = tracer(config.Trace)
	case config.Tracer != nil:
		c.ConnConfig.Tracer = config.Tracer
	}
	if p.Pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return nil, fmt.Errorf("make a pool of connections: %w", err)
	}
	return p, nil
}

// dial notices within half a minute that the other end of a connection is gone, also of one that nobody uses.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	return d.DialContext(ctx, network, address)
}

// validate refuses a server that takes no writes, so that the next host is tried, and sets up the session.
//
// Every guard relies on read committed: a statement that waited for a row sees the row as it is then. A server or role
// with a stricter default would answer such a wait with an error. The server's own limit ends what this end has given up
// and could no longer cancel; it stays unset where the URL or the role sets one, and behind a pooler, which would hand the
// session with its setting to others. So do the settings of plans.
func (p *pool) validate(ctx context.Context, conn *pgconn.PgConn) error {
	const readOnly = `SELECT current_setting('transaction_read_only'), CASE WHEN current_setting('default_transaction_isolation') <> 'read committed'
		THEN set_config('default_transaction_isolation', 'read committed', false) END`
	sql := readOnly
	if !p.pooled {
		sql += fmt.Sprintf(`, CASE WHEN current_setting('statement_timeout') = '0' THEN set_config('statement_timeout', '%d', false) END`,
			2*p.limits.statement.Milliseconds()) + planning
	}
	results, err := conn.Exec(ctx, sql).ReadAll()
	switch {
	case err != nil:
		return err
	case len(results) != 1 || len(results[0].Rows) != 1:
		return errors.New("the server answered in an unknown way")
	case string(results[0].Rows[0][0]) != "off":
		return ErrReadOnly
	}
	return nil
}

// planning has each statement planned once for a session, for whatever it is called with, and makes that one plan good for
// tables of any size: rows are found by keys, one by one, and each row that is read counts. What the server would choose by size
// instead is right for the table that it planned for, which may have been empty. No statement reads so much that other processes
// could help: to start them takes a hundred times as long as a page of a list. Where plan_cache_mode is set otherwise, all is left to whoever did that.
const planning = `, CASE WHEN current_setting('plan_cache_mode') = 'auto' THEN ARRAY[
	set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false),
	set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false),
	set_config('enable_hashjoin', 'off', false), set_config('enable_mergejoin', 'off', false),
	set_config('enable_material', 'off', false), set_config('enable_memoize', 'off', false),
	set_config('cpu_tuple_cost', '1', false), set_config('max_parallel_workers_per_gather', '0', false)] END`

const idleKey = "turnd.idle"

// noteIdle leaves the ping to take, which knows how to let go of a connection that does not answer it.
func noteIdle(_ context.Context, params pgxpool.ShouldPingParams) bool {
	params.Conn.PgConn().CustomData()[idleKey] = params.IdleDuration
	return false
}

// use runs do with a connection, once. Its error is raw, for mapRead and mapWrite: notSent if nothing can have reached the
// server, errSlow if the statement took longer than it may.
func (p *pool) use(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	conn, err := p.take(ctx)
	if err != nil {
		return notSent{err}
	}
	within, cancel := context.WithTimeout(ctx, p.limits.statement)
	defer cancel()
	err = do(within, conn)
	p.give(conn, err)
	if err == nil || ctx.Err() != nil || within.Err() == nil {
		return err
	}
	slow := fmt.Errorf("%w: %s for a statement", errSlow, p.limits.statement)
	if pgconn.SafeToRetry(err) {
		return notSent{slow}
	}
	return slow
}

// take gives a connection that has answered not long ago.
func (p *pool) take(ctx context.Context) (*pgxpool.Conn, error) {
	within, cancel := context.WithTimeout(ctx, p.limits.wait)
	defer cancel()
	for {
		conn, err := p.Acquire(within)
		if err == nil && !p.answers(within, conn) {
			continue
		}
		if err != nil && ctx.Err() == nil && within.Err() != nil {
			s := p.Stat()
			err = fmt.Errorf("%w: %s for a connection, %d of %d in use", errSlow, p.limits.wait, s.AcquiredConns(), s.MaxConns())
		}
		return conn, err
	}
}

// answers pings a connection that was idle for a while, and lets go of one that does not answer.
func (p *pool) answers(ctx context.Context, conn *pgxpool.Conn) bool {
	data := conn.Conn().PgConn().CustomData()
	idle, _ := data[idleKey].(time.Duration)
	delete(data, idleKey)
	if idle <= p.limits.idle {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, p.limits.ping)
	defer cancel()
	err := conn.Ping(ctx)
	if err == nil && !p.movedOn(conn, nil) {
		return true
	}
	p.letGo(conn)
	return false
}

// give brings a connection back after a use that ended in err.
func (p *pool) give(conn *pgxpool.Conn, err error) {
	switch {
	case p.movedOn(conn, err):
		p.Reset() // the others lead to the same server
		p.letGo(conn)
	case conn.Conn().IsClosed():
		p.letGo(conn)
	default:
		conn.Release()
	}
}

// movedOn reports a server that has stopped to take writes since the connection was made. It tells so by itself, except
// through a pooler.
func (p *pool) movedOn(conn *pgxpool.Conn, err error) bool {
	if state, ok := sqlState(err); ok && state == stateReadOnly {
		return true
	}
	c := conn.Conn().PgConn()
	return !p.pooled && (c.ParameterStatus("in_hot_standby") == "on" || c.ParameterStatus("default_transaction_read_only") == "on")
}

// letGo takes a connection out of the pool and closes it beside it.
func (p *pool) letGo(conn *pgxpool.Conn) {
	c := conn.Hijack()
	p.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), p.limits.connect)
		defer cancel()
		_ = c.Close(ctx) // it is broken, and the server finds that out by itself
		<-c.PgConn().CleanupDone()
	})
}

// Close waits for running statements and for connections that are being closed: up to 15 s for one whose other end is
// silent.
func (p *pool) Close() {
	p.Pool.Close()
	p.closing.Wait()
}
