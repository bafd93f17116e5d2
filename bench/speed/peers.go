package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/turnd/turnd/bench/rig"
	"github.com/turnd/turnd/bench/speed/load"
)

// peer is a program of another folder that does the same turn, through another engine or as a floor.
type peer struct {
	name string
	// ours is the floor of ours that it should be near to; empty for an engine.
	ours string
}

// peers in the order in which they have to run: the first makes the table that some of the others use.
var peers = []peer{{"floor", "two commits"}, {"floorbatch", "group commit"}, {"relay", "relay"}, {name: "dbos"}, {name: "river"}, {name: "restate"}}

// peerNear is how many times as fast as ours a floor of theirs may be: one of ours that is slow would flatter turnd.
const peerNear = 1.10

var (
	// restateListens are where the program for Restate expects the server's ingress and administration, and listens itself.
	restateListens = []string{"127.0.0.1:8080", "127.0.0.1:9070", "127.0.0.1:9080"}
	restateHealth  = []string{"http://127.0.0.1:9070/health", "http://127.0.0.1:8080/restate/health"}
)

// benchPeers measures other engines on the same machine and the same Postgres, between rounds of turnd and of our floors. A
// peer's program prints a line with its clients, turns a second and failures.
func benchPeers(s *stage) error {
	dir := os.Getenv("PEERS_DIR")
	if dir == "" {
		return errors.New("set PEERS_DIR to the folder of the other engines' programs")
	}
	b := &bench{stage: s, report: s.newReport()}
	if err := b.setUp(); err != nil {
		return err
	}
	c, err := b.newContest(dir)
	if err != nil {
		return err
	}
	entrants, err := c.ours()
	if err != nil {
		return err
	}
	if err := c.play(entrants); err != nil {
		return err
	}
	c.judge()
	return b.report.close(s, "bench-peers")
}

// contest is the programs of others, and what was measured, by name and, for theirs, clients.
type contest struct {
	*bench
	dsn   string
	peers []peer
	found rounds               // of turnd and of our floors
	seen  map[string][]float64 // of the peers, turns a second
}

// newContest builds the programs, from a copy, since their checksums may have to be completed. An engine whose server is not
// there is left out, and that is said.
func (b *bench) newContest(dir string) (*contest, error) {
	c := &contest{bench: b, found: rounds{}, seen: map[string][]float64{}}
	sources, err := b.copyPeers(dir)
	if err != nil {
		return nil, err
	}
	for _, p := range peers {
		if p.name == "restate" {
			if err := b.startRestate(dir); err != nil {
				fmt.Println("restate is left out:", err)
				continue
			}
		}
		cmd := exec.CommandContext(b.ctx, "go", "build", "-mod=mod", "-o", filepath.Join(b.dir, "peer-"+p.name), "./cmd/"+p.name)
		cmd.Dir = sources
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", p.name, err, out)
		}
		c.peers = append(c.peers, p)
	}
	c.dsn, err = b.pg.create(b.ctx, "peers")
	return c, err
}

// copyPeers copies the programs' sources.
func (b *bench) copyPeers(dir string) (string, error) {
	sources := filepath.Join(b.dir, "peers")
	for _, part := range []string{"cmd", "load"} {
		if err := os.CopyFS(filepath.Join(sources, part), os.DirFS(filepath.Join(dir, part))); err != nil {
			return "", err
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(sources, file), data, 0o600); err != nil {
			return "", err
		}
	}
	return sources, nil
}

