package server_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// at places an event of the tests' reply in its log.
func at(from, to uint32, e *turnsv1.Event) *turnsv1.Event {
	e.ReplyId, e.Offset, e.NextOffset = replyID.String(), from, to
	return e
}

func started() *turnsv1.Event {
	return &turnsv1.Event{Kind: &turnsv1.Event_Started{Started: &turnsv1.Started{Attempt: 1, Generation: 1, Epoch: 1, Provider: "scripted", Model: "demo"}}}
}

func completed() *turnsv1.Event {
	return &turnsv1.Event{Kind: &turnsv1.Event_Completed{Completed: &turnsv1.Completed{
		StopReason: turnsv1.StopReason_STOP_REASON_END_TURN, Usage: &turnsv1.Usage{}}}}
}

func accepted() *turnsv1.Event {
	return &turnsv1.Event{Kind: &turnsv1.Event_Accepted{Accepted: &turnsv1.Accepted{
		Turn:   &turnsv1.UserTurn{ConversationId: conversationID.String(), TurnId: turnID.String(), Seq: 1, Generation: 1},
		Result: turnsv1.DeliveryResult_DELIVERY_RESULT_NEW}}}
}

func whole() turns.Ended {
	r := replyOf(turns.StatusComplete)
	r.StopReason = turns.StopEndTurn
	return turns.Ended{Reply: r}
}

func equalEvents(t *testing.T, want, got []*turnsv1.Event) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, got, protocmp.Transform()))
}

