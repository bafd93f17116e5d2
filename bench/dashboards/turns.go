package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// turn makes a new turn of a new conversation.
func turn(model, text string) *turnsv1.TurnInput {
	return &turnsv1.TurnInput{
		ConversationId: uuid.NewString(), TurnId: uuid.NewString(), Options: &turnsv1.GenerationOptions{Model: model},
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}},
	}
}

// sends delivers a turn and follows it to the end; how the reply ended is nobody's concern here.
func (w *worker) sends(ctx context.Context, in *turnsv1.TurnInput) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := w.turns.Turn(ctx, &turnsv1.TurnRequest{Input: in})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// submits delivers a turn.
func (w *worker) submits(ctx context.Context, in *turnsv1.TurnInput) error {
	_, err := w.turns.SubmitTurn(ctx, &turnsv1.SubmitTurnRequest{Input: in})
	return err
}

// each does something so often at once, and returns the first error.
func each(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// opens lets the replies at a gate go on.
func (h *house) opens(gate string) error {
	return h.provider.Control(h.ctx, http.MethodPost, "/_scripted/gates/"+gate+"/open", nil, nil)
}

// arrived waits until so many replies are at a gate.
func (h *house) arrived(gate string, n int) error {
	return h.provider.Control(h.ctx, http.MethodGet, fmt.Sprintf("/_scripted/wait?gate=%s&arrived=%d&timeout=20s", gate, n), nil, nil)
}

// pace is how often a turn is sent to the worker that is left alone.
const pace = 150 * time.Millisecond

// everyday is the traffic that runs beside all faults, on the worker that is left alone.
type everyday struct {
	stop func()
	sent atomic.Int64

	mu    sync.Mutex
	took  []time.Duration
	wrong error
}

// begin starts it.
func (h *house) begin() *everyday {
	ctx, cancel := context.WithCancel(h.ctx)
	var running sync.WaitGroup
	e := &everyday{stop: func() { cancel(); running.Wait() }}
	w := h.workers["calm"]
	running.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			running.Go(func() {
				begun := time.Now()
				err := w.sends(ctx, turn("quick", "a turn of every day"))
				if ctx.Err() == nil {
					e.note(time.Since(begun), err)
				}
			})
		}
	})
	return e
}

func (e *everyday) note(took time.Duration, err error) {
	e.sent.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.took = append(e.took, took)
	if err != nil && e.wrong == nil {
		e.wrong = err
	}
}

// taken are the times that turns took since it was asked last.
func (e *everyday) taken() ([]time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	took := e.took
	e.took = nil
	return took, e.wrong
}

// large is a text that a worker's memory feels.
func large() string { return strings.Repeat("many words that mean nothing ", 16<<10) }
