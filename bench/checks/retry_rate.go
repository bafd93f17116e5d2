package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	// retryRequests are the requests of a whole run and of a short one, of which retryPer mille are made again.
	retryRequests = 4000
	retryShort    = 1000
	retryPerMille = 6
	// Conversations have as many turns as a log-normal distribution with this median and this spread says, up to a most.
	retryMedian = 8
	retrySpread = 0.65
	retryMost   = 60
	// retryAtOnce is how many conversations go on at a time.
	retryAtOnce = 16
	// The share in tokens is that in requests, times this much at least and at most.
	retryLeast, retryLimit = 1.5, 3.0
)

// rate is how much there was in all, and how much of it was made again.
type rate struct{ requests, retries, tokens, retryTokens int64 }

func (r rate) byRequests() float64 { return 100 * float64(r.retries) / float64(r.requests) }
func (r rate) byTokens() float64   { return 100 * float64(r.retryTokens) / float64(r.tokens) }

// retryRate shows that a share of requests that looks small is more in tokens, since what fails is long: conversations of
// many lengths meet a provider that fails a request the more often the longer it is. The two shares are read in three places that
// know nothing of each other: a scrape of the service, SQL on its ledger, and the provider's own records.
func retryRate(l *lab) error {
	requests := retryRequests
	if l.short {
		requests = retryShort
	}
	retries := requests * retryPerMille / 1000
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("SEED"), "1"), 10, 64)
	if err != nil {
		return fmt.Errorf("SEED: %w", err)
	}
	random := rand.New(rand.NewPCG(seed, retryPerMille))
	lengths := conversationLengths(random, requests-retries)
	failing := longerOnes(random, lengths, retries)
	e, err := l.postgres("retries")
	if err != nil {
		return err
	}
	p, err := l.provider(object{"rules": append(overloadedAt(failing), plain(8))})
	if err != nil {
		return err
	}
	models, err := l.models(p.url)
	if err != nil {
		return err
	}
	s, err := l.serve(e, models, "--backoff", "1ms", "--ops-listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := converse(l.ctx, s, lengths); err != nil {
		return err
	}
	if err := l.settles(e, openCalls, 0); err != nil {
		return err
	}
	counted, err := providersRate(p)
	if err != nil {
		return err
	}
	booked, err := ledgersRate(l.ctx, e)
	if err != nil {
		return err
	}
	var shown rate
	err = l.until(func() (bool, error) { // a call is counted just after it is booked
		shown, err = scrapedRate(l.ctx, s.ready.Ops)
		return shown.requests >= booked.requests, err
	})
	if err != nil {
		return err
	}
	return judgeRates(requests, retries, map[string]rate{"metrics": shown, "ledger": booked, "provider": counted})
}

// conversationLengths are how many turns each conversation has, so many in all.
func conversationLengths(random *rand.Rand, turns int) (lengths []int) {
	for turns > 0 {
		n := int(math.Round(retryMedian * math.Exp(retrySpread*random.NormFloat64())))
		n = max(1, min(n, retryMost, turns))
		lengths, turns = append(lengths, n), turns-n
	}
	return lengths
}

// turnOf is a turn: the place of its conversation, and its own place in it, from 1.
type turnOf struct{ conversation, place int }

func (t turnOf) text() string {
	return fmt.Sprintf("turn %d of conversation %d, which says something of about the same length each time it is said", t.place, t.conversation)
}

// longerOnes chooses n turns, each the more likely the longer its request is, which grows with its place: they lie at equal
// steps along all requests put end to end, the short ones first.
func longerOnes(random *rand.Rand, lengths []int, n int) (chosen []turnOf) {
	var all []turnOf
	total := 0
	for c, length := range lengths {
		for place := 1; place <= length; place++ {
			all, total = append(all, turnOf{c, place}), total+place
		}
	}
	slices.SortStableFunc(all, func(a, b turnOf) int { return a.place - b.place })
	step := float64(total) / float64(n)
	next, passed := random.Float64()*step, 0.0
	for _, t := range all {
		if passed += float64(t.place); len(chosen) < n && passed > next {
			chosen, next = append(chosen, t), next+step
		}
	}
	return chosen
}

// overloadedAt are rules by which the provider turns the first request of each of some turns down.
func overloadedAt(turns []turnOf) (rules []object) {
	for _, t := range turns {
		rules = append(rules, object{"times": 1, "match": object{"text": "^" + regexp.QuoteMeta(t.text()) + "$"}, "plan": object{
			"steps": []object{{"at": "request_read", "do": "status", "status": 529, "error": "overloaded_error"}}}})
	}
	return rules
}

