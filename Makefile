# Each target but run and the examples, which run until they are stopped, ends in one line: PASS name figure=value .. or
# FAIL name why. Each starts with a clean environment (.ci/clean). Switches: SHORT=1 for less of the long ones, FUZZTIME=10s,
# SEED=n, SEEDS=n, MINUTES=n, ROWS=n.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
VERDICT := @.ci/verdict

.PHONY: help build run test check generate check-generate console check-console web lint fuzz deps once twice killed stop again lag failover late providers takeover ambiguous storm tree limits long tenants explain retry-rate edges e2e example-usechat example-eventsource example-follower history broken chaos chaos-selftest model wire telemetry-cost bench bench-peers bench-growth bench-workers soak profile manifests dashboards

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2; n++} END {print "PASS help targets=" n}' $(MAKEFILE_LIST)

build: ## Build bin/turnd.
	$(VERDICT) build .ci/build

run: ## Start turnd on SQLite with the demo model; needs Go and nothing else.
	@.ci/clean go build -o bin/turnd ./cmd/turnd
	@exec .ci/clean bin/turnd serve --demo --ops-listen "$(or $(OPS_LISTEN),127.0.0.1:9464)" $(if $(LISTEN),--listen "$(LISTEN)")

test: ## Run all tests with the race detector, on SQLite and on any Postgres that is found.
	$(VERDICT) test .ci/test

check: ## Check format, vet, the wire, generated files and the rules of the house.
	$(VERDICT) check .ci/check

generate: ## Generate Go and TypeScript from proto/.
	$(VERDICT) generate .ci/generate

check-generate: ## Check that generated files are current.
	$(VERDICT) check-generate .ci/check-generate

console: ## Build the console from web/console into web/console/dist, which is committed.
	$(VERDICT) console .ci/console

check-console: ## Check that the committed build of the console is what its source makes.
	$(VERDICT) check-console .ci/check-console

web: ## Check the client for browsers: types, tests, the Go client's bad networks, turnd itself, and what would be published.
	$(VERDICT) web .ci/web

lint: ## Run golangci-lint; builds it the first time, which takes minutes.
	$(VERDICT) lint .ci/lint

fuzz: ## Run each fuzz target for FUZZTIME (10s).
	$(VERDICT) fuzz .ci/fuzz

deps: ## Install what is missing: node tools, a C compiler, spin, a Postgres, pgbouncer.
	$(VERDICT) deps .ci/deps

once: ## Show that a turn sent five times is one request, one reply, one bill.
	$(VERDICT) once .ci/checks once

twice: ## Show that two servers on one Postgres make one reply of a turn sent to both.
	$(VERDICT) twice .ci/checks twice

killed: ## Show that a turn survives kill -9 of its server, and what was wasted is on the ledger.
	$(VERDICT) killed .ci/checks killed

stop: ## Show that a cancelled reply stops its provider, frees its slot and tells each follower once.
	$(VERDICT) stop .ci/checks stop

again: ## Show stop, again, another: cancel, regenerate, select and interrupt on two servers at once.
	$(VERDICT) again .ci/checks again

lag: ## Show how far followers on another server are behind, over Postgres and over NATS.
	$(VERDICT) lag .ci/checks lag

failover: ## Show what a failover of Postgres in the middle of 200 replies costs, with and without a synchronous standby.
	$(VERDICT) failover .ci/checks failover

late: ## Show what becomes of a server that was stopped past its lease, and of commits without an answer.
	$(VERDICT) late .ci/checks late

providers: ## Show for each wire and each fault how a turn ends, and that the ledger has what the provider counted.
	$(VERDICT) providers .ci/checks providers

takeover: ## Show that a killed worker's reply is gone on with, without a second bill, where its provider can be asked for it.
	$(VERDICT) takeover .ci/checks takeover

ambiguous: ## Show what each policy makes of a killed worker's reply where nobody can say what became of it.
	$(VERDICT) ambiguous .ci/checks ambiguous

storm: ## Show that storms of 429, an outage and a flapping endpoint stay within each turn's budget (SHORT=1 for 10 s of it).
	$(VERDICT) storm .ci/checks storm

tree: ## Show that one session of edits, stops and tool calls ends the same on each engine and each wire.
	$(VERDICT) tree .ci/checks tree