func TestATurnStreamsAcceptedThenStartedThenItsLogThenOneTerminalEvent(t *testing.T) {
	f := newFake(
		turns.Started{Reply: replyOf(turns.StatusInFlight)},
		turns.Grew{Offset: 0, Next: 8, Piece: turns.Piece{Kind: turns.KindText, Starts: true, Text: "héllo", Ends: true}},
		turns.Heartbeat{},
		turns.Grew{Offset: 8, Next: 9, Piece: turns.Piece{Block: 1, Kind: turns.KindToolUse, Starts: true, ToolUseID: "t1", ToolName: "f"}},
		turns.Grew{Offset: 9, Next: 12, Piece: turns.Piece{Block: 1, Kind: turns.KindToolUse, Text: "{}", Ends: true}},
		whole(),
	)
	got, err := turn(t, start(t, f), &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
	equalEvents(t, []*turnsv1.Event{
		accepted(),
		at(0, 0, started()),
		at(0, 1, &turnsv1.Event{Kind: &turnsv1.Event_BlockStarted{BlockStarted: &turnsv1.BlockStarted{Kind: turnsv1.BlockKind_BLOCK_KIND_TEXT}}}),
		at(1, 7, &turnsv1.Event{Kind: &turnsv1.Event_Delta{Delta: &turnsv1.Delta{Kind: turnsv1.BlockKind_BLOCK_KIND_TEXT, Text: "héllo"}}}),
		at(7, 8, &turnsv1.Event{Kind: &turnsv1.Event_BlockCompleted{BlockCompleted: &turnsv1.BlockCompleted{}}}),
		at(8, 8, &turnsv1.Event{Kind: &turnsv1.Event_Heartbeat{Heartbeat: &turnsv1.Heartbeat{}}}),
		at(8, 9, &turnsv1.Event{Kind: &turnsv1.Event_BlockStarted{BlockStarted: &turnsv1.BlockStarted{
			BlockIndex: 1, Kind: turnsv1.BlockKind_BLOCK_KIND_TOOL_USE, ToolUseId: "t1", ToolName: "f"}}}),
		at(9, 11, &turnsv1.Event{Kind: &turnsv1.Event_Delta{Delta: &turnsv1.Delta{BlockIndex: 1, Kind: turnsv1.BlockKind_BLOCK_KIND_TOOL_USE, Text: "{}"}}}),
		at(11, 12, &turnsv1.Event{Kind: &turnsv1.Event_BlockCompleted{BlockCompleted: &turnsv1.BlockCompleted{BlockIndex: 1}}}),
		at(12, 12, completed()),
	}, got)
}

func TestAReplyThatTookAnothersPlaceIsAnnouncedBetweenAcceptedAndStarted(t *testing.T) {
	f := newFake(turns.Started{Reply: replyOf(turns.StatusInFlight)}, whole())
	plain := f.onSubmit
	f.onSubmit = func(c turns.Caller, d turns.Delivery) (turns.Submission, error) {
		sub, err := plain(c, d)
		sub.Restarted = &turns.Restarted{Reply: replyID, Previous: turns.Reply{ID: d.Cursor.Reply, Reason: turns.ReasonLeaseExpired}}
		return sub, err
	}
	got, err := turn(t, start(t, f), &turnsv1.TurnRequest{Input: input(), Cursor: &turnsv1.Cursor{ReplyId: otherID.String(), Offset: 20}})
	require.NoError(t, err)
	equalEvents(t, []*turnsv1.Event{
		accepted(),
		at(0, 0, &turnsv1.Event{Kind: &turnsv1.Event_Restarted{Restarted: &turnsv1.Restarted{
			PreviousReplyId: otherID.String(), PreviousReason: turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED}}}),
		at(0, 0, started()), at(0, 0, completed()),
	}, got)
	require.Equal(t, &turns.Cursor{Reply: turns.ReplyID{UUID: otherID}, Offset: 20}, f.delivered[0].Cursor)
}

func TestAReplyThatIsReplacedWithinAStreamBeginsAtOffsetZeroUnderItsOwnID(t *testing.T) {
	second := turns.ReplyID{UUID: otherID}
	f := newFake(
		turns.Started{Reply: replyOf(turns.StatusInFlight)},
		turns.Grew{Offset: 5, Next: 8, Piece: turns.Piece{Kind: turns.KindText, Text: "abc"}},
		turns.Restarted{Reply: second, Previous: turns.Reply{ID: replyID, Reason: turns.ReasonAmbiguous}},
		turns.Grew{Offset: 0, Next: 2, Piece: turns.Piece{Kind: turns.KindText, Starts: true, Text: "x"}},
		whole(),
	)
	got, err := follow(t, start(t, f), 5)
	require.NoError(t, err)
	var places [][2]uint32
	for _, e := range got {
		places = append(places, [2]uint32{e.GetOffset(), e.GetNextOffset()})
	}
	require.Equal(t, [][2]uint32{{5, 5}, {5, 8}, {0, 0}, {0, 1}, {1, 2}, {2, 2}}, places)
	require.Equal(t, replyID.String(), got[1].GetReplyId())
	require.Equal(t, otherID.String(), got[2].GetReplyId())
	require.Equal(t, otherID.String(), got[5].GetReplyId())
}

func TestEveryWayAReplyEndsIsAnEventAndStatusOK(t *testing.T) {
	usage := turns.Usage{Input: 3, Output: 4, Source: turns.SourceEstimated, Calls: 2}
	wire := &turnsv1.Usage{InputTokens: 3, OutputTokens: 4, Source: turnsv1.TokenSource_TOKEN_SOURCE_ESTIMATED, ProviderCalls: 2}
	abandoned := func(change func(*turns.Reply)) turns.Reply {
		r := replyOf(turns.StatusAbandoned)
		r.Usage, r.Length = usage, 7
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		reply turns.Reply
		want  *turnsv1.Event
	}{
		"held": {
			turns.Reply{ID: replyID, Status: turns.StatusHeld, Age: time.Minute, Length: 7},
			&turnsv1.Event{Kind: &turnsv1.Event_Held{Held: &turnsv1.Held{Age: durationpb.New(time.Minute),
				Advice: turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT, RetryDelay: durationpb.New(30 * time.Second)}}}},
		"abandoned, another attempt at once": {
			abandoned(func(r *turns.Reply) { r.Reason = turns.ReasonLeaseExpired }),
			&turnsv1.Event{Kind: &turnsv1.Event_Abandoned{Abandoned: &turnsv1.Abandoned{
				Reason: turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED, Advice: turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_NOW,
				PartialLength: 7, Usage: wire}}}},
		"abandoned, wait as the provider asked": {
			abandoned(func(r *turns.Reply) {
				r.Reason, r.RetryAfter, r.ProviderCode = turns.ReasonProviderError, 9*time.Second, "rate_limit_error"
			}),
			&turnsv1.Event{Kind: &turnsv1.Event_Abandoned{Abandoned: &turnsv1.Abandoned{
				Reason: turnsv1.AbandonReason_ABANDON_REASON_PROVIDER_ERROR, Advice: turnsv1.RetryAdvice_RETRY_ADVICE_SAME_ID_AFTER_WAIT,
				RetryDelay: durationpb.New(9 * time.Second), ProviderCode: "rate_limit_error", PartialLength: 7, Usage: wire}}}},
		"abandoned, only a regenerate": {
			abandoned(func(r *turns.Reply) { r.Reason = turns.ReasonEmpty }),
			&turnsv1.Event{Kind: &turnsv1.Event_Abandoned{Abandoned: &turnsv1.Abandoned{
				Reason: turnsv1.AbandonReason_ABANDON_REASON_EMPTY, Advice: turnsv1.RetryAdvice_RETRY_ADVICE_REGENERATE,
				PartialLength: 7, Usage: wire}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(turns.Started{Reply: replyOf(turns.StatusInFlight)}, turns.Ended{Reply: c.reply})
			got, err := follow(t, start(t, f), 7)
			require.NoError(t, err)
			equalEvents(t, []*turnsv1.Event{at(7, 7, started()), at(7, 7, c.want)}, got)
		})
	}
}

func TestAReaderBeyondWhatWasKeptIsToldWhereTheLogEnds(t *testing.T) {
	r := replyOf(turns.StatusAbandoned)
	r.Reason, r.Length = turns.ReasonLeaseExpired, 4
	got, err := follow(t, start(t, newFake(turns.Started{Reply: r}, turns.Ended{Reply: r})), 20)
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, uint32(4), got[1].GetNextOffset())
	require.Equal(t, uint32(4), got[1].GetAbandoned().GetPartialLength())
}

func TestABadCursorIsAStatusAndNotTheEndOfAnAcceptedStream(t *testing.T) {
	f := newFake()
	plain := f.onSubmit
	f.onSubmit = func(c turns.Caller, d turns.Delivery) (turns.Submission, error) {
		sub, err := plain(c, d)
		sub.Offset = d.Cursor.Offset
		return sub, err
	}
	f.onFollow = func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
		return say(&turns.Error{Code: turns.CodeInvalidCursor, Field: "cursor.offset", Problem: "is inside a rune"})
	}
	got, err := turn(t, start(t, f), &turnsv1.TurnRequest{Input: input(), Cursor: &turnsv1.Cursor{ReplyId: replyID.String(), Offset: 3}})
	require.Empty(t, got)
	require.Equal(t, "INVALID_CURSOR", info(t, err, codes.InvalidArgument).GetReason())
	require.Equal(t, "cursor.offset", fieldAt(err))
}

