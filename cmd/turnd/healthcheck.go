package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/turnd/turnd/server"
)

// maxHealthAnswer bounds what is read of an answer.
const maxHealthAnswer = 4 << 10

// healthcheckCmd asks a turnd about its health, for supervisors that can only run a program, as Docker can, in an image that has no other.
type healthcheckCmd struct {
	OpsListen string        `env:"TURND_OPS_LISTEN" default:"127.0.0.1:9464" placeholder:"ADDRESS" help:"The ops listener of the turnd to ask, as its serve has it."`
	Live      bool          `help:"Ask only whether it must be restarted, and not whether to send it work."`
	Timeout   time.Duration `default:"3s" placeholder:"TIME" help:"How long to wait for the answer."`
}

// Run implements the command.
func (c healthcheckCmd) Run(ctx context.Context) error {
	if c.OpsListen == off {
		return usageError{errors.New("--ops-listen: it is off, so that nothing can be asked")}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	path := server.PathReadyz
	if c.Live {
		path = server.PathHealthz
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+reachable(localAddress(c.OpsListen))+path, nil)
	if err != nil {
		return usageError{fmt.Errorf("--ops-listen: %w", err)}
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask for health: %w; --ops-listen is to name the ops listener of a turnd that runs", err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxHealthAnswer))
	if err != nil {
		return fmt.Errorf("ask for health: %w", err)
	}
	if answer.StatusCode == http.StatusNotFound {
		return errors.New("there is no health page: --ops-listen is to name the ops listener, not that of the API")
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not healthy: %s", strings.ReplaceAll(strings.TrimSpace(string(body)), "\n", ", "))
	}
	return nil
}

// reachable is where to connect to for a listener's address: one that is for all addresses of this machine has none itself.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		if ip.Is4() {
			host = "127.0.0.1"
		} else {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}
