// Command follow sends a turn and follows its reply by a client that was generated from the OpenAPI document. Generate the client
// beside it, as turnd.gen.go.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	_ "github.com/oapi-codegen/runtime" // what is generated needs it
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server string) error {
	client, err := NewClient(server)
	if err != nil {
		return err
	}
	conversation, turn, hello := newID(), newID(), "hello"
	sent, err := client.TurnServiceSubmitTurn(ctx, conversation, TurnInput{TurnId: &turn, Content: &[]Block{{Text: &TextBlock{Text: &hello}}}})
	if err != nil {
		return err
	}
	defer sent.Body.Close()
	submitted, err := ParseTurnServiceSubmitTurnResponse(sent)
	if err != nil || submitted.JSON200 == nil {
		return fmt.Errorf("submit: status %d: %w", sent.StatusCode, err)
	}
	stream, err := client.TurnServiceFollowReply(ctx, conversation, *submitted.JSON200.Reply.ReplyId, &TurnServiceFollowReplyParams{})
	if err != nil {
		return err
	}
	defer stream.Body.Close()
	return show(stream)
}

// show prints the text of a reply as it comes.
func show(stream *http.Response) error {
	if stream.StatusCode != http.StatusOK {
		return fmt.Errorf("follow: status %d", stream.StatusCode)
	}
	lines := bufio.NewScanner(stream.Body)
	lines.Buffer(nil, 2<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var event Event
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return err
		}
		switch {
		case event.Delta != nil:
			fmt.Print(*event.Delta.Text)
		case event.Completed != nil:
			fmt.Println("\ncompleted:", *event.Completed.StopReason)
			return nil
		case event.Abandoned != nil:
			return fmt.Errorf("abandoned: %s", *event.Abandoned.Reason)
		}
	}
	return fmt.Errorf("the stream was lost: %w", lines.Err())
}

// newID makes a UUID of version 4.
func newID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
