package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/turnd/turnd/client"
	"github.com/turnd/turnd/client/clienttest/badlink"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// The scenarios that the client for browsers is held to as well.
func TestEveryBadLinkEndsAsTheScenarioSays(t *testing.T) {
	scenarios, err := badlink.All()
	require.NoError(t, err)
	for _, scenario := range scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			got := play(t, scenario)
			require.Empty(t, got.faults(scenario.Expect), "calls: %+v", got.calls)
		})
	}
}

func TestAStageIsBroughtBackBySeveralAtOnce(t *testing.T) {
	stage, err := badlink.Open(t.Context(), badlink.Scenario{Down: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, stage.Close()) }()
	ups := make(chan error, 16)
	for range cap(ups) {
		go func() { ups <- stage.Up(t.Context()) }()
	}
	for range cap(ups) {
		require.NoError(t, <-ups)
	}
}

// outcome is what a client made of a scenario.
type outcome struct {
	end      string
	text     string
	reply    string
	blocks   []string
	restarts int
	advice   turnsv1.RetryAdvice
	err      *client.Error
	gaveUp   bool
	recorded bool
	calls    []badlink.Reported
}

// player plays one scenario.
type player struct {
	t        *testing.T
	scenario badlink.Scenario
	stage    *badlink.Stage
	record   client.RecordStore
	input    *turnsv1.TurnInput
}

func play(t *testing.T, scenario badlink.Scenario, dialing ...grpc.DialOption) outcome {
	t.Helper()
	stage, err := badlink.Open(t.Context(), scenario)
	require.NoError(t, err)
	defer func() { require.NoError(t, stage.Close()) }()
	p := &player{t: t, scenario: scenario, stage: stage, record: &client.MemoryRecord{},
		input: &turnsv1.TurnInput{ConversationId: badlink.Conversation, TurnId: uuid.NewString(), Content: say("hi").GetContent()}}
	got := p.run(dialing)
	record, err := p.record.Load(t.Context())
	require.NoError(t, err)
	got.recorded, got.calls = record != nil, stage.Report()
	return got
}

func (p *player) run(dialing []grpc.DialOption) outcome {
	c := p.client(dialing)
	switch do := p.scenario.Client; do.Do {
	case "send":
		return p.read(p.send(c))
	case "follow":
		return p.read(c.Follow(badlink.Conversation, client.Target{ReplyID: badlink.ReplyID("A"[0])}, do.Offset))
	case "twice":
		first, second := make(chan outcome, 1), p.send(p.client(dialing))
		go func() { first <- p.read(p.send(c)) }()
		got := p.read(second)
		if other := <-first; other.text != got.text {
			got.text = other.text
		}
		return got
	case "again":
		s := p.send(c)
		p.read(s)
		require.NoError(p.t, s.Again(p.t.Context()))
		return p.read(s)
	case "resume":
		for ev, err := range p.send(c).Events(p.t.Context()) {
			require.NoError(p.t, err)
			if ev.GetNextOffset() >= do.LeaveAt {
				break
			}
		}
		s, err := p.client(dialing).Resume(p.t.Context(), map[string]client.From{"start": client.FromStart, "cursor": client.FromCursor}[do.From])
		require.NoError(p.t, err)
		return p.read(s)
	default:
		require.FailNow(p.t, "unknown action", do.Do)
		return outcome{}
	}
}

func (p *player) client(dialing []grpc.DialOption) *client.Client {
	do := p.scenario.Client
	conn, err := client.Dial(p.stage.Addr, dialing...)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { require.NoError(p.t, conn.Close()) })
	o := client.Options{Record: p.record, Backoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond,
		MaxReconnects: do.MaxReconnects, MaxSilence: time.Duration(do.MaxSilenceMS) * time.Millisecond,
		MaxWait: time.Duration(do.MaxWaitMS) * time.Millisecond,
		Trying:  func(*client.Error, time.Duration) { require.NoError(p.t, p.stage.Up(p.t.Context())) }}
	if do.Auto {
		o.Retry = client.Auto
	}
	return client.New(conn, o)
}

func (p *player) send(c *client.Client) *client.Stream {
	s, err := c.Send(p.t.Context(), p.input)
	require.NoError(p.t, err)
	return s
}

// read follows a stream to its end, as a caller does that prints deltas as they come.
func (p *player) read(s *client.Stream) (got outcome) {
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	shown := ""
	for ev, err := range s.Events(ctx) {
		if err != nil {
			got.end, got.gaveUp = "error", errors.Is(err, client.ErrGaveUp)
			if errors.As(err, &got.err) {
				got.advice = got.err.Advice
			}
			break
		}
		switch kind := ev.GetKind().(type) {
		case *turnsv1.Event_Restarted:
			got.restarts++
			if !kind.Restarted.GetContinues() {
				shown = ""
			}
		case *turnsv1.Event_Delta:
			if k := kind.Delta.GetKind(); k == turnsv1.BlockKind_BLOCK_KIND_TEXT || k == turnsv1.BlockKind_BLOCK_KIND_REFUSAL {
				shown += kind.Delta.GetText()
			}
		case *turnsv1.Event_Completed:
			got.end = "completed"
		case *turnsv1.Event_Abandoned:
			got.end, got.advice = "abandoned", kind.Abandoned.GetAdvice()
		case *turnsv1.Event_Held:
			got.end, got.advice = "held", kind.Held.GetAdvice()
		}
	}
	got.text, got.reply = s.Reply().Text(), s.Reply().ID()
	if !strings.HasSuffix(got.text, shown) {
		got.text = "gathered " + got.text + ", shown " + shown
	}
	for _, b := range s.Reply().Blocks() {
		got.blocks = append(got.blocks, strings.ToLower(strings.TrimPrefix(b.Kind.String(), "BLOCK_KIND_")))
	}
	return got
}

