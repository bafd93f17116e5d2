package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/turnd/turnd/bench/rig"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// What a killed worker may not delay: the next one finds its claim after a lease and a sweep.
var shortLease = []string{"--lease", "2s", "--sweep", "300ms"}

// wholeBytes is a usual reply's text.
const wholeBytes = usualDeltas * 16

// takeover kills a worker while replies of providers that can be asked for them are under way, and while followers listen at
// another worker: in the middle where the provider goes on by itself, and with the terminal event outstanding where it can
// only look up what is whole. Then it kills one that has read everything and could store nothing of it.
func takeover(l *lab) error {
	e, err := l.postgres("takeover")
	if err != nil {
		return err
	}
	t := &takeoverPlay{lab: l, e: e}
	if err := t.setUp(); err != nil {
		return err
	}
	if err := t.inTheMiddle(); err != nil {
		return err
	}
	if err := t.beforeTheWrite(); err != nil {
		return fmt.Errorf("read to the end and not stored: %w", err)
	}
	return t.judge()
}

// takeoverPlay is two workers, of which one is killed, and two providers: the second finds what is whole a second later.
type takeoverPlay struct {
	*lab
	e           engine
	prompt, lag *provider
	models      string
	other       *service
	scenes      []*takeoverScene
}

// takeoverScene is a turn of a worker that is killed.
type takeoverScene struct {
	name     string
	provider *provider
	// seen is how many deltas the follower has when the worker is killed.
	seen     int
	in       *turnsv1.TurnInput
	reply    string
	at       atomic.Int64 // deltas that the follower has
	follower listener
	resumed  time.Duration // from the kill to the end of the follower's stream
}

func (t *takeoverPlay) setUp() (err error) {
	script := func(delay int) object {
		return object{"endpoint": object{"lookup_delay_ms": delay}, "rules": []object{
			stopsAt("background", "delta:37"), stopsAt("interactions", "delta:37"),
			stopsAt("stored", "before_terminal"), stopsAt("unstored", "delta:37"), plain(usualDeltas)}}
	}
	if t.prompt, err = t.provider(script(0)); err != nil {
		return err
	}
	if t.lag, err = t.provider(script(1000)); err != nil {
		return err
	}
	t.models, err = t.write("askable.yaml", fmt.Sprintf(`version: 1
default_model: stored
endpoints:
  background: {wire: openai.responses, base_url: %[1]q, capabilities: {resume: true, cancel: true}}
  interactions: {wire: gemini.interactions, base_url: %[1]q, capabilities: {resume: true, cancel: true}}
  stored: {wire: openai.chat, base_url: %[1]q, capabilities: {lookup: true}}
  slow: {wire: openai.chat, base_url: %[2]q, capabilities: {lookup: true}}
models:
  background: {route: [{endpoint: background, model: background}]}
  interactions: {route: [{endpoint: interactions, model: interactions}]}
  stored: {route: [{endpoint: stored, model: stored}]}
  stored_listed_late: {route: [{endpoint: slow, model: stored}]}
  read_to_the_end: {route: [{endpoint: stored, model: unstored}]}
`, t.prompt.url, t.lag.url))
	if err != nil {
		return err
	}
	t.other, err = t.serve(t.e, t.models, shortLease...)
	return err
}

// stopsAt is a usual reply of a model that waits at a gate of its name.
func stopsAt(model, point string) object {
	return object{"name": model, "match": object{"model": model}, "plan": object{
		"reply": object{"deltas": usualDeltas, "delta_bytes": 16, "seed": 1},
		"steps": []object{{"at": point, "do": "wait", "gate": model}}}}
}

// begin submits a turn to a worker and follows it at the other.
func (t *takeoverPlay) begin(victim *service, group *errgroup.Group, s *takeoverScene) error {
	s.in = textInput(uuid.NewString(), uuid.NewString(), askedWords, s.name)
	got, err := victim.turns.SubmitTurn(t.ctx, &turnsv1.SubmitTurnRequest{Input: s.in})
	if err != nil {
		return err
	}
	s.reply = got.GetReply().GetReplyId()
	t.scenes = append(t.scenes, s)
	s.follower.watch = func(h *listener) { s.at.Store(int64(len(h.text) / 16)) }
	group.Go(func() error {
		if err := s.follower.follow(t.ctx, t.other, s.in.GetConversationId(), s.reply); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		return nil
	})
	return t.until(func() (bool, error) { return s.at.Load() >= int64(s.seen), nil })
}

