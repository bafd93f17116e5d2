package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

type explainCmd struct {
	operatorFlags `embed:""`
	jsonFlag      `embed:""`
	Conversation  string `placeholder:"ID" help:"Conversation of the turn, where its id alone does not tell."`
	Turn          string `arg:"" help:"The turn, or one of its replies: an id, CONVERSATION/ID, or any address that holds the two. An id alone is that of a turn which began its conversation without naming it, unless --conversation is given."`
}

// Validate checks what flags alone can tell.
func (c explainCmd) Validate() error {
	_, err := c.request()
	return usageOf(errors.Join(c.check(), err))
}

var anUUID = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`)

// request says which turn is meant.
func (c explainCmd) request() (*turnsv1.ExplainTurnRequest, error) {
	ids := anUUID.FindAllString(c.Turn, 3)
	if c.Conversation != "" {
		if _, err := uuid.Parse(c.Conversation); err != nil {
			return nil, errors.New("--conversation: must be a UUID")
		}
	}
	switch {
	case len(ids) == 2 && (c.Conversation == "" || c.Conversation == ids[0]):
		return &turnsv1.ExplainTurnRequest{ConversationId: ids[0], TurnId: ids[1]}, nil
	case len(ids) == 2:
		return nil, errors.New("--conversation: is another one than the turn's address names")
	case len(ids) != 1:
		return nil, errors.New("turn: must be a UUID, or two as in CONVERSATION/TURN")
	case c.Conversation != "":
		return &turnsv1.ExplainTurnRequest{ConversationId: c.Conversation, TurnId: ids[0]}, nil
	}
	id, err := uuid.Parse(ids[0])
	return &turnsv1.ExplainTurnRequest{ConversationId: turns.DeriveConversation(turns.TurnID{UUID: id}).String(), TurnId: ids[0]}, err
}

// Run implements the command.
func (c explainCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c explainCmd) run(ctx context.Context, out io.Writer) error {
	request, err := c.request()
	if err != nil {
		return usageOf(err)
	}
	named := c.Conversation != "" || len(anUUID.FindAllString(c.Turn, 2)) == 2
	return c.ask(ctx, func(ctx context.Context, operator turnsv1.OperatorServiceClient) error {
		got, err := operator.ExplainTurn(ctx, request)
		switch {
		case status.Code(err) == codes.NotFound && !named:
			return fmt.Errorf("no turn %s began a conversation of its own here: name its conversation too, as in `turnd explain CONVERSATION/%s`",
				request.GetTurnId(), request.GetTurnId())
		case status.Code(err) == codes.NotFound:
			return fmt.Errorf("NOT_FOUND: %s has no such turn; --tenant, or another's key, says whose it is", cmp.Or(c.Tenant, "this caller's tenant"))
		case err != nil:
			return err
		case c.JSON:
			return printJSON(out, got)
		}
		return printStory(out, got)
	})
}

// sinceText is how long after the beginning something was.
func sinceText(begin, at time.Time) string {
	return fmt.Sprintf("+%.3fs", at.Sub(begin).Seconds())
}
