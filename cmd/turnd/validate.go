package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns"
)

// Bounds of settings.
const (
	// minLease leaves a renewal, each third of it, time for a round trip.
	minLease = 100 * time.Millisecond
	minTick  = 10 * time.Millisecond
	// maxContent leaves room for the rest of a message below the server's receive limit of 16 MiB.
	maxContent = 15 << 20
	// maxOutput is the end of the offsets.
	maxOutput = math.MaxUint32
	// maxCalls is more than a turn can sensibly cost, and far from the end of the columns that count calls.
	maxCalls = 1000
	// maxConns is what no Postgres serves, and maxPlaces what no process runs.
	maxConns  = 10_000
	maxPlaces = 1_000_000
	// maxWaiting keeps a line short enough to be read whole with each look at its conversation.
	maxWaiting = 1_000
)

// off is an address that is not listened at.
const off = "off"

// Validate finds everything that is wrong with the settings, each problem naming its flag. It is called when the command
// line has been read.
func (c Config) Validate() error {
	err := errors.Join(c.checkListeners(), c.checkAuth(), c.checkStore(), c.checkModels(), c.checkWorker(), c.checkBus(), c.TLS.check(), c.Telemetry.check(),
		oneOf("--log-format", c.LogFormat, logText, logJSON),
		oneOf("--log-level", c.LogLevel, levelDebug, levelInfo, levelWarn, levelError))
	if err != nil {
		return usageError{err}
	}
	return nil
}

func (c Config) checkListeners() error {
	if err := checkAddress("--listen", c.Listen); err != nil {
		return errors.Join(err, c.checkOps())
	}
	auth := server.CheckAuth(c.Auth, localAddress(c.Listen))
	if auth != nil {
		auth = fmt.Errorf("--%w", auth)
	}
	return errors.Join(auth, c.checkWeb(), c.checkOrigins(), c.checkOps())
}

func (c Config) checkOrigins() error {
	if err := server.CheckOrigins(c.Auth, c.corsOrigins()); err != nil {
		return fmt.Errorf("--cors-origins: %w", err)
	}
	return nil
}

// corsOrigins are the origins one by one.
func (c Config) corsOrigins() []string {
	if c.CORSOrigins == "" {
		return nil
	}
	origins := strings.Split(c.CORSOrigins, ",")
	for i, origin := range origins {
		origins[i] = strings.TrimSpace(origin)
	}
	return origins
}

// checkWeb looks at the listener for the web alone, where the same is served as on the first one.
func (c Config) checkWeb() error {
	switch {
	case c.WebListen == off:
		return nil
	case !c.TLS.on():
		return errors.New("--web-listen: goes with --tls-cert; without TLS the web is served on --listen")
	}
	if err := checkAddress("--web-listen", c.WebListen); err != nil {
		return err
	}
	if err := server.CheckAuth(c.Auth, localAddress(c.WebListen)); err != nil {
		return fmt.Errorf("--web-listen: %w", err)
	}
	return nil
}

// checkOps looks at the listeners that may be off.
func (c Config) checkOps() (err error) {
	if c.OpsListen != off {
		err = checkAddress("--ops-listen", c.OpsListen)
	}
	if c.WebhookListen != off {
		err = errors.Join(err, checkAddress("--webhook-listen", c.WebhookListen))
	}
	return err
}

func checkAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%s: %q is not host:port, for example 127.0.0.1:8080", flag, address)
	}
	return nil
}

// localAddress makes an address without a host a loopback one: Go would listen on every interface.
func localAddress(address string) string {
	if strings.HasPrefix(address, ":") {
		return "127.0.0.1" + address
	}
	return address
}

// isLoopback tells addresses that other machines can't reach.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (c Config) checkStore() error {
	_, err := c.Database.place()
	return errors.Join(err,
		oneOf("--migrate", c.Migrate, migrateOn, migrateOff, migrateSQLite),
		within("--database-max-conns", c.DatabaseMaxConns, 1, maxConns))
}