func (t *takeoverPlay) inTheMiddle() error {
	victim, err := t.serve(t.e, t.models, shortLease...)
	if err != nil {
		return err
	}
	var following errgroup.Group
	for _, s := range []*takeoverScene{
		{name: "background", provider: t.prompt, seen: 37},
		{name: "interactions", provider: t.prompt, seen: 37},
		{name: "stored", provider: t.prompt, seen: usualDeltas},
		{name: "stored_listed_late", provider: t.lag, seen: usualDeltas},
	} {
		if err := t.begin(victim, &following, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	killed := time.Now()
	victim.kill(syscall.SIGKILL)
	if err := t.takenOver(len(t.scenes)); err != nil {
		return err
	}
	c, err := t.prompt.counts()
	if err != nil {
		return err
	}
	if c.Running != 3 {
		return fmt.Errorf("the provider goes on with %d of 3 replies after the kill", c.Running)
	}
	figure("taken_over_ms", time.Since(killed).Milliseconds())
	for _, gate := range []string{"background", "interactions", "stored"} {
		if err := t.prompt.open(gate); err != nil {
			return err
		}
	}
	return errors.Join(t.lag.open("stored"), following.Wait())
}

// takenOver waits until so many replies have a second owner.
func (t *takeoverPlay) takenOver(n int) error {
	err := t.until(func() (bool, error) {
		got, err := t.e.number(t.ctx, `SELECT count(*) FROM turns WHERE role = 'assistant' AND epoch = 2`)
		return got == n, err
	})
	if err != nil {
		return fmt.Errorf("not all replies were taken over: %w", err)
	}
	return nil
}

// beforeTheWrite takes the database from a worker in the middle of a reply, lets the provider finish, and kills the worker:
// it has read everything, and stored nothing of the rest.
func (t *takeoverPlay) beforeTheWrite() error {
	proxy, through, err := startProxy(t.e.dsn)
	if err != nil {
		return err
	}
	defer proxy.Close()
	behind := t.e
	behind.url = through
	victim, err := t.serve(behind, t.models, shortLease...)
	if err != nil {
		return err
	}
	var following errgroup.Group
	s := &takeoverScene{name: "read_to_the_end", provider: t.prompt, seen: 37}
	if err := t.begin(victim, &following, s); err != nil {
		return err
	}
	if err := t.endUnstored(victim, proxy); err != nil {
		return err
	}
	return errors.Join(t.takenOver(len(t.scenes)), following.Wait())
}

func (t *takeoverPlay) endUnstored(victim *service, proxy *rig.Link) error {
	proxy.Refuse()
	if err := t.prompt.open("unstored"); err != nil {
		return err
	}
	if err := t.prompt.call(http.MethodGet, fmt.Sprintf("/_scripted/wait?finished=%d&timeout=30s", len(t.scenes)-1)); err != nil {
		return err
	}
	victim.kill(syscall.SIGKILL)
	return nil
}

// judge demands of every turn one reply whose text is whole, one generation, and a bill without waste.
func (t *takeoverPlay) judge() error {
	for _, s := range t.scenes {
		h := &s.follower
		switch {
		case !h.completed || h.terminals != 1:
			return fmt.Errorf("%s: the follower's stream ended %s", s.name, h.ending())
		case h.previous != "" || h.reply != s.reply:
			return fmt.Errorf("%s: the follower was led to another reply", s.name)
		case len(h.text) != wholeBytes || h.text != t.scenes[0].follower.text:
			return fmt.Errorf("%s: the follower's text is not whole: %d of %d bytes", s.name, len(h.text), wholeBytes)
		}
	}
	for query, want := range map[string]int{ledgerRows: len(t.scenes), openCalls: 0, wastedRows: 0, liveReplies: len(t.scenes), inFlight: 0, completeReplies: len(t.scenes)} {
		got, err := t.e.number(t.ctx, query)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%d instead of %d: %s", got, want, query)
		}
	}
	generations := 0
	for _, p := range []*provider{t.prompt, t.lag} {
		c, err := p.counts()
		if err != nil {
			return err
		}
		generations += c.Generations
	}
	if generations != len(t.scenes) {
		return fmt.Errorf("the providers counted %d generations for %d turns", generations, len(t.scenes))
	}
	return t.billed()
}

// billed holds each call's tokens on the ledger to what its provider counted.
func (t *takeoverPlay) billed() error {
	ledger, err := t.e.ledger(t.ctx)
	if err != nil {
		return err
	}
	prompt, err := t.prompt.records(t.lab)
	if err != nil {
		return err
	}
	lag, err := t.lag.records(t.lab)
	if err != nil {
		return err
	}
	all, err := pairs(ledger, append(prompt, lag...))
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.source != "reported" || c.input != c.counted.InputTokens || c.output != c.counted.OutputTokens || c.output != usualDeltas {
			return fmt.Errorf("%s: %d+%d tokens are %s on the ledger, and the provider counted %d+%d", c.endpoint, c.input, c.output, c.source,
				c.counted.InputTokens, c.counted.OutputTokens)
		}
	}
	for _, s := range t.scenes {
		figure(s.name, "generations:1,epoch:2,waste:0")
	}
	return nil
}
