package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	// heldTime bounds one command, and heldPage one answer of a list.
	heldTime = 30 * time.Second
	heldPage = 200
	// maxHeld bounds --limit: each reply that is listed costs a look at its calls.
	maxHeld = 1000
	// callPages bounds the looks at one turn's calls.
	callPages = 5
	// maxText bounds a text that is given, as a message's size does.
	maxText = maxContent
)

// heldCmd is for who decides about replies of unknown outcome.
type heldCmd struct {
	List     heldListCmd     `cmd:"" default:"withargs" help:"List held replies, the earliest first."`
	Release  heldReleaseCmd  `cmd:"" help:"Give a held reply up: it is abandoned as held_released, its call is booked as waste, and its turn can be sent again."`
	Complete heldCompleteCmd `cmd:"" help:"Complete a held reply with the text that the model gave, as far as you know it."`
}

// operatorFlags say whom to ask, and for whom.
type operatorFlags struct {
	dialFlags `embed:""`
	Tenant    string `placeholder:"NAME" help:"Tenant to act for, where the service takes it on trust."`
}

// check finds what flags alone can tell.
func (f operatorFlags) check() error { return errors.Join(f.dialFlags.check(), checkTenant(f.Tenant)) }

// checkTenant finds a name that can't be sent: it goes in a header.
func checkTenant(name string) error {
	for _, c := range []byte(name) {
		if c < ' ' || c > '~' {
			return errors.New("--tenant: must be of printable ASCII characters")
		}
	}
	return nil
}

// ask makes a connection and calls with it.
func (f operatorFlags) ask(ctx context.Context, call func(context.Context, turnsv1.OperatorServiceClient) error) error {
	return f.askFor(ctx, heldTime, call)
}

// askFor is ask with another bound of its time.
func (f operatorFlags) askFor(ctx context.Context, most time.Duration, call func(context.Context, turnsv1.OperatorServiceClient) error) (err error) {
	conn, err := f.dial(os.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if f.Tenant != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-turnd-tenant", f.Tenant)
	}
	return refusalInWords(call(ctx, turnsv1.NewOperatorServiceClient(conn)), f.address())
}

// refusalInWords says why a call failed: the service's own words, or that it was not reached.
func refusalInWords(err error, address string) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == "turnd" {
			words := fmt.Sprintf("%s: %s", info.GetReason(), st.Message())
			if now := info.GetMetadata()["status"]; now != "" {
				words += " (it is " + now + ")"
			}
			return errors.New(words)
		}
	}
	if st.Code() == codes.Unavailable || st.Code() == codes.DeadlineExceeded {
		return fmt.Errorf("no answer from %s: %s%s", address, st.Message(), adviceOnTLS(st.Message()))
	}
	return fmt.Errorf("%s: %s", st.Code(), st.Message())
}

type heldListCmd struct {
	operatorFlags `embed:""`
	jsonFlag      `embed:""`
	Limit         int `default:"50" placeholder:"N" help:"How many to list at most."`
}

// Validate checks what flags alone can tell.
func (c heldListCmd) Validate() error {
	if c.Limit < 1 || c.Limit > maxHeld {
		return usageError{fmt.Errorf("--limit: must be between 1 and %d", maxHeld)}
	}
	return usageOf(c.check())
}

// Run implements the command.
func (c heldListCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout, os.Stderr) }

func (c heldListCmd) run(ctx context.Context, out, notes io.Writer) error {
	return c.ask(ctx, func(ctx context.Context, operator turnsv1.OperatorServiceClient) error {
		replies, more, err := heldReplies(ctx, operator, c.Limit)
		if err != nil {
			return err
		}
		if more {
			defer fmt.Fprintf(notes, "turnd: there are more than %d; raise --limit\n", c.Limit)
		}
		if len(replies) == 0 {
			fmt.Fprintf(notes, "turnd: %s has none; those of others are shown by --tenant, or by their keys\n", cmp.Or(c.Tenant, "this caller's tenant"))
		}
		if c.JSON {
			return printEach(out, replies)
		}
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "CONVERSATION\tREPLY\tEPOCH\tAGE\tMODEL\tPROVIDER\tCALLS OPEN")
		for _, r := range replies {
			open, err := openCalls(ctx, operator, r)
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%d\n", r.GetConversationId(), r.GetReplyId(), r.GetEpoch(),
				time.Since(r.GetCreateTime().AsTime()).Round(time.Second), r.GetModel(), r.GetProvider(), open)
		}
		return table.Flush()
	})
}

// heldReplies reads as many as are wanted, and says whether there are more.
func heldReplies(ctx context.Context, operator turnsv1.OperatorServiceClient, limit int) (replies []*turnsv1.Reply, more bool, err error) {
	token := ""
	for {
		page, err := operator.ListHeldReplies(ctx, &turnsv1.ListHeldRepliesRequest{
			PageSize: int32(min(limit-len(replies), heldPage)), PageToken: token})
		if err != nil {
			return nil, false, err
		}
		replies, token = append(replies, page.GetReplies()...), page.GetNextPageToken()
		if token == "" || len(replies) >= limit {
			return replies, token != "", nil
		}
	}
}

