// Command follower follows the replies of turns that others have sent, and hands each on once it is over. It is told of turns
// on standard input or by a webhook, and delivers to standard output or to a URL.
//
// To follow starts nothing and stops nothing. How far it is with each turn is in a file of the turn's, so that after a
// restart it goes on from there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"github.com/turnd/turnd/client"
)

type config struct {
	server, records, listen, forward, token string
}

func main() {
	c := config{token: os.Getenv("TURND_TOKEN")}
	flag.StringVar(&c.server, "server", "127.0.0.1:8080", "`address` of turnd")
	flag.StringVar(&c.records, "records", "followed", "`folder` to keep records of what is followed in")
	flag.StringVar(&c.listen, "listen", "", "`address` to be told of turns at, by POST /follow; without it, turns are read from standard input")
	flag.StringVar(&c.forward, "forward", "", "`URL` to deliver to; without it, replies are printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c, os.Stdin, os.Stdout, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "follower:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c config, in io.Reader, out io.Writer, log *slog.Logger) error {
	var options []grpc.DialOption
	if c.token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(c.token)))
	}
	conn, err := client.Dial(c.server, options...)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	deliver := printTo(out)
	if c.forward != "" {
		deliver = postTo(c.forward, &http.Client{Timeout: 30 * time.Second})
	}
	f := &Follower{
		// A service waits for turnd for as long as it takes.
		client:  client.New(conn, client.Options{MaxReconnects: math.MaxInt, MaxWait: math.MaxInt64, Logger: log}),
		records: Records(c.records), deliver: deliver, log: log, followed: map[Turn]bool{},
	}
	if err := f.Resume(ctx); err != nil {
		return err
	}
	defer f.Wait()
	if c.listen == "" {
		return f.readTurns(ctx, in)
	}
	return serve(ctx, c.listen, f.webhook(ctx))
}

// serve serves until the context ends.
func serve(ctx context.Context, address string, handler http.Handler) error {
	server := &http.Server{Addr: address, Handler: handler, ReadTimeout: 10 * time.Second}
	stopped := make(chan error, 1)
	go func() { stopped <- server.ListenAndServe() }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx))
	}
}

// bearer is an API key, sent with each call.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials. A key is not sent in the clear.
func (b bearer) RequireTransportSecurity() bool { return true }