limits: ## Show that limits and quotas hold over three servers, and that replays are free of them.
	$(VERDICT) limits .ci/checks limits

long: ## Show that the 5,000th turn of a conversation costs what its 50th did, in rows, bytes and time (SHORT=1).
	$(VERDICT) long .ci/checks long

tenants: ## Show that another tenant's ids answer as missing ones do, by the same statements, and that planted leaks are found (SHORT=1).
	$(VERDICT) tenants .ci/checks tenants

explain: ## Show that turnd explain tells the story of a turn sent five times and taken over once, as README has it (UPDATE=1 writes it there).
	$(VERDICT) explain .ci/checks explain

retry-rate: ## Show a small share of retried requests as what it is in tokens, from a scrape, the ledger and the provider (SHORT=1, SEED=n).
	$(VERDICT) retry-rate .ci/checks retry-rate

edges: ## Show that curl, grpcurl, buf curl and a generated client each send and follow a turn by the lines of the docs.
	$(VERDICT) edges .ci/edges

e2e: ## Show in a real browser that what is sent once is made once, whatever happens to the page (SHORT=1).
	$(VERDICT) e2e .ci/e2e

example-usechat: ## Start a chat page with useChat, and turnd with the demo model behind it.
	@exec .ci/clean .ci/example usechat

example-eventsource: ## Start a chat page with a bare EventSource, and turnd with the demo model behind it.
	@exec .ci/clean .ci/example eventsource

example-follower: ## Send a few turns to turnd with the demo model, and run the service that follows their replies.
	@exec .ci/clean .ci/example follower

history: ## Show that no history makes an invalid request: a million builds on five wires, judged from outside (SHORT=1, SEED=n).
	$(VERDICT) history .ci/history

broken: ## Show that the tests fail when a guard is taken out.
	$(VERDICT) broken .ci/checks broken

chaos: ## Show that the promises hold under any fault, by one seed in three minutes (SHORT=1, SEED=n, SEEDS=n).
	$(VERDICT) chaos .ci/chaos run

chaos-selftest: ## Show that the check of chaos notices five faults planted in the service.
	$(VERDICT) chaos-selftest .ci/chaos selftest

model: ## Run the checked model of the reply protocol, and that each rule is missed when it is taken away; needs spin.
	$(VERDICT) model .ci/model

wire: ## Hold the scripted provider to the vendors' own clients, and the adapters to aimock; the first build takes minutes.
	$(VERDICT) wire .ci/wire

telemetry-cost: ## Show what metrics that are scraped and spans that are sent cost a streamed turn (SHORT=1 only says it).
	$(VERDICT) telemetry-cost .ci/speed telemetry-cost

bench: ## Measure turnd against its floors, in rounds: one line a figure with its goal, and bin/bench.json (SHORT=1, SCENES="streamed ..").
	$(VERDICT) bench .ci/speed bench $(SCENES)

bench-peers: ## Measure other engines on the same machine; PEERS_DIR is the folder of their programs (SHORT=1).
	$(VERDICT) bench-peers .ci/speed bench-peers

bench-growth: ## Measure a turn of a long conversation, and calls on 10 M rows against 10 k; needs 40 GB of disk (SHORT=1, ROWS=n).
	$(VERDICT) bench-growth .ci/speed bench-growth

bench-workers: ## Measure one to three workers on one Postgres, what stops them, and a model of one worker against the others (SHORT=1).
	$(VERDICT) bench-workers .ci/speed bench-workers

soak: ## Load one turnd for 20 minutes in all ways, and show that what it holds is flat: bin/soak.svg and bin/soak.json (SHORT=1, MINUTES=n).
	$(VERDICT) soak .ci/speed soak

profile: ## Take profiles of turnd's CPU and allocations under streamed turns (SCENES=submitted: another scene's), and what its statements cost.
	$(VERDICT) profile .ci/speed profile $(SCENES)

manifests: ## Read the files for containers by the types of their programs, and serve what the Dockerfile builds; the first build takes minutes.
	$(VERDICT) manifests .ci/manifests

dashboards: ## Show that each panel's query changes with its fault on a real Prometheus, and that the shipped alerts fire (SHORT=1).
	$(VERDICT) dashboards .ci/dashboards