func (c Config) checkModels() error {
	problems := []error{
		checkURL("--anthropic-base-url", c.AnthropicBaseURL), checkURL("--openai-base-url", c.OpenAIBaseURL),
		atLeast("--first-byte-timeout", c.FirstByteTimeout, minTick),
		atLeast("--idle-timeout", c.IdleTimeout, minTick),
		atLeast("--total-timeout", c.TotalTimeout, minTick),
		oneOf("--on-ambiguous", c.OnAmbiguous, string(turns.OnAmbiguousAbandon), string(turns.OnAmbiguousRetry), string(turns.OnAmbiguousHold)),
		oneOf("--on-partial", c.OnPartial, string(turns.OnPartialDiscard), string(turns.OnPartialContinue)),
	}
	if c.Models != "" && c.Demo {
		problems = append(problems, errors.New("--demo: it can't be served together with --models; leave one out"))
	}
	if c.Models != "" && (c.AnthropicBaseURL != "" || c.OpenAIBaseURL != "") {
		problems = append(problems,
			errors.New("--anthropic-base-url, --openai-base-url: with --models write base_url into the models file instead"))
	}
	if c.Models == "" && !c.Demo {
		problems = append(problems,
			checkKey("--anthropic-base-url", c.AnthropicBaseURL, anthropicKey), checkKey("--openai-base-url", c.OpenAIBaseURL, openAIKey))
	}
	return errors.Join(problems...)
}

// checkKey refuses an address that no key goes with: no endpoint would be made of it.
func checkKey(flag, address, key string) error {
	if address == "" || os.Getenv(key) != "" {
		return nil
	}
	return fmt.Errorf("%s: goes with %s, which is not set; a server that needs no key is named in a models file", flag, key)
}

// checkURL looks at a provider's address. It does not repeat it, since it may hold a password.
func checkURL(flag, raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s: must be an http:// or https:// URL", flag)
	}
	return nil
}

func (c Config) checkWorker() error {
	problems := []error{
		atLeast("--lease", c.Lease, minLease),
		atLeast("--sweep", c.Sweep, minTick),
		atLeast("--checkpoint", c.Checkpoint, minTick),
		atLeast("--heartbeat", c.Heartbeat, minTick),
		atLeast("--grace", c.Grace, 0),
		atLeast("--drain-delay", c.DrainDelay, 0),
		within("--max-calls", c.MaxCalls, 1, maxCalls),
		atLeast("--max-wait", c.MaxWait, 0),
		atLeast("--backoff", c.Backoff, time.Millisecond),
		within("--max-content-bytes", c.MaxContentBytes, 1, maxContent),
		within("--max-output-bytes", c.MaxOutputBytes, 1, maxOutput),
		within("--max-in-flight", c.MaxInFlight, 1, maxPlaces),
		within("--max-queue", c.MaxQueue, 0, maxPlaces),
		within("--max-waiting", c.MaxWaiting, 1, maxWaiting),
	}
	problems = append(problems, c.Caps.check(), c.Limits.check())
	if c.Checkpoint > c.Lease {
		problems = append(problems, fmt.Errorf("--checkpoint: %s must not be longer than --lease, %s", c.Checkpoint, c.Lease))
	}
	return errors.Join(problems...)
}

// check looks at the caps. A time below what they are counted in would be no cap at all.
func (c Caps) check() error {
	var problems []error
	for flag, value := range map[string]int64{
		"--max-conversation-turns": c.MaxConversationTurns, "--max-conversation-tokens": c.MaxConversationTokens,
		"--max-conversation-cost": c.MaxConversationCost, "--max-tenant-turns": c.MaxTenantTurns, "--max-tenant-tokens": c.MaxTenantTokens,
		"--max-tenant-cost": c.MaxTenantCost,
	} {
		problems = append(problems, atLeast(flag, value, 0))
	}
	for flag, value := range map[string]time.Duration{
		"--max-conversation-time": c.MaxConversationTime, "--max-tenant-time": c.MaxTenantTime,
	} {
		if value != 0 {
			problems = append(problems, atLeast(flag, value, time.Millisecond))
		}
	}
	return errors.Join(problems...)
}

func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is not one of %s", flag, value, strings.Join(allowed, ", "))
}

func atLeast[T int | int64 | time.Duration](flag string, value, least T) error {
	if value >= least {
		return nil
	}
	return fmt.Errorf("%s: %v is too little, the least is %v", flag, value, least)
}

func within[T int | int64](flag string, value, least, most T) error {
	if value <= most {
		return atLeast(flag, value, least)
	}
	return fmt.Errorf("%s: %v is too much, the most is %v", flag, value, most)
}
