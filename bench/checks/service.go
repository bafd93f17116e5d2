package main

import (
	"fmt"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/turnd/turnd/bench/rig"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// service is one running turnd with a client.
type service struct {
	*process
	ready rig.Ready
	conn  *grpc.ClientConn
	turns turnsv1.TurnServiceClient
}

// serve starts turnd on an engine.
func (l *lab) serve(e engine, models string, args ...string) (*service, error) {
	file := filepath.Join(l.dir, fmt.Sprintf("ready-%d.json", len(l.procs)))
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--ready-file", file, "--database-url", e.url,
		"--migrate", "on", "--models", models, "--spool-dir", filepath.Join(l.dir, "spool")}, args...)
	p, err := l.start("turnd-"+e.name, l.bin, args...)
	if err != nil {
		return nil, err
	}
	r, err := l.awaitReady(p, file)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(r.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		return nil, err
	}
	return &service{process: p, ready: r, conn: conn, turns: turnsv1.NewTurnServiceClient(conn)}, nil
}

// models writes a models file with one endpoint a wire; model "anthropic" and model "openai" are the two.
func (l *lab) models(base string) (string, error) {
	return l.write("models.yaml", fmt.Sprintf(`version: 1
default_model: anthropic
endpoints:
  one: {wire: anthropic.messages, base_url: %q}
  two: {wire: openai.chat, base_url: %q}
models:
  anthropic: {route: [{endpoint: one, model: demo}]}
  openai: {route: [{endpoint: two, model: demo}]}
`, base, base))
}
