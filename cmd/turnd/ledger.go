package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const (
	// ledgerTime bounds a listing of the ledger as a whole, heldTime each of its pages.
	ledgerTime = 15 * time.Minute
	ledgerPage = 200
	// maxLedger bounds --limit.
	maxLedger = 1_000_000
)

// ledgerCmd lists calls to providers, or sums them up.
type ledgerCmd struct {
	operatorFlags `embed:""`
	jsonFlag      `embed:""`
	Sum           bool   `help:"Print sums instead: first calls and retries in calls and tokens, what was wasted and why, and repeated deliveries."`
	CSV           bool   `name:"csv" help:"Print lines of CSV (RFC 4180) instead of a table, with all columns."`
	Limit         int    `default:"100" placeholder:"N" help:"How many calls to list at most, the earliest first."`
	Conversation  string `placeholder:"ID" help:"Only calls of this conversation."`
	Turn          string `placeholder:"ID" help:"Only calls of this turn; with --conversation."`
	Since         string `placeholder:"WHEN" help:"Only calls made at this time or later: a time such as 2026-01-02T15:04:05Z, or a duration back from now such as 24h."`
	Before        string `placeholder:"WHEN" help:"Only calls made earlier than this, in the same forms."`
	Provider      string `placeholder:"NAME" help:"Only calls to this vendor."`
	Model         string `placeholder:"NAME" help:"Only calls for this model."`
	Endpoint      string `placeholder:"NAME" help:"Only calls by this endpoint of the models file."`
	Class         string `placeholder:"CLASS" help:"Only calls that turned out so: ok, not_sent, transient, throttled, in_flight_elsewhere, already_done, ambiguous, terminal or cancelled."`
	Layer         string `placeholder:"LAYER" help:"Only calls that this layer made: first, client, redelivery, takeover or provider."`
	Try           string `placeholder:"TRY" help:"Only first calls of their turn and generation (first), or only the others (retry)."`
	Wasted        bool   `help:"Only calls of which tokens were wasted."`
	Open          bool   `help:"Only calls that have not ended."`
}

// Validate checks what flags alone can tell.
func (c ledgerCmd) Validate() error {
	problems := []error{c.check()}
	if c.Limit < 1 || c.Limit > maxLedger {
		problems = append(problems, fmt.Errorf("--limit: must be between 1 and %d", maxLedger))
	}
	forms := 0
	for _, asked := range []bool{c.Sum, c.CSV} {
		if asked {
			forms++
		}
	}
	if forms > 1 || c.CSV && c.JSON {
		problems = append(problems, errors.New("--csv: can't go with --sum or --json"))
	}
	_, err := c.filter(time.Now())
	return usageOf(errors.Join(append(problems, err)...))
}

// filter is what the flags choose.
func (c ledgerCmd) filter(now time.Time) (*turnsv1.LedgerFilter, error) {
	f := &turnsv1.LedgerFilter{ConversationId: c.Conversation, TurnId: c.Turn, Provider: c.Provider, Model: c.Model, Endpoint: c.Endpoint,
		Layer: c.Layer, Wasted: c.Wasted, Open: c.Open}
	var problems []error
	for _, id := range []struct{ flag, value string }{{"--conversation", c.Conversation}, {"--turn", c.Turn}} {
		if _, err := uuid.Parse(id.value); id.value != "" && err != nil {
			problems = append(problems, fmt.Errorf("%s: must be a UUID", id.flag))
		}
	}
	if c.Turn != "" && c.Conversation == "" {
		problems = append(problems, errors.New("--turn: needs --conversation"))
	}
	class, ok := turnsv1.CallClass_value["CALL_CLASS_"+strings.ToUpper(c.Class)]
	if f.CallClass = turnsv1.CallClass(class); c.Class != "" && (!ok || class == 0) {
		problems = append(problems, errors.New("--class: must be one of "+strings.Join(classNames(), ", ")))
	}
	try, ok := turnsv1.CallTry_value["CALL_TRY_"+strings.ToUpper(c.Try)]
	if f.Try = turnsv1.CallTry(try); c.Try != "" && (!ok || try == 0) {
		problems = append(problems, errors.New("--try: must be first or retry"))
	}
	if c.Layer != "" {
		problems = append(problems, oneOf("--layer", c.Layer, "first", "client", "redelivery", "takeover", "provider"))
	}
	var err error
	if f.StartTime, err = momentOf("--since", c.Since, now); err != nil {
		problems = append(problems, err)
	}
	if f.EndTime, err = momentOf("--before", c.Before, now); err != nil {
		problems = append(problems, err)
	}
	if f.StartTime != nil && f.EndTime != nil && !f.GetStartTime().AsTime().Before(f.GetEndTime().AsTime()) {
		problems = append(problems, errors.New("--before: must be later than --since, or the two choose nothing"))
	}
	return f, errors.Join(problems...)
}

