package main

import (
	"errors"
	"net/url"
	"strings"

	"github.com/turnd/turnd/turns"
	"github.com/turnd/turnd/turns/live"
	natsbus "github.com/turnd/turnd/turns/nats"
	"github.com/turnd/turnd/turns/postgres"
)

// Values of --bus.
const (
	busAuto     = "auto"
	busMemory   = "memory"
	busPoll     = "poll"
	busPostgres = "postgres"
	busNATS     = "nats"
)

// natsPrefix begins the subjects of all workers.
const natsPrefix = "turnd"

// checkBus refuses a bus that can't join the workers of the database, and an address that no bus would use.
func (c Config) checkBus() error {
	problems := []error{oneOf("--bus", c.Bus, busAuto, busMemory, busPoll, busPostgres, busNATS)}
	if at, err := c.Database.place(); err == nil {
		switch {
		case c.Bus == busMemory && at.engine == enginePostgres:
			problems = append(problems, errors.New("--bus: memory can't reach the other workers of a Postgres database; use auto"))
		case c.Bus == busPostgres && at.engine != enginePostgres:
			problems = append(problems, errors.New("--bus: postgres needs a Postgres database; use auto"))
		}
	}
	switch {
	case c.Bus == busNATS && c.NATSURL == "":
		problems = append(problems, errors.New("--nats-url: must be set for --bus nats"))
	case c.Bus != busNATS && c.NATSURL != "":
		problems = append(problems, errors.New("--nats-url: goes with --bus nats"))
	case c.NATSURL != "":
		problems = append(problems, checkNATS(c.NATSURL))
	}
	return errors.Join(problems...)
}

// checkNATS looks at the addresses of NATS servers. It does not repeat them, since they may hold passwords.
func checkNATS(list string) error {
	for raw := range strings.SplitSeq(list, ",") {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss" {
			return errors.New("--nats-url: must be nats:// or tls:// URLs, with commas between them")
		}
	}
	return nil
}

// redactURLs is redactURL for each of several addresses with commas between them.
func redactURLs(list string) string {
	var kept []string
	for raw := range strings.SplitSeq(list, ",") {
		kept = append(kept, redactURL(strings.TrimSpace(raw)))
	}
	return strings.Join(kept, ",")
}

// busKind is the bus that was asked for; it is never auto.
func (a *app) busKind() string {
	switch {
	case a.cfg.Bus != busAuto:
		return a.cfg.Bus
	case a.at.engine == enginePostgres:
		return busPostgres
	}
	return busMemory
}

// newBus makes the bus that was asked for. It connects once it runs, and serving does not wait for that.
func (a *app) newBus() live.Bus {
	switch a.busKind() {
	case busPostgres:
		return postgres.NewBus(postgres.BusConfig{URL: a.at.direct, Logger: a.logger})
	case busNATS:
		return natsbus.New(natsbus.Config{URL: a.cfg.NATSURL, Prefix: natsPrefix, Logger: a.logger})
	case busMemory:
		return live.NewMemory(0).End()
	}
	return live.Poll{}
}

// nudge makes a reply of this worker look at the store at once.
func (a *app) nudge(id turns.ReplyID) { a.service.Nudge(id) }
