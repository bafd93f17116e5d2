package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// The tenants. Clients of one probe for what the other has.
const (
	tenantOne = "acme"
	tenantTwo = "globex"
)

// client is a frontend: it holds conversations, and does what the contract says when something goes wrong.
type client struct {
	n      int
	tenant string
	random *rand.Rand
	rec    *recorder
	mix    mix
	conns  []*grpc.ClientConn
	stubs  []turnsv1.TurnServiceClient
	mu     sync.Mutex // guards random, which side errands share
}

// mix says how often, in a hundred, a client does what.
type mix struct {
	classes    []string
	duplicate  int // send the same turn again from elsewhere meanwhile
	altered    int // send other content under the same id
	cancel     int
	regenerate int // click twice for another reply
	submit     int // submit, and follow from elsewhere
	forget     int // submit, and not listen
	leave      int // leave in the middle and come back
	probe      int // ask for another tenant's ids
}

var usualMix = mix{classes: classes, duplicate: 40, altered: 12, cancel: 8, regenerate: 10, submit: 12, forget: 6, leave: 15, probe: 15}

func newClient(n int, seed int64, addrs []string, rec *recorder, mix mix) (*client, error) {
	c := &client{n: n, tenant: tenantOne, random: rand.New(rand.NewPCG(uint64(seed), uint64(1000+n))), rec: rec, mix: mix}
	if n%4 == 3 {
		c.tenant = tenantTwo
	}
	for _, addr := range addrs {
		conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
			grpc.WithConnectParams(grpc.ConnectParams{
				MinConnectTimeout: 2 * time.Second,
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			}))
		if err != nil {
			return nil, err
		}
		c.conns, c.stubs = append(c.conns, conn), append(c.stubs, turnsv1.NewTurnServiceClient(conn))
	}
	return c, nil
}

func (c *client) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// dice gives a number below n.
func (c *client) dice(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// happens is true so often in a hundred.
func (c *client) happens(percent int) bool { return c.dice(100) < percent }

func (c *client) outgoing(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "x-turnd-tenant", c.tenant, "x-turnd-subject", fmt.Sprintf("client-%d", c.n))
}

// live holds conversations until open ends, and finishes what it has until ctx ends.
func (c *client) live(open, ctx context.Context) {
	for open.Err() == nil {
		conversation := uuid.NewString()
		for range 2 + c.dice(4) {
			if open.Err() != nil {
				return
			}
			c.play(ctx, conversation)
			sleep(open, time.Duration(c.dice(150))*time.Millisecond)
		}
	}
}

// play has one turn answered, with all that may go on around it.
func (c *client) play(ctx context.Context, conversation string) {
	class := c.mix.classes[c.dice(len(c.mix.classes))]
	t := c.rec.newTurn(&sentTurn{
		tenant: c.tenant, conversation: conversation, id: uuid.NewString(),
		text: fmt.Sprintf("%s question %d of client %d", class, c.dice(1_000_000), c.n), model: []string{"anthropic", "openai"}[c.dice(2)],
	})
	var errands sync.WaitGroup
	defer errands.Wait()
	if c.happens(c.mix.duplicate) {
		for range 1 + c.dice(2) {
			errands.Go(func() { c.duplicate(ctx, t) })
		}
	}
	if c.happens(c.mix.cancel) {
		errands.Go(func() { c.cancel(ctx, t) })
	}
	if c.happens(c.mix.altered) {
		errands.Go(func() { c.alter(ctx, t) })
	}
	if c.happens(c.mix.probe) {
		errands.Go(func() { c.probe(ctx) })
	}
	switch roll := c.dice(100); {
	case roll < c.mix.submit:
		c.submitAndFollow(ctx, t)
	case roll < c.mix.submit+c.mix.forget:
		c.submit(ctx, t)
		sleep(ctx, time.Duration(200+c.dice(1500))*time.Millisecond)
	}
	last := c.attend(ctx, t)
	if last.kind == endCompleted && c.happens(c.mix.regenerate) {
		c.doubleClick(ctx, t, last.reply)
		c.attend(ctx, t)
	}
	if last.reply != "" && c.happens(20) {
		c.replay(ctx, t, last.reply)
	}
}

