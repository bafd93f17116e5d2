package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// again plays what people do to replies on two servers of one Postgres at once: regenerate by a double click, choose the
// old reply again, cancel against regenerate, interrupt. Meanwhile it samples that no user turn has two live replies.
func again(l *lab) error {
	total := 200
	if l.short {
		total = 60
	}
	e, err := l.postgres("again")
	if err != nil {
		return err
	}
	p, err := l.provider(object{"rules": []object{
		{"name": "long", "match": object{"text": "long story$"}, "plan": paced(2000, 5)},
		{"name": "short", "plan": paced(24, 2)}}})
	if err != nil {
		return err
	}
	models, err := l.models(p.url)
	if err != nil {
		return err
	}
	var pair [2]*service
	for i := range pair {
		if pair[i], err = l.serve(e, models); err != nil {
			return err
		}
	}
	watch := startSampler(l.ctx, e)
	var sums againSums
	group, _ := errgroup.WithContext(l.ctx)
	group.SetLimit(12)
	for i := range total {
		group.Go(func() error {
			if err := l.playAgain(pair, &sums, i); err != nil {
				return fmt.Errorf("conversation %d: %w", i, err)
			}
			return nil
		})
	}
	err = group.Wait()
	samples, sampleErr := watch.stop()
	if err := errors.Join(err, sampleErr); err != nil {
		return err
	}
	if err := l.nothingRuns(e); err != nil {
		return err
	}
	calls, reported, err := l.ledgerAgainstProvider(e, p)
	if err != nil {
		return err
	}
	figure("conversations", total)
	figure("double_clicks_that_were_one", sums.clicks.Load())
	figure("selected_back", sums.selected.Load())
	figure("interrupted", sums.interrupted.Load())
	figure("equal_streams", sums.streams.Load())
	figure("samples", samples)
	figure("samples_with_two_live", 0)
	figure("ledger_rows", calls)
	figure("reported_rows_equal_to_the_provider", reported)
	return nil
}

// paced is a reply that takes its time and ends with its client.
func paced(deltas, ms int) object {
	return object{"reply": object{"deltas": deltas, "delta_bytes": 16, "seed": 4}, "pace_ms": ms, "on_client_gone": "stop"}
}

type againSums struct{ clicks, selected, interrupted, streams atomic.Int64 }

// playAgain is one conversation's scene.
func (l *lab) playAgain(pair [2]*service, sums *againSums, i int) error {
	in := textInput(uuid.NewString(), uuid.NewString(), "a question", []string{"anthropic", "openai"}[i%2])
	here, there := pair[i%2], pair[(i+1)%2]
	var first listener
	if err := first.send(l.ctx, here, in, nil); err != nil || !first.completed {
		return errors.Join(err, fmt.Errorf("the first reply: completed=%t", first.completed))
	}
	second, err := l.doubleClick(pair, in.GetConversationId(), first.reply)
	if err != nil {
		return err
	}
	sums.clicks.Add(1)
	a, b := listener{}, listener{}
	if err := errors.Join(a.send(l.ctx, here, in, nil), b.send(l.ctx, there, in, nil)); err != nil {
		return err
	}
	if a.reply != second {
		return errors.New("the turn sent again does not follow the regenerated reply")
	}
	if err := equalStreams([]heard{a.heard, b.heard}); err != nil {
		return err
	}
	sums.streams.Add(2)
	if _, err := there.turns.SelectReply(l.ctx, &turnsv1.SelectReplyRequest{ConversationId: in.GetConversationId(), ReplyId: first.reply}); err != nil {
		return fmt.Errorf("select: %w", err)
	}
	sums.selected.Add(1)
	if err := l.cancelAgainstRegenerate(pair, in, first.reply); err != nil {
		return err
	}
	return l.interrupt(here, there, in, sums)
}

// doubleClick regenerates on both servers at once and demands one new reply.
func (l *lab) doubleClick(pair [2]*service, conversation, reply string) (string, error) {
	var made [2]*turnsv1.RegenerateReplyResponse
	var errs [2]error
	var clicks sync.WaitGroup
	for side, s := range pair {
		clicks.Go(func() {
			made[side], errs[side] = s.turns.RegenerateReply(l.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: conversation, ReplyId: reply})
		})
	}
	clicks.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return "", fmt.Errorf("double click: %w", err)
	}
	if made[0].GetReply().GetReplyId() != made[1].GetReply().GetReplyId() || made[0].GetReplayed() == made[1].GetReplayed() {
		return "", errors.New("a double click made two replies")
	}
	return made[0].GetReply().GetReplyId(), nil
}

