package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sync/errgroup"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Goals of following from another server, at the median: a checkpoint's tick where hints go through Postgres, and next to
// nothing where pieces go through NATS.
const (
	lagTick     = 250 * time.Millisecond
	lagGoalNATS = 5 * time.Millisecond
	lagPace     = 10 // milliseconds between two deltas
	lagReplies  = 4
)

// lag follows paced replies on their owner and on another server, over Postgres and over NATS. The lag of an offset is the
// time from its first arrival at any follower on the owner to its arrival at the follower in question.
func lag(l *lab) error {
	var owner []time.Duration
	pg, own, err := l.lagOver("postgres")
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	owner = append(owner, own...)
	broker, err := startNATS()
	if err != nil {
		return err
	}
	defer broker.WaitForShutdown()
	defer broker.Shutdown()
	nats, own, err := l.lagOver("nats", "--nats-url", broker.ClientURL())
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	owner = append(owner, own...)
	for _, of := range []struct {
		name string
		lags []time.Duration
	}{{"owner", owner}, {"postgres", pg}, {"nats", nats}} {
		figure(of.name+"_p50_ms", milliseconds(quantile(of.lags, 0.5)))
		figure(of.name+"_p99_ms", milliseconds(quantile(of.lags, 0.99)))
		figure(of.name+"_offsets", len(of.lags))
	}
	if got := quantile(pg, 0.5); got > lagTick {
		return fmt.Errorf("the median lag over Postgres is %s, the goal is %s", got, lagTick)
	}
	if got := quantile(nats, 0.5); got > lagGoalNATS {
		return fmt.Errorf("the median lag over NATS is %s, the goal is %s", got, lagGoalNATS)
	}
	return nil
}

func startNATS() (*server.Server, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return nil, errors.New("the NATS server takes no connections")
	}
	return s, nil
}

func quantile(lags []time.Duration, q float64) time.Duration {
	if len(lags) == 0 {
		return 0
	}
	slices.Sort(lags)
	return lags[int(q*float64(len(lags)-1))]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond))
}

// lagOver plays replies on two servers joined by a bus and gives the lags on the other server, and those of a second
// follower on the owner.
func (l *lab) lagOver(bus string, flags ...string) (remote, own []time.Duration, err error) {
	e, err := l.postgres("lag_" + bus)
	if err != nil {
		return nil, nil, err
	}
	deltas := 500
	if l.short {
		deltas = 150
	}
	rule := gated("lag", "begin", deltas, 2)
	rule["plan"].(object)["pace_ms"] = lagPace
	p, err := l.provider(object{"rules": []object{rule}})
	if err != nil {
		return nil, nil, err
	}
	defer p.stop()
	models, err := l.models(p.url)
	if err != nil {
		return nil, nil, err
	}
	flags = append([]string{"--bus", bus, "--checkpoint", lagTick.String()}, flags...)
	var servers [2]*service
	for i := range servers {
		if servers[i], err = l.serve(e, models, flags...); err != nil {
			return nil, nil, err
		}
		defer servers[i].stop()
	}
	scene := lagScene{lab: l, owner: servers[0], other: servers[1], p: p}
	return scene.play()
}

type lagScene struct {
	*lab
	owner, other *service
	p            *provider
}

// play follows some replies at once, three followers each.
func (s *lagScene) play() (remote, own []time.Duration, err error) {
	group, ctx := errgroup.WithContext(s.ctx)
	var timings [lagReplies][3]timing
	var ready sync.WaitGroup
	ready.Add(lagReplies * 3)
	for i := range lagReplies {
		in := textInput(uuid.NewString(), uuid.NewString(), "lag", "anthropic")
		got, err := s.owner.turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
		if err != nil {
			return nil, nil, err
		}
		for j, on := range []*service{s.owner, s.owner, s.other} {
			group.Go(func() error {
				return timings[i][j].follow(ctx, on, in.GetConversationId(), got.GetReply().GetReplyId(), sync.OnceFunc(ready.Done))
			})
		}
	}
	group.Go(func() error {
		ready.Wait()
		return s.p.open("begin")
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i := range timings {
		first := timings[i][0].earlier(timings[i][1])
		own = append(own, timings[i][1].behind(first)...)
		remote = append(remote, timings[i][2].behind(first)...)
	}
	if len(remote) == 0 {
		return nil, nil, errors.New("nothing was followed")
	}
	return remote, own, nil
}

// timing says when a follower had reached which offset, both growing.
type timing []arrival

type arrival struct {
	offset uint32
	at     time.Time
}

// follow notes the arrivals of a reply, from the first piece on. It tells once it has that: the provider waits there.
func (t *timing) follow(ctx context.Context, s *service, conversation, reply string, ready func()) error {
	defer ready()
	stream, err := s.turns.FollowReply(ctx, &turnsv1.FollowReplyRequest{
		ConversationId: conversation, Target: &turnsv1.FollowReplyRequest_ReplyId{ReplyId: reply}})
	if err != nil {
		return err
	}
	completed := false
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if !completed {
				return errors.New("a follower was not told of the end")
			}
			return nil
		}
		if err != nil {
			return err
		}
		e := msg.GetEvent()
		completed = completed || e.GetCompleted() != nil
		if e.GetDelta() == nil {
			continue
		}
		ready()
		*t = append(*t, arrival{e.GetNextOffset(), time.Now()})
	}
}

// at is when the follower had an offset.
func (t timing) at(offset uint32) (time.Time, bool) {
	i := sort.Search(len(t), func(i int) bool { return t[i].offset >= offset })
	if i == len(t) {
		return time.Time{}, false
	}
	return t[i].at, true
}

// earlier is, for each offset of one follower, the first arrival at it or at another.
func (t timing) earlier(other timing) timing {
	first := slices.Clone(t)
	for i, a := range first {
		if at, ok := other.at(a.offset); ok && at.Before(a.at) {
			first[i].at = at
		}
	}
	return first
}

// warmUp is how many pieces don't count: they were there before the follower.
const warmUp = 5

// behind is how long after another follower this one had each offset.
func (t timing) behind(first timing) (lags []time.Duration) {
	for _, a := range first[min(warmUp, len(first)):] {
		if at, ok := t.at(a.offset); ok {
			lags = append(lags, at.Sub(a.at))
		}
	}
	return lags
}
