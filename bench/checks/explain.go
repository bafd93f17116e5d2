package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// The place of the story in the README.
const (
	explainPage  = "README.md"
	explainBegin = "<!-- explain:begin, written by UPDATE=1 make explain -->\n"
	explainEnd   = "<!-- explain:end -->"
)

const (
	repeatsStored = `SELECT COALESCE(sum(count), 0) FROM turn_repeats`
	takeoversTold = `SELECT count(*) FROM reply_takeovers`
)

// explain delivers a turn five times to two workers, of which one is killed in the middle of its reply, and has the other tell
// what became of it. The story must be the one that was played, and the one in the README.
func explain(l *lab) error {
	e, err := l.postgres("explain")
	if err != nil {
		return err
	}
	x := &explainPlay{lab: l, e: e, in: textInput(uuid.NewString(), uuid.NewString(), askedWords, "m")}
	if err := x.play(); err != nil {
		return err
	}
	story, err := x.tell()
	if err != nil {
		return err
	}
	fmt.Print(story)
	if err := x.judge(story); err != nil {
		return err
	}
	return inReadme(story)
}

type explainPlay struct {
	*lab
	e     engine
	in    *turnsv1.TurnInput
	other *service
}

// play sends the turn to the first worker, twice again while its reply runs, kills that worker, and sends it twice more.
func (x *explainPlay) play() error {
	p, err := x.provider(object{"rules": []object{
		{"match": object{"nth": 1}, "plan": faulty(object{"at": "request_read", "do": "status", "status": 503})},
		stopsAt("background", "delta:37"),
	}})
	if err != nil {
		return err
	}
	models, err := x.write("explained.yaml", fmt.Sprintf(`version: 1
endpoints:
  gpt: {wire: openai.responses, base_url: %q, capabilities: {resume: true, cancel: true}, prices: {input: 2, output: 8}}
models:
  m: {route: [{endpoint: gpt, model: background}]}
`, p.url))
	if err != nil {
		return err
	}
	settings := func(name string) []string {
		return append([]string{"--worker-name", name, "--backoff", "200ms"}, shortLease...)
	}
	first, err := x.serve(x.e, models, settings("blue")...)
	if err != nil {
		return err
	}
	if x.other, err = x.serve(x.e, models, settings("green")...); err != nil {
		return err
	}
	if err := x.deliver(first, turnsv1.DeliverySource_DELIVERY_SOURCE_UNSPECIFIED); err != nil {
		return err
	}
	if err := p.arrived("background", 1); err != nil {
		return err
	}
	if err := x.settles(x.e, `SELECT count(*) FROM reply_chunks WHERE end_offset >= 592`, 1); err != nil {
		return err
	}
	if err := errors.Join(x.deliver(first, turnsv1.DeliverySource_DELIVERY_SOURCE_CLIENT_RETRY),
		x.deliver(x.other, turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY)); err != nil {
		return err
	}
	if err := x.settles(x.e, repeatsStored, 2); err != nil {
		return fmt.Errorf("the repeats that the killed worker saw: %w", err)
	}
	first.kill(syscall.SIGKILL)
	if err := x.settles(x.e, takeoversTold, 1); err != nil {
		return fmt.Errorf("not taken over: %w", err)
	}
	if err := x.deliver(x.other, turnsv1.DeliverySource_DELIVERY_SOURCE_CLIENT_RETRY); err != nil {
		return err
	}
	if err := p.open("background"); err != nil {
		return err
	}
	if err := x.settles(x.e, completeReplies, 1); err != nil {
		return err
	}
	if err := x.deliver(x.other, turnsv1.DeliverySource_DELIVERY_SOURCE_REDELIVERY); err != nil {
		return err
	}
	return x.settles(x.e, repeatsStored, 4)
}

func (x *explainPlay) deliver(to *service, source turnsv1.DeliverySource) error {
	in := proto.Clone(x.in).(*turnsv1.TurnInput)
	in.Source = source
	_, err := to.turns.SubmitTurn(x.ctx, &turnsv1.SubmitTurnRequest{Input: in})
	return err
}

// tell runs the command.
func (x *explainPlay) tell() (string, error) {
	ctx, cancel := context.WithTimeout(x.ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, x.bin, "explain", x.in.GetConversationId()+"/"+x.in.GetTurnId(), "--server", x.other.ready.Listen)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("turnd explain: %w: %s", err, problems.String())
	}
	return string(out), nil
}