// startRestate starts Restate's server, where there is one, and waits until it takes calls: its administration listens before its
// ingress does, and both before their partitions have leaders.
func (b *bench) startRestate(dir string) error {
	program := filepath.Join(dir, "node_modules", ".bin", "restate-server")
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("restate-server"); err != nil {
			return err
		}
	}
	for _, address := range restateListens {
		var config net.ListenConfig
		l, err := config.Listen(b.ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("somebody else has its address: %w", err)
		}
		_ = l.Close()
	}
	p, err := rig.Start(b.dir, b.name("restate"), program, "--base-dir", filepath.Join(b.dir, "restate"))
	if err != nil {
		return err
	}
	b.procs = append(b.procs, p)
	for range 300 {
		healthy := true
		for _, url := range restateHealth {
			_, err := get(b.ctx, url)
			healthy = healthy && err == nil
		}
		if healthy {
			return nil
		}
		select {
		case <-p.Done():
			return errors.New("its server ended: " + p.Tail(3))
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("its server is not healthy: " + p.Tail(3))
}

// ours are turnd in both shapes, and the floors that have a sister among the peers.
func (c *contest) ours() ([]entrant, error) {
	turnd, err := c.service(c.many.Addr, nil)
	if err != nil {
		return nil, err
	}
	once, err := c.service(c.once.Addr, nil)
	if err != nil {
		return nil, err
	}
	floors, err := c.pg.create(c.ctx, c.name("floors"))
	if err != nil {
		return nil, err
	}
	return []entrant{
		c.against("streamed", load.Turn, turnd.Listen, streamClients, streamDeltas, turnd.Process),
		c.against("submitted", load.Submit, once.Listen, submitClients, streamDeltas, once.Process),
		c.against("two commits", load.Commits, floors, streamClients, streamDeltas, nil),
		c.against("group commit", load.Group, floors, streamClients, streamDeltas, nil),
		c.against("relay", load.Relay, c.relay.Listen, streamClients, streamDeltas, c.relay.Process),
	}, nil
}

// play measures turnd, our floors and then theirs in each round.
func (c *contest) play(entrants []entrant) error {
	p := c.pace()
	p.window = max(p.window, crowdWindow)
	c.report.Rounds["peers"] = c.found
	if err := c.rehearse(p, entrants); err != nil {
		return err
	}
	for n := range p.rounds {
		if err := c.round(n, p, entrants, c.found); err != nil {
			return err
		}
		for _, peer := range c.peers {
			if err := c.peerRound(n, p, peer); err != nil {
				return fmt.Errorf("%s: %w", peer.name, err)
			}
		}
	}
	return nil
}

// peerRound measures an engine with as many clients as each shape has, and a floor with those of the streamed one.
func (c *contest) peerRound(n int, p pace, peer peer) error {
	for _, clients := range []int{streamClients, submitClients} {
		if peer.ours != "" && clients != streamClients {
			continue
		}
		if err := c.pg.settle(c.ctx); err != nil {
			return err
		}
		perSecond, err := c.run(peer.name, clients, p.window)
		if err != nil {
			return err
		}
		fmt.Printf("round %d  %-14s %8.0f turns/s  of %d clients\n", n+1, peer.name, perSecond, clients)
		c.seen[key(peer.name, clients)] = append(c.seen[key(peer.name, clients)], perSecond)
	}
	return nil
}

func key(name string, clients int) string { return fmt.Sprintf("%s %d", name, clients) }

var peerLine = regexp.MustCompile(`turns/s=(\d+) .*fails=(\d+)`)

func (c *contest) run(name string, clients int, d time.Duration) (float64, error) {
	ctx, cancel := context.WithTimeout(c.ctx, d+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.dir, "peer-"+name), "-dsn", c.dsn, "-c", strconv.Itoa(clients), "-d", d.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return readPeer(string(out))
}

// readPeer reads what a peer's program printed. One that had failures, or did nothing, was not measured.
func readPeer(out string) (float64, error) {
	m := peerLine.FindStringSubmatch(out)
	if m == nil || m[1] == "0" || m[2] != "0" {
		return 0, fmt.Errorf("it printed: %s", strings.TrimSpace(out))
	}
	return strconv.ParseFloat(m[1], 64)
}

// judge compares medians.
func (c *contest) judge() {
	for _, p := range c.peers {
		if p.ours == "" {
			continue
		}
		theirs, ours := median(c.seen[key(p.name, streamClients)]), c.found.perSecond(p.ours)
		c.report.add(Figure{
			Name: "floor_" + strings.ReplaceAll(p.ours, " ", "_"), Value: theirs / ours, Goal: peerNear, AtMost: true,
			Of: fmt.Sprintf("ours %.0f/s, theirs %.0f/s", ours, theirs),
		})
	}
	for _, shape := range []struct {
		name    string
		clients int
		goal    float64
	}{{"streamed", streamClients, 2}, {"submitted", submitClients, 4}} {
		best, who := 0.0, "nobody"
		for _, p := range c.peers {
			if m := median(c.seen[key(p.name, shape.clients)]); p.ours == "" && m > best {
				best, who = m, p.name
			}
		}
		ours := c.found.perSecond(shape.name)
		c.report.add(Figure{
			Name: shape.name + "_peers", Value: ours / max(1, best), Goal: shape.goal,
			Of: fmt.Sprintf("turnd %.0f/s; the best engine is %s with %.0f/s", ours, who, best),
		})
	}
}
