package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/turnd/turnd/client"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// maxLine bounds a line of a chat in bytes: it is what a turn may hold by default.
const maxLine = 4 << 20

// talk is one run of chat.
type talk struct {
	chatEnds
	client       *client.Client
	record       *client.FileRecord
	conversation string // empty until the first turn of a new one is accepted
	model        string
	resumes      bool           // a turn in flight belongs to the conversation that was chosen
	last         *client.Stream // what /again is about; nil if there is nothing
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
	how, err := t.show(ctx, s)
	switch {
	case err != nil:
		return errors.New(explain(err, "run the same command again"))
	case how == left:
		return errors.New("left; the reply goes on, and the same command shows it")
	case how == completed:
		return nil
	}
	words := ending(s.Reply().End(), "run the same command again")
	// Where another attempt may cure it, the turn is put on record once more without being sent: so the same command is
	// what makes the attempt, and not a second turn of the same words.
	if err := s.Again(ctx); err != nil && !errors.Is(err, client.ErrNotAgain) {
		t.say(err.Error())
	}
	return errors.New(words)
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
func (t *talk) loop(ctx context.Context) error {
	t.say("each line is a turn; /again repeats what failed, /new opens a conversation, /quit or Ctrl-D ends")
	if err := t.resume(ctx); err != nil {
		return err
	}
	lines := readLines(t.in)
	defer close(lines.want)
	for ctx.Err() == nil {
		fmt.Fprint(t.status, "> ")
		line, err := lines.next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return nil // at the prompt nothing is running, so there is nothing to tell
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		if done, err := t.obey(ctx, strings.TrimSpace(line)); done || err != nil {
			return err
		}
	}
	return nil
}

// resume shows the turn that an earlier run left in flight.
func (t *talk) resume(ctx context.Context) error {
	if !t.resumes {
		return nil
	}
	s, err := t.client.Resume(ctx, client.FromStart)
	if errors.Is(err, client.ErrNoRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	t.say("going on with the reply that was left")
	t.watch(ctx, s)
	return nil
}

// obey does what a line says.
func (t *talk) obey(ctx context.Context, line string) (done bool, err error) {
	switch line {
	case "":
	case "/quit":
		return true, nil
	case "/new":
		t.conversation, t.last = "", nil
		t.say("a new conversation begins with the next line")
	case "/again":
		t.again(ctx)
	default:
		s, err := t.client.Send(ctx, t.input(line))
		if err != nil {
			return true, err
		}
		t.watch(ctx, s)
	}
	return false, nil
}

// again goes on with a turn whose stream was lost, or sends one whose reply was given up.
func (t *talk) again(ctx context.Context) {
	if t.last == nil {
		t.say("there is nothing to send again")
		return
	}
	if t.last.Reply().End() != nil {
		if err := t.last.Again(ctx); err != nil {
			t.say(err.Error())
			return
		}
	}
	t.watch(ctx, t.last)
}

// watch shows a stream and says in words what is to be done if it ends otherwise than well.
func (t *talk) watch(ctx context.Context, s *client.Stream) {
	how, err := t.show(ctx, s)
	t.last = s
	switch {
	case err != nil:
		t.say(explain(err, "type /again"))
	case how == left:
		t.say("left; the reply goes on, and turnd chat shows it when started again")
	case how == completed:
		t.last = nil
	default:
		t.say(ending(s.Reply().End(), "type /again"))
	}
	if id := s.ConversationID(); id != "" {
		t.conversation = id
	}
}

// pause waits, and says so if a person would notice.
func (t *talk) pause(ctx context.Context, d time.Duration) error {
	if d >= time.Second {
		t.say(fmt.Sprintf("no answer yet, trying again in %s", d.Round(time.Second)))
	}
	if t.wait != nil {
		return t.wait(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// say writes a line of status.
func (t *talk) say(text string) { fmt.Fprintln(t.status, "· "+text) }

// lineReader reads a line when it is asked for one. Reading from a terminal can't be called off: when the user leaves at
// the prompt, its goroutine stays in the read and ends with the process, or with the input.
type lineReader struct {
	want  chan struct{}
	lines chan lineRead
}

type lineRead struct {
	text string
	err  error
}

func readLines(in io.Reader) *lineReader {
	r := &lineReader{want: make(chan struct{}), lines: make(chan lineRead, 1)}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxLine)
	go func() {
		for range r.want {
			read := lineRead{err: io.EOF}
			if scanner.Scan() {
				read = lineRead{text: scanner.Text()}
			} else if err := scanner.Err(); err != nil {
				read.err = err
			}
			r.lines <- read
		}
	}()
	return r
}

// next asks for a line and waits for it.
func (r *lineReader) next(ctx context.Context) (string, error) {
	r.want <- struct{}{}
	select {
	case read := <-r.lines:
		return read.text, read.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