// cancelAgainstRegenerate sends both within ten milliseconds; whichever comes first, the turn ends with one live reply or
// none, which the sampler and the end of the check assert.
func (l *lab) cancelAgainstRegenerate(pair [2]*service, in *turnsv1.TurnInput, reply string) error {
	var race sync.WaitGroup
	var errs [2]error
	race.Go(func() {
		_, errs[0] = pair[0].turns.RegenerateReply(l.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: in.GetConversationId(), ReplyId: reply, ExpectedGeneration: 2})
	})
	race.Go(func() {
		_, errs[1] = pair[1].turns.CancelReply(l.ctx, &turnsv1.CancelReplyRequest{ConversationId: in.GetConversationId(), Target: &turnsv1.CancelReplyRequest_TurnId{TurnId: in.GetTurnId()}})
	})
	race.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("cancel against regenerate: %w", err)
	}
	var after listener // the generation's reply, whatever became of it, must end
	return after.send(l.ctx, pair[1], in, nil)
}

// interrupt starts a turn on one server and interrupts it from the other.
func (l *lab) interrupt(here, there *service, in *turnsv1.TurnInput, sums *againSums) error {
	model := in.GetOptions().GetModel()
	busy := textInput(in.GetConversationId(), uuid.NewString(), "a long story", model)
	cutIn := textInput(in.GetConversationId(), uuid.NewString(), "never mind", model)
	cutIn.OnBusy = turnsv1.OnBusy_ON_BUSY_INTERRUPT
	var running, next listener
	var started sync.Once
	begun := make(chan struct{})
	running.watch = func(h *listener) {
		if h.offset > 0 {
			started.Do(func() { close(begun) })
		}
	}
	var err error
	var stream sync.WaitGroup
	stream.Go(func() {
		err = running.send(l.ctx, here, busy, nil)
		started.Do(func() { close(begun) })
	})
	<-begun
	nextErr := next.send(l.ctx, there, cutIn, nil)
	stream.Wait()
	if err := errors.Join(err, nextErr); err != nil {
		return fmt.Errorf("interrupt: %w", err)
	}
	if !next.completed {
		return errors.New("the turn that interrupted was not answered")
	}
	if running.abandoned.GetReason() != turnsv1.AbandonReason_ABANDON_REASON_CANCELLED {
		return errors.New("the turn that was interrupted does not say so")
	}
	sums.interrupted.Add(1)
	return nil
}

// sampler asks again and again whether any user turn has two live replies.
type sampler struct {
	cancel context.CancelFunc
	done   chan struct{}
	n      int
	err    error
}

func startSampler(ctx context.Context, e engine) *sampler {
	ctx, cancel := context.WithCancel(ctx)
	s := &sampler{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for ctx.Err() == nil {
			doubled, err := e.number(ctx, doubleSlots)
			if ctx.Err() != nil {
				return
			}
			if err != nil || doubled != 0 {
				s.err = errors.Join(err, fmt.Errorf("%d user turns have two live replies", doubled))
				return
			}
			s.n++
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return s
}

func (s *sampler) stop() (int, error) {
	s.cancel()
	<-s.done
	return s.n, s.err
}

// nothingRuns waits until nothing is in flight, and demands that no call is open.
func (l *lab) nothingRuns(e engine) error {
	if err := l.until(func() (bool, error) {
		n, err := e.number(l.ctx, inFlight)
		return n == 0, err
	}); err != nil {
		return fmt.Errorf("replies are left running: %w", err)
	}
	for _, query := range []string{openCalls, doubleSlots} {
		if n, err := e.number(l.ctx, query); err != nil || n != 0 {
			return errors.Join(err, fmt.Errorf("%d instead of 0: %s", n, query))
		}
	}
	return nil
}

// ledgerAgainstProvider compares the ledger with the provider's own count: as many rows as requests, and every row that
// is marked as reported with the tokens that the provider counted for that response.
func (l *lab) ledgerAgainstProvider(e engine, p *provider) (rows, reported int, err error) {
	calls, err := p.calls()
	if err != nil {
		return 0, 0, err
	}
	counted := map[string]int{}
	for _, c := range calls {
		counted[c.ResponseID] = c.InputTokens + c.OutputTokens
	}
	db, err := sql.Open(e.driver, e.dsn)
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	found, err := db.QueryContext(l.ctx, `SELECT provider_response_id, input_tokens + output_tokens, token_source FROM provider_calls WHERE class <> 'not_sent'`)
	if err != nil {
		return 0, 0, err
	}
	defer found.Close()
	for found.Next() {
		var id, source string
		var tokens int
		if err := found.Scan(&id, &tokens, &source); err != nil {
			return 0, 0, err
		}
		rows++
		if source != "reported" {
			continue
		}
		reported++
		if tokens != counted[id] {
			return 0, 0, fmt.Errorf("the ledger has %d tokens for a response of which the provider counted %d", tokens, counted[id])
		}
	}
	if rows != len(calls) {
		return 0, 0, fmt.Errorf("the ledger has %d rows of sent calls, the provider counted %d requests", rows, len(calls))
	}
	return rows, reported, found.Err()
}
