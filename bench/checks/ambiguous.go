package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/google/uuid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// againDeltas is the reply of a second attempt.
const againDeltas = 16

// ambiguous kills a worker in the middle of six replies of an endpoint that can tell nothing about them, two for each policy:
// one that nothing has come of yet, and one at its 37th delta. Then it lets a policy of retry fail until the budget is spent.
func ambiguous(l *lab) error {
	e, err := l.postgres("ambiguous")
	if err != nil {
		return err
	}
	a := &ambiguousPlay{lab: l, e: e}
	if err := a.setUp(); err != nil {
		return err
	}
	if err := a.kill(); err != nil {
		return err
	}
	for _, s := range a.scenes {
		if err := a.after(s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	if err := a.spend(); err != nil {
		return fmt.Errorf("spent: %w", err)
	}
	return a.judge()
}

type ambiguousPlay struct {
	*lab
	e      engine
	p      *provider
	models string
	other  *service
	scenes []*ambiguousScene
}

// ambiguousScene is a turn with a policy, whose worker is killed at a point of its reply.
type ambiguousScene struct {
	name   string // of its text and of its gate
	policy turnsv1.OnAmbiguous
	point  string
	in     *turnsv1.TurnInput
	reply  string
	// outcome is what became of it, in words of the table; cause what its lost calls are booked as waste for.
	outcome string
	cause   string
}

// places are where the worker is killed.
var places = map[string]string{"unanswered": "before_headers", "partial": "delta:37"}

func (a *ambiguousPlay) setUp() (err error) {
	rules := []object{}
	for _, policy := range []turnsv1.OnAmbiguous{turnsv1.OnAmbiguous_ON_AMBIGUOUS_ABANDON, turnsv1.OnAmbiguous_ON_AMBIGUOUS_RETRY, turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD} {
		for _, place := range []string{"unanswered", "partial"} {
			name := strings.ToLower(strings.TrimPrefix(policy.String(), "ON_AMBIGUOUS_")) + "_" + place
			a.scenes = append(a.scenes, &ambiguousScene{name: name, policy: policy, point: places[place]})
			rules = append(rules, object{"name": name, "match": object{"text": name + "$", "nth": 1}, "plan": object{
				"reply": object{"deltas": usualDeltas, "delta_bytes": 16, "seed": 1},
				"steps": []object{{"at": places[place], "do": "wait", "gate": name}}}})
		}
	}
	rules = append(rules,
		object{"name": "spent", "match": object{"text": "spent$"}, "plan": faulty(object{"at": "delta:5", "do": "reset"})}, plain(againDeltas))
	if a.p, err = a.provider(object{"rules": rules}); err != nil {
		return err
	}
	if a.models, err = a.lab.models(a.p.url); err != nil {
		return err
	}
	a.other, err = a.serve(a.e, a.models, append(shortLease, "--backoff", "50ms")...)
	return err
}

// kill begins all turns at a worker, and kills it once each stands at its point and what came of it is stored.
func (a *ambiguousPlay) kill() error {
	victim, err := a.serve(a.e, a.models, shortLease...)
	if err != nil {
		return err
	}
	for _, s := range a.scenes {
		s.in = textInput(uuid.NewString(), uuid.NewString(), askedWords+s.name, "anthropic")
		s.in.OnAmbiguous = s.policy
		got, err := victim.turns.SubmitTurn(a.ctx, &turnsv1.SubmitTurnRequest{Input: s.in})
		if err != nil {
			return err
		}
		s.reply = got.GetReply().GetReplyId()
		if err := a.p.arrived(s.name, 1); err != nil {
			return err
		}
	}
	if err := a.settles(a.e, `SELECT count(*) FROM turns WHERE role = 'assistant' AND log_len >= 37 * 16`, len(a.scenes)/2); err != nil {
		return err
	}
	victim.kill(syscall.SIGKILL)
	if err := a.settles(a.e, `SELECT count(*) FROM workers WHERE dead`, 1); err != nil {
		return fmt.Errorf("the killed worker was not buried: %w", err)
	}
	return nil
}

// requests is how many requests the provider counted for a turn's text. The first took the rule of its name; any further
// one is told by its key, which the turn keeps.
func (a *ambiguousPlay) requests(s *ambiguousScene) (int, error) {
	calls, err := a.p.calls()
	if err != nil {
		return 0, err
	}
	ledger, err := a.e.ledger(a.ctx)
	if err != nil {
		return 0, err
	}
	keys := map[string]bool{}
	for _, c := range ledger {
		if c.turn == s.in.GetTurnId() {
			keys[c.key] = true
		}
	}
	n := 0
	for _, c := range calls {
		if keys[c.IdempotencyKey] {
			n++
		}
	}
	return n, nil
}

func (a *ambiguousPlay) paid(s *ambiguousScene, want int) error {
	got, err := a.requests(s)
	if err == nil && got != want {
		err = fmt.Errorf("the provider counted %d requests instead of %d", got, want)
	}
	return err
}

func (a *ambiguousPlay) status(reply string) (string, error) {
	return a.e.word(a.ctx, `SELECT status || CASE WHEN reason <> '' THEN ':' || reason ELSE '' END FROM turns WHERE id = $1::text::uuid`, reply)
}

// becomes waits until the killed worker's reply is what it must be, and for nothing once it is something else.
func (a *ambiguousPlay) becomes(s *ambiguousScene, want string) error {
	return a.until(func() (bool, error) {
		is, err := a.status(s.reply)
		if err == nil && is != want && is != "in_flight" {
			err = fmt.Errorf("the killed worker's reply is %s instead of %s", is, want)
		}
		return is == want, err
	})
}

// after plays what comes after the kill.
func (a *ambiguousPlay) after(s *ambiguousScene) error {
	switch s.policy {
	case turnsv1.OnAmbiguous_ON_AMBIGUOUS_RETRY:
		return a.replaced(s)
	case turnsv1.OnAmbiguous_ON_AMBIGUOUS_HOLD:
		return a.heldBack(s)
	default:
		return a.sentAgain(s)
	}
}

// sentAgain demands that nobody made another call until the turn was sent again.
func (a *ambiguousPlay) sentAgain(s *ambiguousScene) error {
	if err := a.becomes(s, "abandoned:lease_expired"); err != nil {
		return err
	}
	if err := a.paid(s, 1); err != nil {
		return err
	}
	if err := a.anotherAttempt(s); err != nil {
		return err
	}
	s.outcome, s.cause = "slot free, sent again: a new attempt", "lease_expired"
	return a.paid(s, 2)
}

// anotherAttempt sends the turn again and demands a whole reply of another attempt, begun by this delivery.
func (a *ambiguousPlay) anotherAttempt(s *ambiguousScene) error {
	var h listener
	if err := a.resume(&h, a.other, s.in, &turnsv1.Cursor{ReplyId: s.reply}); err != nil {
		return err
	}
	if !h.completed || h.reply == s.reply || h.previous != s.reply || h.result != turnsv1.DeliveryResult_DELIVERY_RESULT_RETRIED || len(h.text) != againDeltas*16 {
		return fmt.Errorf("sent again it ended %s (%s), after the right reply: %t, with %d bytes", h.ending(), h.result, h.previous == s.reply, len(h.text))
	}
	return nil
}

// replaced demands that a follower of the dead worker's reply is led to the one that took its place, and that both calls are
// counted.
func (a *ambiguousPlay) replaced(s *ambiguousScene) error {
	var h listener
	if err := h.follow(a.ctx, a.other, s.in.GetConversationId(), s.reply); err != nil {
		return err
	}
	if !h.completed || h.previous != s.reply || h.reply == s.reply || len(h.text) != againDeltas*16 {
		return fmt.Errorf("the follower's stream ended %s, restarted: %t, with %d bytes", h.ending(), h.previous == s.reply, len(h.text))
	}
	calls, err := a.e.word(a.ctx, `SELECT calls::text FROM turns WHERE id = $1::text::uuid`, h.reply)
	if err != nil {
		return err
	}
	if calls != "2" {
		return fmt.Errorf("the second reply has spent %s calls of the budget", calls)
	}
	is, err := a.status(s.reply)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(is, "abandoned:") {
		return fmt.Errorf("the dead worker's reply is %s", is)
	}
	s.outcome, s.cause = "replaced, followers restarted, 2 calls counted", strings.TrimPrefix(is, "abandoned:")
	return a.paid(s, 2)
}

// heldBack demands that a held reply is kept and not tried again, until an operator releases it.
func (a *ambiguousPlay) heldBack(s *ambiguousScene) error {
	if err := a.becomes(s, "held"); err != nil {
		return err
	}
	var h listener
	if err := h.send(a.ctx, a.other, s.in, nil); err != nil {
		return err
	}
	if h.held == nil || h.reply != s.reply || h.result != turnsv1.DeliveryResult_DELIVERY_RESULT_REPLAYED {
		return fmt.Errorf("sent again while it is held it ended %s (%s)", h.ending(), h.result)
	}
	if err := a.paid(s, 1); err != nil {
		return err
	}
	if err := a.release(s); err != nil {
		return err
	}
	if err := a.anotherAttempt(s); err != nil {
		return err
	}
	s.outcome, s.cause = "held, released, sent again: a new attempt", "held_released"
	return a.paid(s, 2)
}

// release gives the reply up as an operator does, by the command.
func (a *ambiguousPlay) release(s *ambiguousScene) error {
	epoch, err := a.e.word(a.ctx, `SELECT epoch::text FROM turns WHERE id = $1::text::uuid`, s.reply)
	if err != nil {
		return err
	}
	list, err := a.command("held", "list", "--server", a.other.ready.Listen)
	if err != nil {
		return err
	}
	if !strings.Contains(list, s.reply) {
		return errors.New("the held reply is not listed")
	}
	said, err := a.command("held", "release", "--server", a.other.ready.Listen, "--epoch", epoch, s.in.GetConversationId(), s.reply)
	if err != nil {
		return err
	}
	if want := "is abandoned (held_released)"; !strings.Contains(said, want) {
		return fmt.Errorf("the release does not say %q", want)
	}
	return nil
}

// command runs a command of turnd and gives what it printed.
func (l *lab) command(args ...string) (string, error) {
	cmd := exec.CommandContext(l.ctx, l.bin, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.dir}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("turnd %s %s: %w: %s", args[0], args[1], err, bytes.TrimSpace(said.Bytes()))
	}
	return said.String(), nil
}

// spend lets a turn fail again and again, and demands that it ends with its budget. Its last call is the one that opens the
// breaker, so a second turn would be kept from asking.
func (a *ambiguousPlay) spend() error {
	s := &ambiguousScene{name: "retry_until_spent", in: textInput(uuid.NewString(), uuid.NewString(), "this is never spent", "openai"),
		outcome: "abandoned with its budget spent", cause: "ambiguous"}
	s.in.OnAmbiguous = turnsv1.OnAmbiguous_ON_AMBIGUOUS_RETRY
	a.scenes = append(a.scenes, s)
	var h listener
	if err := h.send(a.ctx, a.other, s.in, nil); err != nil {
		return err
	}
	if h.ending() != "ambiguous" {
		return fmt.Errorf("a turn that always fails ended %s", h.ending())
	}
	return errors.Join(h.hasAdvice(), a.paid(s, ownBudget))
}

// judge lets the provider finish what it still has and prints what each turn wasted.
func (a *ambiguousPlay) judge() error {
	for _, s := range a.scenes[:2*3] {
		if err := a.p.open(s.name); err != nil {
			return err
		}
	}
	calls, err := a.p.records(a.lab)
	if err != nil {
		return err
	}
	if err := a.settles(a.e, openCalls, 0); err != nil {
		return fmt.Errorf("calls were left open on the ledger: %w", err)
	}
	ledger, err := a.e.ledger(a.ctx)
	if err != nil {
		return err
	}
	all, err := pairs(ledger, calls)
	if err != nil {
		return err
	}
	return a.print(all)
}

func (a *ambiguousPlay) print(all []pair) (err error) {
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "policy and place\twhat became of it\trequests\twasted on the ledger\tcause\tgenerated there by the provider's count")
	total := 0
	for _, s := range a.scenes {
		requests, wasted, counted := 0, 0, 0
		for _, c := range all {
			if c.turn != s.in.GetTurnId() {
				continue
			}
			requests++
			if c.class == "ok" {
				err = errors.Join(err, c.isExact())
				continue
			}
			wasted, counted = wasted+c.wasted, counted+c.counted.InputTokens+c.counted.OutputTokens
			if c.wasted <= 0 || c.cause != s.cause || c.source != "estimated" {
				err = errors.Join(err, fmt.Errorf("%s: a lost call is %s with %d wasted tokens by %q", s.name, c.source, c.wasted, c.cause))
			}
		}
		total += wasted
		fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%s\t%d\n", s.name, s.outcome, requests, wasted, s.cause, counted)
	}
	if err := errors.Join(err, out.Flush()); err != nil {
		return err
	}
	figure("turns", len(a.scenes))
	figure("budget", ownBudget)
	figure("wasted_tokens", total)
	return nil
}

// isExact demands that a call which was answered is on the ledger as the provider counted it.
func (p pair) isExact() error {
	if p.source != "reported" || p.wasted != 0 || p.input != p.counted.InputTokens || p.output != p.counted.OutputTokens {
		return fmt.Errorf("%s: an answered call is %s with %d+%d tokens, and the provider counted %d+%d", p.endpoint, p.source, p.input, p.output,
			p.counted.InputTokens, p.counted.OutputTokens)
	}
	return nil
}

// word asks a Postgres for one word.
func (e engine) word(ctx context.Context, query string, args ...any) (word string, err error) {
	err = e.ask(ctx, &word, query, args...)
	return word, err
}