func (t *sentTurn) input() *turnsv1.TurnInput {
	return &turnsv1.TurnInput{
		ConversationId: t.conversation, TurnId: t.id,
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: t.text}}}},
		Options: &turnsv1.GenerationOptions{Model: t.model},
	}
}

// attempts bounds how often a client does what it was advised to. That nobody answers does not count: then it is the end of
// the run that bounds it.
const attempts = 80

// attend sends a turn and follows it until it has ended for good: complete, or in a way that its sender accepts. It does
// what it is advised to do.
func (c *client) attend(ctx context.Context, t *sentTurn) outcome {
	var at place
	var out outcome
	worker, again, lost := c.dice(len(c.stubs)), 0, 0
	for tries := 0; tries < attempts && ctx.Err() == nil; tries++ {
		out = c.deliver(ctx, t, worker, &at)
		switch {
		case out.kind == endCompleted:
			t.settle(out.kind)
			return out
		case out.kind == endLost:
			tries, lost = tries-1, lost+1
			worker = c.dice(len(c.stubs))
			sleep(ctx, time.Duration(20+c.dice(min(50+10*lost, 500)))*time.Millisecond)
		case out.advice == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW:
			worker = c.dice(len(c.stubs))
			sleep(ctx, time.Duration(c.dice(50))*time.Millisecond)
		case out.advice == turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT:
			worker = c.dice(len(c.stubs))
			sleep(ctx, min(out.wait, 5*time.Second)+10*time.Millisecond)
		case out.advice == turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE && again < 2 && (!t.wasCancelled() || c.happens(50)):
			again++
			c.regenerate(ctx, t, worker, out.reply)
		case out.kind == endRefused:
			c.rec.broke("P2", "turn %s, sent as the contract says, was refused: %s, %s", t.id, out.reason, out.advice)
			t.settle("refused " + out.reason)
			return out
		default:
			t.settle(out.kind + " " + out.reason)
			return out
		}
	}
	return out
}

func (t *sentTurn) settle(how string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled = how
}

func (t *sentTurn) wasCancelled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancelled
}

// deliver sends a turn by Turn and follows it from where the client stands. Now and then it leaves in the middle.
func (c *client) deliver(ctx context.Context, t *sentTurn, worker int, at *place) outcome {
	ctx, leave := context.WithCancel(c.outgoing(ctx))
	defer leave()
	if c.happens(c.mix.leave) {
		timer := time.AfterFunc(time.Duration(30+c.dice(800))*time.Millisecond, leave)
		defer timer.Stop()
	}
	o := c.rec.begin(askTurn, t, worker)
	stream, err := c.stubs[worker].Turn(ctx, &turnsv1.TurnRequest{Input: t.input(), Cursor: at.cursor()})
	if err != nil {
		o.done = time.Now()
		return o.failed(err)
	}
	e := ear{rec: c.rec, op: o, at: at}
	return e.listen(func() (*turnsv1.Event, error) {
		m, err := stream.Recv()
		return m.GetEvent(), err
	}, leave)
}

// follow follows a reply by FollowReply from an offset that the client has stood at.
func (c *client) follow(ctx context.Context, t *sentTurn, worker int, at *place) {
	ctx, leave := context.WithCancel(c.outgoing(ctx))
	defer leave()
	o := c.rec.begin(askFollow, t, worker)
	stream, err := c.stubs[worker].FollowReply(ctx, &turnsv1.FollowReplyRequest{
		ConversationId: t.conversation,
		Target:         &turnsv1.FollowReplyRequest_ReplyId{ReplyId: at.reply}, Offset: at.offset,
	})
	if err != nil {
		o.done = time.Now()
		o.failed(err)
		return
	}
	e := ear{rec: c.rec, op: o, at: at}
	e.listen(func() (*turnsv1.Event, error) {
		m, err := stream.Recv()
		return m.GetEvent(), err
	}, leave)
}