// classNames are the classes as --class takes them.
func classNames() (names []string) {
	for number, name := range turnsv1.CallClass_name {
		if number != 0 {
			names = append(names, strings.ToLower(strings.TrimPrefix(name, "CALL_CLASS_")))
		}
	}
	slices.Sort(names)
	return names
}

// momentOf reads a time, or a duration back from now.
func momentOf(flag, text string, now time.Time) (*timestamppb.Timestamp, error) {
	if text == "" {
		return nil, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return timestamppb.New(at), nil
	}
	if back, err := time.ParseDuration(text); err == nil && back >= 0 {
		return timestamppb.New(now.Add(-back)), nil
	}
	return nil, fmt.Errorf("%s: must be a time such as 2026-01-02T15:04:05Z, or a duration such as 24h", flag)
}

// Run implements the command.
func (c ledgerCmd) Run(ctx context.Context) error { return c.run(ctx, os.Stdout, os.Stderr) }

func (c ledgerCmd) run(ctx context.Context, out, notes io.Writer) error {
	filter, err := c.filter(time.Now())
	if err != nil {
		return usageOf(err)
	}
	return c.askFor(ctx, ledgerTime, func(ctx context.Context, operator turnsv1.OperatorServiceClient) error {
		if c.Sum {
			return c.sum(ctx, operator, filter, out)
		}
		return c.list(ctx, operator, filter, out, notes)
	})
}

// list prints calls page by page, so that a long ledger is never in memory as a whole.
func (c ledgerCmd) list(ctx context.Context, operator turnsv1.OperatorServiceClient, filter *turnsv1.LedgerFilter, out, notes io.Writer) error {
	lines := c.lines(out)
	token, printed := "", 0
	for {
		page, err := onePage(ctx, operator, &turnsv1.ListProviderCallsRequest{Filter: filter, PageToken: token,
			PageSize: int32(min(c.Limit-printed, ledgerPage))})
		if err != nil {
			if printed > 0 {
				_ = lines.flush() // what came before is shown, and the error is the reason
			}
			return err
		}
		for _, call := range page.GetCalls() {
			if err := lines.print(call); err != nil {
				return err
			}
			printed++
		}
		if token = page.GetNextPageToken(); token == "" || printed >= c.Limit {
			break
		}
	}
	if err := lines.flush(); err != nil {
		return err
	}
	if token != "" {
		fmt.Fprintf(notes, "turnd: CUT after %d calls, and there are more: raise --limit, or go on with --since the last time\n", printed)
	}
	return nil
}

func onePage(ctx context.Context, operator turnsv1.OperatorServiceClient, r *turnsv1.ListProviderCallsRequest) (*turnsv1.ListProviderCallsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, heldTime)
	defer cancel()
	return operator.ListProviderCalls(ctx, r)
}

func (c ledgerCmd) sum(ctx context.Context, operator turnsv1.OperatorServiceClient, filter *turnsv1.LedgerFilter, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, heldTime)
	defer cancel()
	sums, err := operator.SumProviderCalls(ctx, &turnsv1.SumProviderCallsRequest{Filter: filter})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out, sums)
	}
	return printSums(out, sums)
}