// told is what the story must have, in this order; blanks are as many as the table needs.
var told = []string{
	`delivered +for the first time`,
	`claimed +epoch 1, by blue \(`,
	`call 1 +first, to gpt for m; epoch 1; transient .*HTTP 503; 0 tokens in, 0 out; key `,
	`call 2 +provider, to gpt for m; epoch 1; ok .* tokens in, 64 out; cost \d+; key `,
	`taken over +epoch 2, by green \(.* from blue \(.*: the provider is asked what became of its call`,
	`complete +log of \d+; .* out by 2 calls`,
	`in all: 5 deliveries, 1 reply, 1 takeover; 2 calls \(1 first, 1 retry\) under 1 idempotency key; \d+ tokens in, 64 out, none wasted; cost \d+`,
}

func (x *explainPlay) judge(story string) error {
	rest := story
	for _, want := range told {
		at := regexp.MustCompile(want).FindStringIndex(rest)
		if at == nil {
			return fmt.Errorf("the story lacks, or has at another place: %s", want)
		}
		rest = rest[at[1]:]
	}
	for _, again := range []string{"client", "redelivery"} {
		if !regexp.MustCompile(`delivered again x2 +by ` + again).MatchString(story) {
			return fmt.Errorf("the story lacks the two repeats by %s", again)
		}
	}
	for query, want := range map[string]int{ledgerRows: 2, openCalls: 0, wastedRows: 0, liveReplies: 1, userTurns: 1} {
		if got, err := x.e.number(x.ctx, query); err != nil || got != want {
			return errors.Join(err, fmt.Errorf("%d instead of %d: %s", got, want, query))
		}
	}
	for name, value := range map[string]int{"deliveries": 5, "replies": 1, "takeovers": 1, "epochs": 2, "calls": 2, "keys": 1, "wasted": 0} {
		figure(name, value)
	}
	return nil
}

// inReadme compares a story with the one that is printed there, or puts it there.
func inReadme(story string) error {
	page, err := os.ReadFile(explainPage)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(page), explainBegin)
	block, after, ends := strings.Cut(rest, explainEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the story", explainPage)
	}
	if os.Getenv("UPDATE") != "" {
		return os.WriteFile(explainPage, []byte(before+explainBegin+"```\n"+story+"```\n"+explainEnd+after), 0o644)
	}
	shown := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(block), "```\n"), "```")
	if got, want := likeness(story), likeness(shown); got != want {
		return fmt.Errorf("the story in %s is another one, see UPDATE=1 make explain:\n%s", explainPage, firstDifference(got, want))
	}
	return nil
}

// What differs from one play to the next.
var (
	storyIDs    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	storyHash   = regexp.MustCompile(`-[0-9a-f]{8}\b`)
	storyTrace  = regexp.MustCompile(`, trace [0-9a-f]{32}`)
	storyMoment = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`)
	storyAfter  = regexp.MustCompile(`\+\d+\.\d+s`)
	storyTook   = regexp.MustCompile(`after [0-9.]+(ms|s|µs)`)
	storyBlanks = regexp.MustCompile(` +`)
)

// likeness is a story without what differs each time: ids are numbered in the order in which they come, and times have no
// value. Repeats may have come before or after what they came beside, so lines stand in the order of their words.
func likeness(story string) string {
	numbers := map[string]string{}
	story = storyIDs.ReplaceAllStringFunc(story, func(id string) string {
		if numbers[id] == "" {
			numbers[id] = fmt.Sprintf("ID%d", len(numbers)+1)
		}
		return numbers[id]
	})
	for _, r := range []struct {
		pattern *regexp.Regexp
		with    string
	}{{storyTrace, ""}, {storyHash, "-HASH"}, {storyMoment, "TIME"}, {storyAfter, "+T"}, {storyTook, "after T"}, {storyBlanks, " "}} {
		story = r.pattern.ReplaceAllString(story, r.with)
	}
	lines := strings.Split(strings.TrimSpace(story), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "played: " + a[i] + "\nshown:  " + b[i]
		}
	}
	return fmt.Sprintf("played %d lines, shown %d", len(a), len(b))
}