// faults is what is not as the scenario says.
func (got outcome) faults(want badlink.Expect) (faults []string) {
	check := func(what string, got, want any) {
		if got != want {
			faults = append(faults, fmt.Sprintf("%s: %v, want %v", what, got, want))
		}
	}
	check("end", got.end, want.End)
	check("text", got.text, want.Text)
	check("reply", got.reply, replyNamed(want.Reply))
	check("restarts", got.restarts, want.Restarts)
	check("gave up", got.gaveUp, want.GaveUp)
	check("recorded", got.recorded, want.Recorded)
	if want.Reason != "" {
		check("reason", strings.TrimPrefix(got.err.Reason.String(), "ERROR_REASON_"), want.Reason)
	}
	if want.Advice != "" {
		check("advice", strings.TrimPrefix(got.advice.String(), "RETRY_ADVICE_"), want.Advice)
	}
	if want.Blocks != nil && !slices.Equal(got.blocks, want.Blocks) {
		faults = append(faults, fmt.Sprintf("blocks: %v, want %v", got.blocks, want.Blocks))
	}
	check("calls", len(got.calls), want.Calls)
	return append(faults, got.faultsOfCalls(want)...)
}

func (got outcome) faultsOfCalls(want badlink.Expect) (faults []string) {
	for i, call := range got.calls {
		if call.TurnID != got.calls[0].TurnID {
			faults = append(faults, fmt.Sprintf("call %d has another turn_id", i))
		}
		if i < len(want.Cursors) && !cursorIs(want.Cursors[i], call) {
			faults = append(faults, fmt.Sprintf("cursor %d: %s %d, want %s", i, call.ReplyID, call.Offset, want.Cursors[i]))
		}
		if i > 0 && i <= len(want.GapsMS) && call.AtMS-got.calls[i-1].AtMS < int64(want.GapsMS[i-1]) {
			faults = append(faults, fmt.Sprintf("call %d came after %d ms, want %d", i, call.AtMS-got.calls[i-1].AtMS, want.GapsMS[i-1]))
		}
	}
	return faults
}

func cursorIs(want json.RawMessage, call badlink.Reported) bool {
	var pair []any
	switch {
	case string(want) == `"any"`:
		return true
	case string(want) == "null":
		return call.ReplyID == ""
	case json.Unmarshal(want, &pair) != nil || len(pair) != 2:
		return false
	}
	letter, _ := pair[0].(string)
	offset, _ := pair[1].(float64)
	return call.ReplyID == replyNamed(letter) && call.Offset == uint32(offset)
}

func replyNamed(letter string) string {
	if letter == "" {
		return ""
	}
	return badlink.ReplyID(letter[0])
}

// Clients that get something wrong are found out, each by a scenario.
func TestABrokenClientIsFoundOut(t *testing.T) {
	scenarios, err := badlink.All()
	require.NoError(t, err)
	for _, plant := range []struct {
		fault, scenario string
		send            func(*turnsv1.TurnRequest)
		fail            func(error) error
	}{
		{fault: "it forgets its cursor", scenario: "the stream ends in good order before the reply does",
			send: func(r *turnsv1.TurnRequest) { r.Cursor = nil }},
		{fault: "it takes another id for each delivery", scenario: "the first answers are lost",
			send: func(r *turnsv1.TurnRequest) { r.Input.TurnId = uuid.NewString() }},
		{fault: "it sees a cursor ahead", scenario: "a slow reader is cut off again and again",
			send: func(r *turnsv1.TurnRequest) {
				if r.Cursor != nil {
					r.Cursor.Offset++
				}
			}},
		{fault: "it comes back before its time", scenario: "the database is away",
			fail: func(err error) error { return status.Error(status.Code(err), status.Convert(err).Message()) }},
		{fault: "it takes a refusal for a lost link", scenario: "the id was used for something else",
			fail: func(error) error { return status.Error(codes.Unavailable, "lost") }},
	} {
		t.Run(plant.fault, func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(scenarios, func(s badlink.Scenario) bool { return s.Name == plant.scenario })
			require.NotEqual(t, -1, i)
			got := play(t, scenarios[i], grpc.WithStreamInterceptor(breaking(plant.send, plant.fail)))
			require.NotEmpty(t, got.faults(scenarios[i].Expect))
		})
	}
}

// breaking stands between a client and its server, and changes what is sent and how it fails.
func breaking(send func(*turnsv1.TurnRequest), fail func(error) error) grpc.StreamClientInterceptor {
	return func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, m string, s grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
		stream, err := s(ctx, d, cc, m, o...)
		return &brokenStream{ClientStream: stream, send: send, fail: fail}, err
	}
}

type brokenStream struct {
	grpc.ClientStream
	send func(*turnsv1.TurnRequest)
	fail func(error) error
}

// SendMsg implements grpc.ClientStream.
func (s *brokenStream) SendMsg(m any) error {
	if r, ok := m.(*turnsv1.TurnRequest); ok && s.send != nil {
		r = proto.CloneOf(r)
		s.send(r)
		m = r
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg implements grpc.ClientStream.
func (s *brokenStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil && !errors.Is(err, io.EOF) && s.fail != nil {
		return s.fail(err)
	}
	return err
}
