package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// callLines prints calls in one form.
type callLines struct {
	print func(*turnsv1.ProviderCall) error
	flush func() error
}

// lines is the form that was asked for.
func (c ledgerCmd) lines(out io.Writer) callLines {
	switch {
	case c.JSON:
		return callLines{func(call *turnsv1.ProviderCall) error { return printJSON(out, call) }, func() error { return nil }}
	case c.CSV:
		return csvLines(out)
	}
	return tableLines(out)
}

func tableLines(out io.Writer) callLines {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME\tREPLY\tEPOCH\tCALL\tLAYER\tENDPOINT\tMODEL\tCLASS\tHTTP\tTOOK\tIN\tOUT\tWASTED\tCAUSE\tCOST")
	return callLines{func(call *turnsv1.ProviderCall) error {
		u := call.GetUsage()
		_, err := fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\t%d\n", momentText(call.GetCreateTime()), call.GetReplyId(),
			call.GetEpoch(), call.GetNumber(), call.GetLayer(), call.GetEndpoint(), call.GetModel(), classOf(call), statusOf(call), tookOf(call),
			u.GetInputTokens(), u.GetOutputTokens(), u.GetWastedTokens(), orDash(call.GetWasteCause()), u.GetCostMicros())
		return err
	}, table.Flush}
}

// csvColumns are the first line of the CSV.
var csvColumns = []string{"call_id", "conversation_id", "reply_id", "epoch", "number", "layer", "first", "endpoint", "provider", "model", "class", "phase",
	"http_status", "idempotency_key", "provider_request_id", "provider_response_id", "input_tokens", "cache_read_tokens", "cache_write_tokens",
	"output_tokens", "reasoning_tokens", "token_source", "wasted_tokens", "waste_cause", "cost_micros", "create_time", "end_time"}

// csvLines writes lines with CR LF and a header, as RFC 4180 has them.
func csvLines(out io.Writer) callLines {
	w := csv.NewWriter(out)
	w.UseCRLF = true
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	flush := func() error {
		w.Flush()
		return w.Error()
	}
	header := w.Write(csvColumns)
	return callLines{func(call *turnsv1.ProviderCall) error {
		if header != nil {
			return header
		}
		u := call.GetUsage()
		source := strings.ToLower(strings.TrimPrefix(u.GetSource().String(), "TOKEN_SOURCE_"))
		if u.GetSource() == turnsv1.TokenSource_TOKEN_SOURCE_UNSPECIFIED {
			source = ""
		}
		return w.Write([]string{call.GetCallId(), call.GetConversationId(), call.GetReplyId(), whole(call.GetEpoch()), whole(int64(call.GetNumber())),
			call.GetLayer(), strconv.FormatBool(call.GetFirst()), call.GetEndpoint(), call.GetProvider(), call.GetModel(), classOf(call), call.GetPhase(),
			whole(int64(call.GetHttpStatus())), call.GetIdempotencyKey(), call.GetProviderRequestId(), call.GetProviderResponseId(),
			whole(u.GetInputTokens()), whole(u.GetCacheReadTokens()), whole(u.GetCacheWriteTokens()), whole(u.GetOutputTokens()),
			whole(u.GetReasoningTokens()), source, whole(u.GetWastedTokens()), call.GetWasteCause(), whole(u.GetCostMicros()),
			momentText(call.GetCreateTime()), momentText(call.GetEndTime())})
	}, flush}
}

// momentText is a time in UTC to the microsecond, empty for none.
func momentText(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().UTC().Format("2006-01-02T15:04:05.000000Z")
}

// classOf is how a call turned out, in words.
func classOf(call *turnsv1.ProviderCall) string {
	if call.GetEndTime() == nil {
		return "open"
	}
	return strings.ToLower(strings.TrimPrefix(call.GetClass().String(), "CALL_CLASS_"))
}

func statusOf(call *turnsv1.ProviderCall) string {
	if call.GetHttpStatus() == 0 {
		return "-"
	}
	return strconv.Itoa(int(call.GetHttpStatus()))
}

func tookOf(call *turnsv1.ProviderCall) string {
	if call.GetEndTime() == nil {
		return "-"
	}
	return call.GetEndTime().AsTime().Sub(call.GetCreateTime().AsTime()).Round(time.Millisecond).String()
}

// printSums shows the retry rate twice, in calls and in tokens: they differ where retries fall on long requests.
func printSums(out io.Writer, s *turnsv1.SumProviderCallsResponse) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tCALLS\tTOKENS IN\tTOKENS OUT\tWASTED\tCOST")
	row := func(name string, calls int64, u *turnsv1.Usage) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\n", name, calls, u.GetInputTokens(), u.GetOutputTokens(), u.GetWastedTokens(), u.GetCostMicros())
	}
	row("first", s.GetFirstCalls(), s.GetFirstUsage())
	row("retries", s.GetRetryCalls(), s.GetRetryUsage())
	for _, layer := range slices.Sorted(maps.Keys(s.GetRetryUsageByLayer())) {
		u := s.GetRetryUsageByLayer()[layer]
		row("  by "+layer, int64(u.GetProviderCalls()), u)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	first, retry := totalOf(s.GetFirstUsage()), totalOf(s.GetRetryUsage())
	fmt.Fprintf(out, "retry rate: %s of calls, %s of tokens\n", shareOf(s.GetRetryCalls(), s.GetFirstCalls()), shareOf(retry, first))
	for _, cause := range slices.Sorted(maps.Keys(s.GetWastedTokens())) {
		fmt.Fprintf(out, "wasted: %d tokens, cost %d (%s)\n", s.GetWastedTokens()[cause], s.GetWastedCostMicros()[cause], cause)
	}
	for _, layer := range slices.Sorted(maps.Keys(s.GetDuplicates())) {
		fmt.Fprintf(out, "repeated deliveries: %d (%s)\n", s.GetDuplicates()[layer], layer)
	}
	return nil
}

func totalOf(u *turnsv1.Usage) int64 { return u.GetInputTokens() + u.GetOutputTokens() }

// shareOf is a part of itself and the rest, in percent.
func shareOf(part, rest int64) string {
	if part+rest == 0 {
		return "0 %"
	}
	return strconv.FormatFloat(100*float64(part)/float64(part+rest), 'f', 2, 64) + " %"
}
