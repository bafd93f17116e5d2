package scripted_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/turnd/turnd/llm/scripted"
)

// A stream that is cut after its third delta costs as much as a whole one.
func Example() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := scripted.New(scripted.Script{Rules: []scripted.Rule{{
		Name: "cut3",
		Plan: scripted.Plan{
			Reply: &scripted.Reply{Deltas: 8},
			Steps: []scripted.Step{{At: scripted.AfterDelta(3), Do: scripted.DoReset}},
		},
	}}}, scripted.Options{})
	served := make(chan error, 1)
	go func() { served <- provider.Serve(l) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	const body = `{"model":"demo","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"Hello there"}]}`
	response, err := http.Post("http://"+l.Addr().String()+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = io.ReadAll(response.Body)
	_ = response.Body.Close()
	fmt.Println("the client failed:", err != nil)

	if err := provider.WaitFinished(ctx, 1); err != nil {
		fmt.Println(err)
	}
	call := provider.Calls()[0]
	fmt.Println(call.Rule, call.End, "sent", call.DeltasSent, "billed", call.InputTokens, call.OutputTokens)
	fmt.Println(provider.Close(ctx), <-served)
	// Output:
	// the client failed: true
	// cut3 reset sent 3 billed 2 8
	// <nil> <nil>
}
