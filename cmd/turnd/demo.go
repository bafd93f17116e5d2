package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/google/uuid"

	"github.com/turnd/turnd/llm/scripted"
)

// demo is the stand-in for a provider inside this process. It is reached over HTTP like any other, so that what is shown
// is the whole path; its control API is off.
type demo struct {
	server *scripted.Server
	served chan error
	url    string
}

func startDemo(ctx context.Context, logger *slog.Logger) (*demo, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the demo: %w", err)
	}
	d := &demo{
		server: scripted.New(scripted.DemoScript(), scripted.Options{Control: scripted.ControlOff, Log: logger}),
		served: make(chan error, 1),
		url:    "http://" + l.Addr().String(),
	}
	go func() { d.served <- d.server.Serve(l) }()
	return d, nil
}

// close ends the demo and everything it runs.
func (d *demo) close(ctx context.Context) error {
	if err := d.server.Close(ctx); err != nil {
		return fmt.Errorf("end the demo: %w", err)
	}
	return <-d.served
}

// hint tells a person at a terminal what they see, with lines to paste.
func hint(w io.Writer, program, listen string, secure, keyed bool) {
	listen = reachable(listen)
	chat, plain := addressFlag(listen), "-plaintext"
	if secure {
		chat, plain = chat+" --ca ROOTS.pem", "-cacert ROOTS.pem"
	}
	if keyed {
		program, plain = "TURND_KEY=KEY "+program, plain+" -H 'authorization: Bearer KEY'"
	}
	body := fmt.Sprintf(`{"input":{"turn_id":"%s","content":[{"text":{"text":"hello"}}]}}`, uuid.New())
	fmt.Fprintf(w, `
This is a demo: no model runs, every turn gets the same scripted answer. Try it from another terminal:

  %s chat%s -m "hello"
  grpcurl %s -d '%s' %s turns.v1.TurnService/Turn

Send the grpcurl line twice: the second time the same reply is replayed, and nobody is called.

`, program, chat, plain, body, listen)
}

// defaultAddress is where turnd chat looks for a service unless told otherwise.
const defaultAddress = "127.0.0.1:8080"

func addressFlag(listen string) string {
	if listen == defaultAddress {
		return ""
	}
	return " --server " + listen
}