func TestALostStreamIsAStatusAfterAcceptedWithTheSameIDAsAdvice(t *testing.T) {
	for name, lost := range map[string]error{
		"the store is gone":           turns.Unavailable(errors.New("dial tcp: secret-host")),
		"the follower merely stopped": nil,
		"the follower has a fault":    errors.New("secret-host"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.onFollow = func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
				return say(lost, turns.Started{Reply: replyOf(turns.StatusInFlight)})
			}
			got, err := turn(t, start(t, f), &turnsv1.TurnRequest{Input: input()})
			require.Len(t, got, 2)
			code := codes.Internal
			if errors.Is(lost, turns.ErrStoreUnavailable) {
				code = codes.Unavailable
			}
			require.Equal(t, "SAME_ID_AFTER_WAIT", info(t, err, code).GetMetadata()["retry"])
			require.NotContains(t, err.Error(), "secret-host")
		})
	}
}

func TestLargeTextIsSplitAtRunesIntoMessagesBelowOneMebibyte(t *testing.T) {
	text := strings.Repeat("你🦀a", 400_000) // 3.2 MB, whose runes straddle every power of two
	f := newFake(turns.Started{Reply: replyOf(turns.StatusInFlight)},
		turns.Grew{Offset: 0, Next: uint32(len(text)) + 2, Piece: turns.Piece{Kind: turns.KindText, Starts: true, Text: text, Ends: true}}, whole())
	got, err := follow(t, start(t, f), 0)
	require.NoError(t, err)
	var merged strings.Builder
	for _, e := range got {
		require.Less(t, proto.Size(&turnsv1.FollowReplyResponse{Event: e}), 1<<20)
		merged.WriteString(e.GetDelta().GetText())
	}
	require.Equal(t, text, merged.String())
	require.Equal(t, uint32(len(text))+2, got[len(got)-1].GetOffset())
}

// drawLog draws a finished log and the same log cut into pieces anywhere between runes.
func drawLog(rt *rapid.T) (*turns.Log, []turns.Event) {
	kinds := []turns.BlockKind{turns.KindText, turns.KindThinking, turns.KindToolUse, turns.KindRefusal}
	log := &turns.Log{}
	for i := range rapid.IntRange(1, 4).Draw(rt, "blocks") {
		p := turns.Piece{Block: uint32(i), Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"), Starts: true,
			Text: rapid.StringN(0, 60, 200).Draw(rt, "text"), Ends: true}
		p.Text = strings.ToValidUTF8(p.Text, "")
		if err := log.Append(p); err != nil {
			rt.Fatal(err)
		}
	}
	var events []turns.Event
	for offset := uint32(0); offset < log.Len(); {
		pieces, next, err := log.From(offset, rapid.IntRange(1, 50).Draw(rt, "room"))
		if err != nil {
			rt.Fatal(err)
		}
		for _, p := range pieces {
			events = append(events, turns.Grew{Offset: offset, Next: offset + p.Len(), Piece: p})
			offset += p.Len()
		}
		if offset != next {
			rt.Fatalf("pieces end at %d and not at %d", offset, next)
		}
	}
	return log, events
}

