package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// talk is one run of chat.
type talk struct {
	*screen
	interrupts   <-chan os.Signal
	lines        *lineReader // nil if no lines are read
	ways         ways
	client       *client.Client
	record       *client.FileRecord
	conversation string // empty until the first turn of a new one is accepted
	model        string
	resumes      bool     // a turn in flight belongs to the conversation that was chosen
	last         *subject // what commands are about; nil if that has to be looked up

	causeMu sync.Mutex
	told    bool // why there is no answer yet
}

// once sends one turn. If the record holds the same text as unfinished, then it is the same turn: the command was
// repeated because its answer was lost.
func (t *talk) once(ctx context.Context, text string) error {
	s, err := t.unfinished(ctx, text)
	if errors.Is(err, client.ErrNoRecord) {
		s, err = t.client.Send(ctx, t.input(text))
	}
	if err != nil {
		return err
	}
	end, err := t.show(ctx, sent(s))
	if err != nil || end.how == completed {
		return err
	}
	if end.how == failed && !end.lost {
		// Where another attempt may cure it, the turn is put on record once more without being sent: so the same command is
		// what makes the attempt, and not a second turn of the same words.
		if err := s.Again(ctx); err != nil && !errors.Is(err, client.ErrNotAgain) {
			t.say(err.Error())
		}
	}
	return errors.New(end.words)
}

// unfinished is the turn in flight, if it says the same.
func (t *talk) unfinished(ctx context.Context, text string) (*client.Stream, error) {
	r, err := t.record.Load(ctx)
	if err != nil || r == nil || !t.resumes {
		return nil, client.ErrNoRecord // what can't be read is dropped by the send
	}
	in := &turnsv1.TurnInput{}
	if proto.Unmarshal(r.Input, in) != nil || len(in.GetContent()) != 1 || in.GetContent()[0].GetText().GetText() != text {
		return nil, client.ErrNoRecord
	}
	s, err := t.client.Resume(ctx, client.FromStart)
	if err == nil {
		t.say("going on with the turn that was sent before")
	}
	return s, err
}

// input is a turn of plain text.
func (t *talk) input(text string) *turnsv1.TurnInput {
	in := &turnsv1.TurnInput{ConversationId: t.conversation, Content: []*turnsv1.Block{
		{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}}}
	if t.model != "" {
		in.Options = &turnsv1.GenerationOptions{Model: t.model}
	}
	return in
}

// loop reads lines and answers them until the input ends or the user leaves.
func (t *talk) loop(ctx context.Context, in io.Reader) error {
	t.say("each line is a turn; Ctrl-C stops a reply, /help lists the commands, Ctrl-D ends")
	t.lines = readLines(in)
	defer t.lines.close()
	if done, err := t.resume(ctx); done || err != nil {
		return err
	}
	for {
		line, err := t.line(ctx)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errLeft):
			return nil // at the prompt nothing is running, so there is nothing to tell
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		if done, err := t.obey(ctx, strings.TrimSpace(line)); done || err != nil {
			return err
		}
	}
}

// errLeft is a user who leaves at the prompt.
var errLeft = errors.New("left")

// line waits for the next line at the prompt.
func (t *talk) line(ctx context.Context) (string, error) {
	if ctx.Err() != nil {
		return "", errLeft
	}
	t.prompt()
	if read, ok := t.lines.takeKept(); ok {
		return read.text, read.err
	}
	select {
	case read := <-t.lines.next():
		t.lines.took(read, false)
		return read.text, read.err
	case <-t.interrupts:
		return "", errLeft
	case <-ctx.Done():
		return "", errLeft
	}
}

// resume shows the turn that an earlier run left in flight.
func (t *talk) resume(ctx context.Context) (done bool, err error) {
	if !t.resumes {
		return false, nil
	}
	s, err := t.client.Resume(ctx, client.FromStart)
	if errors.Is(err, client.ErrNoRecord) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.say("going on with the reply that was left")
	return t.watch(ctx, sent(s))
}

// watch shows a reply and says in words what is to be done if it ends otherwise than well. It is done when the user left.
func (t *talk) watch(ctx context.Context, about *subject) (done bool, err error) {
	end, err := t.show(ctx, about)
	if err != nil {
		return true, err
	}
	t.last = about
	if about.conversation != "" {
		t.conversation = about.conversation
	}
	if end.words != "" {
		t.say(end.words)
	}
	return end.how == left, nil
}

// resetCause has the next wait say its cause.
func (t *talk) resetCause() {
	t.causeMu.Lock()
	defer t.causeMu.Unlock()
	t.told = false
}

// trying says that there is no answer yet, if a person would notice, and the first time why.
func (t *talk) trying(cause *client.Error, d time.Duration) {
	if d < time.Second {
		return
	}
	t.causeMu.Lock()
	defer t.causeMu.Unlock()
	words := fmt.Sprintf("no answer yet, trying again in %s", d.Round(time.Second))
	if !t.told {
		words += ": " + t.ways.cause(cause)
	}
	t.told = true
	t.say(words)
}
