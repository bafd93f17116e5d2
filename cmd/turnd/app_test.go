package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// quiet are settings on free ports and a fresh file.
func quiet(t *testing.T) Config {
	t.Helper()
	c := defaults(t)
	c.Listen, c.OpsListen, c.Demo = "127.0.0.1:0", "127.0.0.1:0", true
	c.Database.DatabaseURL = "sqlite://" + filepath.Join(t.TempDir(), "turnd.db")
	c.SpoolDir = filepath.Join(t.TempDir(), "spool")
	return c
}

// whenReady is a stdout that ends the process's context once the ready line is there.
type whenReady struct {
	bytes.Buffer
	act func()
}

func (w *whenReady) Write(p []byte) (int, error) {
	defer w.act()
	return w.Buffer.Write(p)
}

func TestNothingIsLeftRunningAfterADrain(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdout, stderr := &whenReady{act: cancel}, &bytes.Buffer{}
	require.NoError(t, serveApp(ctx, haste{t.Context()}, quiet(t), slog.New(slog.DiscardHandler), stdout, stderr))
	require.True(t, strings.HasPrefix(stdout.String(), "turnd ready listen=127.0.0.1:"))
	require.Contains(t, stderr.String(), "This is a demo")
}

func TestNothingIsLeftRunningWhenAStepOfTheStartFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	for _, change := range []func(*Config){
		func(c *Config) { c.Demo, c.Models = false, "/no/such/file.yaml" },
		func(c *Config) { c.Database.DatabaseURL = "sqlite:///dev/null/turnd.db" },
		func(c *Config) { c.Listen = taken.Addr().String() },
		func(c *Config) { c.OpsListen = taken.Addr().String() },
		func(c *Config) { c.ReadyFile = "/no/such/dir/ready.json" },
	} {
		c := quiet(t)
		change(&c)
		stdout := &whenReady{act: func() {}}
		require.Error(t, serveApp(t.Context(), haste{t.Context()}, c, slog.New(slog.DiscardHandler), stdout, &bytes.Buffer{}))
		require.Empty(t, stdout.String())
	}
}

func TestAStartThatFailedLeavesTheFileToTheNextOne(t *testing.T) {
	c := quiet(t)
	c.ReadyFile = "/no/such/dir/ready.json"
	require.Error(t, serveApp(t.Context(), haste{t.Context()}, c, slog.New(slog.DiscardHandler), &bytes.Buffer{}, &bytes.Buffer{}))
	c.ReadyFile = ""
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.NoError(t, serveApp(ctx, haste{t.Context()}, c, slog.New(slog.DiscardHandler), &whenReady{act: cancel}, &bytes.Buffer{}))
}