func TestHoweverALogIsCutTheEventsJoinToItWithoutAGap(t *testing.T) {
	f := newFake()
	h := start(t, f)
	rapid.Check(t, func(rt *rapid.T) {
		log, pieces := drawLog(rt)
		f.onFollow = func(context.Context, turns.ReplyID, uint32) iter.Seq2[turns.Event, error] {
			return say(nil, append(append([]turns.Event{turns.Started{Reply: replyOf(turns.StatusInFlight)}}, pieces...), whole())...)
		}
		got, err := follow(t, h, 0)
		require.NoError(rt, err)
		joined, place := &turns.Log{}, uint32(0)
		for _, e := range got {
			require.Equal(rt, place, e.GetOffset())
			place = e.GetNextOffset()
			if p, ok := pieceOf(e); ok {
				require.Equal(rt, place-e.GetOffset(), p.Len())
				require.True(rt, utf8.ValidString(p.Text))
				require.NoError(rt, joined.Append(p))
			}
		}
		want, _ := log.Blocks(0)
		have, _ := joined.Blocks(0)
		require.Equal(rt, want, have)
		require.Equal(rt, log.Len(), place)
	})
}

// pieceOf reads an event of the log back; ok is false for any other.
func pieceOf(e *turnsv1.Event) (p turns.Piece, ok bool) {
	kinds := map[turnsv1.BlockKind]turns.BlockKind{
		turnsv1.BlockKind_BLOCK_KIND_TEXT: turns.KindText, turnsv1.BlockKind_BLOCK_KIND_THINKING: turns.KindThinking,
		turnsv1.BlockKind_BLOCK_KIND_TOOL_USE: turns.KindToolUse, turnsv1.BlockKind_BLOCK_KIND_REFUSAL: turns.KindRefusal,
	}
	switch k := e.GetKind().(type) {
	case *turnsv1.Event_BlockStarted:
		return turns.Piece{Block: k.BlockStarted.GetBlockIndex(), Kind: kinds[k.BlockStarted.GetKind()], Starts: true}, true
	case *turnsv1.Event_Delta:
		return turns.Piece{Block: k.Delta.GetBlockIndex(), Kind: kinds[k.Delta.GetKind()], Text: k.Delta.GetText()}, true
	case *turnsv1.Event_BlockCompleted:
		return turns.Piece{Block: k.BlockCompleted.GetBlockIndex(), Ends: true}, true
	}
	return p, false
}

// growing is a follower of a log that a test appends to.
type growing struct {
	mu      sync.Mutex
	log     turns.Log
	changed chan struct{}
	ended   bool
}

func (g *growing) change(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *growing) read(from uint32) ([]turns.Piece, bool, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	pieces, _, _ := g.log.From(from, 64<<10)
	return pieces, g.ended, g.changed
}

func (g *growing) follow(ctx context.Context, _ turns.ReplyID, at uint32) iter.Seq2[turns.Event, error] {
	return func(yield func(turns.Event, error) bool) {
		if !yield(turns.Started{Reply: replyOf(turns.StatusInFlight)}, nil) {
			return
		}
		for {
			pieces, ended, changed := g.read(at)
			for _, p := range pieces {
				if !yield(turns.Grew{Offset: at, Next: at + p.Len(), Piece: p}, nil) {
					return
				}
				at += p.Len()
			}
			if len(pieces) > 0 {
				continue
			}
			if ended {
				yield(whole(), nil)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}

func TestASlowReaderGetsFewerAndBiggerEventsAndLosesNothing(t *testing.T) {
	g := &growing{changed: make(chan struct{})}
	f := newFake()
	f.onFollow = g.follow
	h := start(t, f)
	conn := h.Dial(t, grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
	stream, err := turnsv1.NewTurnServiceClient(conn).Turn(t.Context(), &turnsv1.TurnRequest{Input: input()})
	require.NoError(t, err)
	first, err := stream.Recv()
	require.NoError(t, err)
	require.NotNil(t, first.GetEvent().GetAccepted())

	const pieces, size = 8192, 256
	text := strings.Repeat("0123456789abcdef", size/16)
	for i := range pieces {
		g.change(func() {
			require.NoError(t, g.log.Append(turns.Piece{Kind: turns.KindText, Starts: i == 0, Text: text, Ends: i == pieces-1}))
		})
	}
	g.change(func() { g.ended = true })
	got, err := events(stream)
	require.NoError(t, err)
	var merged strings.Builder
	for _, e := range got {
		merged.WriteString(e.GetDelta().GetText())
	}
	require.Equal(t, strings.Repeat(text, pieces), merged.String())
	require.Less(t, len(got), pieces/4)
	require.NotNil(t, got[len(got)-1].GetCompleted())
}
