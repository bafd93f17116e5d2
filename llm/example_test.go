package llm_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/anthropic"
	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/scripted"
	"github.com/turnd/turnd/turns"
)

// A router finds who answers for a model, builds the request and makes the call.
func Example() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := scripted.New(scripted.Script{Rules: []scripted.Rule{
		{Plan: scripted.Plan{Blocks: []scripted.Block{{Text: "Hello to you."}}}},
	}}, scripted.Options{})
	served := make(chan error, 1)
	go func() { served <- provider.Serve(listener) }()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = provider.Close(ctx)
		<-served
	}()

	config := llm.Demo("http://" + listener.Addr().String())
	router, err := llm.New(config, llm.Options{Adapters: []llm.Adapter{anthropic.Adapter(), openai.Adapter()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer router.Close()

	routes, _ := router.Routes("") // of the default model
	request, _ := router.Build(routes[0], turns.Prompt{Messages: []turns.Message{
		{Role: turns.RoleUser, Content: []turns.Block{turns.Text{Text: "Hello."}}},
	}})
	for delta, err := range router.Generate(context.Background(), turns.Call{Request: request}) {
		switch d := delta.(type) {
		case turns.BlockDelta:
			fmt.Print(d.Text)
		case turns.Finished:
			fmt.Println("", d.StopReason)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output: Hello to you. end_turn
}
