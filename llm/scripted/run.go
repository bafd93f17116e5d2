package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
)

// RunOptions are the flags of the provider as a process of its own.
type RunOptions struct {
	// Listen is host:port. The host must be a loopback address or localhost: the control API has no lock.
	Listen string
	// ReadyFile, unless empty, is written by rename once connections are accepted, and removed at the end.
	ReadyFile string
	// ScriptFile, unless empty, is a JSON script; otherwise the demo is played without its pace.
	ScriptFile string
	// Stdout gets the one line that says where the provider listens; nil is os.Stdout.
	Stdout io.Writer
	Log    *slog.Logger
}

// ready is the content of the ready file.
type ready struct {
	PID    int    `json:"pid"`
	Listen string `json:"listen"`
}

// Run serves until the context ends and returns nil then.
func Run(ctx context.Context, options RunOptions) error {
	script, err := scriptOf(options.ScriptFile)
	if err != nil {
		return err
	}
	l, err := listenLoopback(ctx, options.Listen)
	if err != nil {
		return err
	}
	s := New(script, Options{Log: options.Log})
	s.setURL(l)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	err = announce(options, l.Addr().String())
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-served:
			served <- nil
		}
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	err = errors.Join(err, s.Close(closing), <-served)
	if options.ReadyFile != "" {
		err = errors.Join(err, removed(options.ReadyFile))
	}
	return err
}

func scriptOf(file string) (Script, error) {
	if file == "" {
		return DefaultScript(0), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return Script{}, fmt.Errorf("open script: %w", err)
	}
	defer f.Close()
	script, err := ParseScript(f)
	if err != nil {
		return Script{}, fmt.Errorf("script file %s: %w", file, err)
	}
	return script, nil
}

// listenLoopback refuses other addresses: whoever can reach the provider can script it.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: %w", address, err)
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen address %q: the scripted provider listens on loopback only, for example 127.0.0.1:0", address)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// announce writes the ready file and prints the ready line.
func announce(options RunOptions, listen string) error {
	if options.ReadyFile != "" {
		if err := writeReady(options.ReadyFile, ready{os.Getpid(), listen}); err != nil {
			return fmt.Errorf("write ready file: %w", err)
		}
	}
	out := options.Stdout
	if out == nil {
		out = os.Stdout
	}
	if _, err := fmt.Fprintf(out, "turnd scripted-provider ready listen=%s\n", listen); err != nil {
		return fmt.Errorf("print ready line: %w", err)
	}
	return nil
}

// writeReady renames a finished file into place, so that a reader sees all of it or nothing.
func writeReady(path string, content ready) error {
	raw, err := json.Marshal(content)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// removed removes a file that may be gone already.
func removed(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove ready file: %w", err)
	}
	return nil
}