// converse plays all conversations to their ends.
func converse(ctx context.Context, s *service, lengths []int) error {
	var all sync.WaitGroup
	places, problems := make(chan struct{}, retryAtOnce), make([]error, len(lengths))
	for c, length := range lengths {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			conversation := uuid.NewString()
			for place := 1; place <= length && problems[c] == nil; place++ {
				problems[c] = sayOnce(ctx, s, conversation, turnOf{c, place}.text())
			}
		})
	}
	all.Wait()
	return errors.Join(problems...)
}

// sayOnce takes one turn to the end of its reply.
func sayOnce(ctx context.Context, s *service, conversation, text string) error {
	in := textInput(conversation, uuid.NewString(), text, "anthropic")
	got, err := s.turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
	if err != nil {
		return err
	}
	h := &listener{}
	if err := h.follow(ctx, s, conversation, got.GetReply().GetReplyId()); err != nil || !h.completed {
		return errors.Join(err, fmt.Errorf("%q: %s", text, h.ending()))
	}
	return nil
}

// providersRate is what the provider counted: a request is one made again when one with its key came before.
func providersRate(p *provider) (r rate, err error) {
	calls, err := p.calls()
	slices.SortFunc(calls, func(a, b scripted.Call) int { return a.N - b.N })
	seen := map[string]bool{}
	for _, c := range calls {
		tokens := int64(0)
		if c.UsageReported {
			tokens = int64(c.InputTokens + c.OutputTokens)
		}
		r.requests, r.tokens = r.requests+1, r.tokens+tokens
		if seen[c.IdempotencyKey] {
			r.retries, r.retryTokens = r.retries+1, r.retryTokens+tokens
		}
		seen[c.IdempotencyKey] = true
	}
	return r, err
}

// ledgersRate is what the ledger says.
func ledgersRate(ctx context.Context, e engine) (r rate, err error) {
	const tokens = `coalesce(sum(CASE WHEN token_source = 'reported' THEN input_tokens + output_tokens END), 0)`
	for query, n := range map[string]*int64{
		`SELECT count(*) FROM provider_calls`:                              &r.requests,
		`SELECT count(*) FROM provider_calls WHERE layer <> 'first'`:       &r.retries,
		`SELECT ` + tokens + ` FROM provider_calls`:                        &r.tokens,
		`SELECT ` + tokens + ` FROM provider_calls WHERE layer <> 'first'`: &r.retryTokens,
	} {
		err = errors.Join(err, e.ask(ctx, n, query))
	}
	return r, err
}

// scrapedRate is what a scrape shows.
func scrapedRate(ctx context.Context, ops string) (r rate, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+ops+"/metrics", nil)
	if err != nil {
		return r, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(io.LimitReader(answer.Body, 16<<20)); lines.Scan(); {
		name, labels, _ := strings.Cut(lines.Text(), "{")
		_, text, _ := strings.Cut(labels, "} ")
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue // a comment, or a metric without labels
		}
		again := int64(n)
		if strings.Contains(labels, `layer="first"`) {
			again = 0
		}
		switch name {
		case "turnd_requests_total":
			r.requests, r.retries = r.requests+int64(n), r.retries+again
		case "turnd_requests_tokens_total":
			r.tokens, r.retryTokens = r.tokens+int64(n), r.retryTokens+again
		}
	}
	return r, nil
}

// judgeRates prints the shares by their places, and demands that they are the same.
func judgeRates(requests, retries int, rates map[string]rate) error {
	truth := rates["provider"]
	figure("requests", truth.requests)
	figure("retried", truth.retries)
	for _, place := range []string{"metrics", "ledger", "provider"} {
		figure(place+"_percent_of_requests", fmt.Sprintf("%.3f", rates[place].byRequests()))
		figure(place+"_percent_of_tokens", fmt.Sprintf("%.3f", rates[place].byTokens()))
	}
	factor := truth.byTokens() / truth.byRequests()
	figure("factor", fmt.Sprintf("%.2f", factor))
	for place, r := range rates {
		if r != truth {
			return fmt.Errorf("the %s say %+v, and the provider counted %+v", place, r, truth)
		}
	}
	if truth.requests != int64(requests) || truth.retries != int64(retries) {
		return fmt.Errorf("the provider counted %d requests, %d of them again; %d and %d were meant", truth.requests, truth.retries, requests, retries)
	}
	if factor < retryLeast || factor > retryLimit {
		return fmt.Errorf("the share in tokens is %.2f times that in requests, and not %.1f to %.1f times", factor, retryLeast, retryLimit)
	}
	return nil
}
