package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/turnd/turnd/client"
	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

func Example() {
	server, stop := demo()
	defer stop()
	conn, err := client.Dial(server)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	c := client.New(conn, client.Options{})
	ctx := context.Background()
	stream, err := c.Send(ctx, &turnsv1.TurnInput{
		TurnId:  client.TurnIDFor("slack:Ev0123"), // left out, it is minted
		Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: "What is a turn?"}}}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range stream.Events(ctx) {
		var refused *client.Error
		switch {
		case errors.As(err, &refused):
			fmt.Println("refused:", refused.Reason, refused.Advice)
		case err != nil:
			fmt.Println("lost:", err)
		case event.GetDelta() != nil:
			fmt.Print(event.GetDelta().GetText())
		case event.GetRestarted() != nil && !event.GetRestarted().GetContinues():
			fmt.Println("(drop what was shown)")
		case event.GetCompleted() != nil:
			fmt.Println()
		case event.GetAbandoned() != nil:
			fmt.Println("(given up; stream.Again may try once more)")
		}
	}
	fmt.Println(len(stream.Reply().Blocks()), "block")
	// Output:
	// What a person says, once.
	// 1 block
}

// demo is a server whose stream is lost once in the middle.
func demo() (addr string, stop func()) {
	log := fake.Text(replyA, "What a person ", "says, once.")
	t := &exampleTB{}
	s := fake.Start(t,
		fake.Play(fake.All(accepted(isNew), fake.Started(replyA, 1), log[:2])...),
		fake.Play(fake.All(accepted(attached), fake.Started(replyA, 1), fake.From(log, 15), fake.Completed(log))...))
	return s.Addr, t.end
}

// exampleTB is as much of a test as an example has.
type exampleTB struct {
	testing.TB
	cleanup []func()
}

func (e *exampleTB) Helper()                           {}
func (e *exampleTB) Context() context.Context          { return context.Background() }
func (e *exampleTB) Cleanup(f func())                  { e.cleanup = append(e.cleanup, f) }
func (e *exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (e *exampleTB) Errorf(format string, args ...any) { fmt.Printf(format, args...) }

func (e *exampleTB) end() {
	for _, f := range e.cleanup {
		f()
	}
}