// openCalls counts the calls of a reply whose outcome nobody has entered.
func openCalls(ctx context.Context, operator turnsv1.OperatorServiceClient, r *turnsv1.Reply) (open int, err error) {
	token := ""
	for range callPages {
		page, err := operator.ListProviderCalls(ctx, &turnsv1.ListProviderCallsRequest{PageSize: heldPage, PageToken: token,
			Filter: &turnsv1.LedgerFilter{ConversationId: r.GetConversationId(), TurnId: r.GetTurnId(), Open: true}})
		if err != nil {
			return 0, err
		}
		for _, call := range page.GetCalls() {
			if call.GetReplyId() == r.GetReplyId() {
				open++
			}
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	return open, nil
}

// heldTarget is the reply to decide about, as the list shows it.
type heldTarget struct {
	operatorFlags `embed:""`
	Conversation  string `arg:"" help:"Conversation of the reply, a UUID."`
	Reply         string `arg:"" help:"The reply, a UUID."`
	Epoch         int64  `required:"" placeholder:"N" help:"Epoch of the reply as you have seen it; another one refuses the decision."`
}

// Validate checks what flags alone can tell.
func (t heldTarget) Validate() error {
	problems := []error{t.check()}
	for _, id := range []struct{ name, value string }{{"conversation", t.Conversation}, {"reply", t.Reply}} {
		if _, err := uuid.Parse(id.value); err != nil {
			problems = append(problems, fmt.Errorf("%s: must be a UUID", id.name))
		}
	}
	if t.Epoch < 1 {
		problems = append(problems, errors.New("--epoch: must be at least 1"))
	}
	return usageOf(errors.Join(problems...))
}

// usageOf makes a mistake of the user's of an error.
func usageOf(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

type heldReleaseCmd struct {
	heldTarget `embed:""`
}

// Run implements the command.
func (c heldReleaseCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout) }

func (c heldReleaseCmd) run(ctx context.Context, out io.Writer) error {
	return c.ask(ctx, func(ctx context.Context, operator turnsv1.OperatorServiceClient) error {
		got, err := operator.ReleaseHeldReply(ctx, &turnsv1.ReleaseHeldReplyRequest{
			ConversationId: c.Conversation, ReplyId: c.Reply, ExpectedEpoch: c.Epoch})
		if err != nil {
			return err
		}
		return printDecided(out, got.GetReply())
	})
}

type heldCompleteCmd struct {
	heldTarget `embed:""`
	TextFile   string `required:"" placeholder:"FILE" help:"File with the whole text of the reply, taken to the byte; - is standard input. It begins with what is stored of the reply."`
}

// Run implements the command.
func (c heldCompleteCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdin, os.Stdout) }

func (c heldCompleteCmd) run(ctx context.Context, in io.Reader, out io.Writer) error {
	text, err := c.text(in)
	if err != nil {
		return fmt.Errorf("--text-file: %w", err)
	}
	return c.ask(ctx, func(ctx context.Context, operator turnsv1.OperatorServiceClient) error {
		got, err := operator.CompleteHeldReply(ctx, &turnsv1.CompleteHeldReplyRequest{
			ConversationId: c.Conversation, ReplyId: c.Reply, ExpectedEpoch: c.Epoch,
			Content: []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: text}}}}})
		if err != nil {
			return err
		}
		return printDecided(out, got.GetReply())
	})
}

// text reads the text, up to what a message can hold.
func (c heldCompleteCmd) text(in io.Reader) (string, error) {
	if c.TextFile != "-" {
		f, err := os.Open(c.TextFile)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxText+1))
	switch {
	case err != nil:
		return "", err
	case len(raw) > maxText:
		return "", fmt.Errorf("holds more than %d bytes", maxText)
	case strings.TrimSpace(string(raw)) == "":
		return "", errors.New("holds no text")
	case !utf8.Valid(raw):
		return "", usageError{errors.New("must be UTF-8")}
	}
	return string(raw), nil
}

// printDecided says how a reply stands after a decision.
func printDecided(out io.Writer, r *turnsv1.Reply) error {
	words := strings.ToLower(strings.TrimPrefix(r.GetStatus().String(), "REPLY_STATUS_"))
	if reason := r.GetAbandonReason(); reason != turnsv1.AbandonReason_ABANDON_REASON_UNSPECIFIED {
		words += " (" + strings.ToLower(strings.TrimPrefix(reason.String(), "ABANDON_REASON_")) + ")"
	}
	_, err := fmt.Fprintf(out, "reply %s is %s\n", r.GetReplyId(), words)
	return err
}
