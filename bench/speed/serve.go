package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // on the mux that announce serves
	"os"
	"runtime"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/bench/speed/floor"
	"github.com/turnd/turnd/bench/speed/load"
)

// served is what a floor, or the sink, is started with.
type served struct {
	// Ready is the file that says where it listens.
	Ready string `json:"ready"`
	// Provider is the address of a provider to relay, DSN a database to look up rows in with Bytes of text each; a floor that
	// has neither answers calls alone.
	Provider string `json:"provider,omitempty"`
	DSN      string `json:"dsn,omitempty"`
	Bytes    int    `json:"bytes,omitempty"`
	// Sink takes spans instead of being a floor.
	Sink bool `json:"sink,omitempty"`
}

// serveProcess is a floor's server, or the sink, by itself, until it is told to end.
func serveProcess(ctx context.Context, args []string) error {
	var s served
	if len(args) != 1 {
		return fmt.Errorf("a server takes one spec, not %d", len(args))
	}
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return fmt.Errorf("spec of a server: %w", err)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serve := s.floor
	if s.Sink {
		serve = s.sink
	}
	return serve(ctx, l)
}

// announce says where the process listens, after it has begun to show its profiles on another port.
func (s served) announce(ctx context.Context, l net.Listener) error {
	var config net.ListenConfig
	ops, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.DefaultServeMux, ReadHeaderTimeout: time.Minute} // where net/http/pprof is
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(ops) }()
	return writeReady(s.Ready, rig.Ready{Listen: l.Addr().String(), Ops: ops.Addr().String()})
}

// writeReady writes a ready file, by rename, so that a reader finds all of it.
func writeReady(path string, r rig.Ready) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (s served) floor(ctx context.Context, l net.Listener) error {
	service := &floor.Service{}
	if s.Provider != "" {
		service.Provider = floor.NewProvider(s.Provider, load.Ask)
	}
	if s.DSN != "" {
		pool, err := floor.Connect(ctx, s.DSN, lookupConns)
		if err != nil {
			return err
		}
		defer pool.Close()
		if err := floor.Fill(ctx, pool, strings.Repeat("x", s.Bytes)); err != nil {
			return err
		}
		service.Pool = pool
	}
	server := grpc.NewServer(grpc.NumStreamWorkers(streamWorkers))
	service.Register(server)
	heap := make([]byte, heapFloor)
	defer runtime.KeepAlive(heap)
	context.AfterFunc(ctx, server.Stop)
	if err := s.announce(ctx, l); err != nil {
		return err
	}
	return server.Serve(l)
}

const (
	// lookupConns is as many connections as the service has.
	lookupConns = 16
	// streamWorkers and heapFloor are the service's: kept goroutines for calls, and memory that is never touched so that garbage
	// is not collected for next to nothing. A floor is as fast as it can be made.
	streamWorkers = 64
	heapFloor     = 64 << 20
)

func (s served) sink(ctx context.Context, l net.Listener) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: newSink(), Protocols: protocols, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := s.announce(ctx, l); err != nil {
		return err
	}
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
