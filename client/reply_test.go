package client_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turnd/turnd/client"
	"github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// logOf makes the events of a log with the given blocks, each delta one rune, so that any way to join them is possible.
func logOf(reply string, blocks []client.Block) []*turnsv1.Event {
	var log []*turnsv1.Event
	at := uint32(0)
	add := func(size int, ev *turnsv1.Event) {
		ev.ReplyId, ev.Offset, ev.NextOffset = reply, at, at+uint32(size)
		at += uint32(size)
		log = append(log, ev)
	}
	for i, b := range blocks {
		index := uint32(i)
		add(1, &turnsv1.Event{Kind: &turnsv1.Event_BlockStarted{BlockStarted: &turnsv1.BlockStarted{
			BlockIndex: index, Kind: b.Kind, ToolUseId: b.ToolUseID, ToolName: b.ToolName}}})
		for _, r := range b.Text {
			add(utf8.RuneLen(r), &turnsv1.Event{Kind: &turnsv1.Event_Delta{Delta: &turnsv1.Delta{BlockIndex: index, Kind: b.Kind, Text: string(r)}}})
		}
		add(1, &turnsv1.Event{Kind: &turnsv1.Event_BlockCompleted{BlockCompleted: &turnsv1.BlockCompleted{BlockIndex: index}}})
	}
	return log
}

// joined merges neighbouring deltas of one block at random.
func joined(t *rapid.T, log []*turnsv1.Event) []*turnsv1.Event {
	var out []*turnsv1.Event
	for _, ev := range log {
		if n := len(out) - 1; n >= 0 && ev.GetDelta() != nil && out[n].GetDelta() != nil && rapid.Bool().Draw(t, "join") {
			merged := proto.CloneOf(out[n])
			merged.GetDelta().Text += ev.GetDelta().GetText()
			merged.NextOffset = ev.GetNextOffset()
			out[n] = merged
			continue
		}
		out = append(out, ev)
	}
	return out
}

func drawBlocks(t *rapid.T) []client.Block {
	kinds := []turnsv1.BlockKind{
		turnsv1.BlockKind_BLOCK_KIND_TEXT, turnsv1.BlockKind_BLOCK_KIND_THINKING,
		turnsv1.BlockKind_BLOCK_KIND_TOOL_USE, turnsv1.BlockKind_BLOCK_KIND_REFUSAL,
	}
	blocks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) client.Block {
		b := client.Block{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Done: true}
		b.Text = strings.ToValidUTF8(rapid.StringOfN(rapid.RuneFrom([]rune("ab ö€🙂\n")), 0, 12, -1).Draw(t, "text"), "")
		if b.Kind == turnsv1.BlockKind_BLOCK_KIND_TOOL_USE {
			b.ToolUseID, b.ToolName = "t1", "f"
		}
		return b
	}), 1, 4).Draw(t, "blocks")
	return blocks
}

func plain(blocks []client.Block) (out []client.Block) {
	for _, b := range blocks {
		out = append(out, client.Block{Kind: b.Kind, Text: b.Text, ToolUseID: b.ToolUseID, ToolName: b.ToolName, Done: b.Done})
	}
	return out
}

func TestAnyCutRepeatOverlapAndReconnectGivesTheSameReply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replies := []string{replyA, replyB}[:rapid.IntRange(1, 2).Draw(t, "replies")]
		reply, shown := &client.Reply{}, ""
		var blocks []client.Block
		for i, id := range replies {
			blocks = drawBlocks(t)
			log := logOf(id, blocks)
			if i > 0 {
				shown = feed(t, reply, shown, clienttest.Restarted(replies[i-1], id))
			}
			for range rapid.IntRange(1, 4).Draw(t, "connections") {
				shown = deliver(t, reply, shown, log)
			}
			if i == len(replies)-1 {
				shown = feed(t, reply, shown, clienttest.From(joined(t, log), cursorOf(reply))...)
				shown = feed(t, reply, shown, clienttest.Completed(log))
			}
		}
		require.Equal(t, blocks, plain(reply.Blocks()))
		require.Equal(t, textOf(blocks), reply.Text())
		require.Equal(t, shown, wholeOf(blocks), "printing what is new adds up to the same")
		require.NotNil(t, reply.End().GetCompleted())
	})
}

// deliver is one connection: it begins at or before the cursor, is cut anywhere, and some of it comes twice.
func deliver(t *rapid.T, reply *client.Reply, shown string, log []*turnsv1.Event) string {
	var starts []uint32
	for _, ev := range log {
		if ev.GetOffset() <= cursorOf(reply) {
			starts = append(starts, ev.GetOffset())
		}
	}
	events := clienttest.From(joined(t, log), rapid.SampledFrom(starts).Draw(t, "start"))
	events = events[:rapid.IntRange(0, len(events)).Draw(t, "cut")]
	for i := range events {
		shown = feed(t, reply, shown, events[i])
		if rapid.Bool().Draw(t, "twice") {
			shown = feed(t, reply, shown, events[rapid.IntRange(0, i).Draw(t, "which")])
		}
	}
	return shown
}

func feed(t *rapid.T, reply *client.Reply, shown string, events ...*turnsv1.Event) string {
	for _, ev := range events {
		fresh, err := reply.Apply(ev)
		require.NoError(t, err)
		if fresh.GetRestarted() != nil {
			shown = ""
		}
		shown += fresh.GetDelta().GetText()
	}
	return shown
}

func cursorOf(r *client.Reply) uint32 { return r.Cursor().GetOffset() }

func textOf(blocks []client.Block) (s string) {
	for _, b := range blocks {
		if b.Kind == turnsv1.BlockKind_BLOCK_KIND_TEXT || b.Kind == turnsv1.BlockKind_BLOCK_KIND_REFUSAL {
			s += b.Text
		}
	}
	return s
}

func wholeOf(blocks []client.Block) (s string) {
	for _, b := range blocks {
		s += b.Text
	}
	return s
}

// apply feeds events that must all fit.
func apply(t *testing.T, r *client.Reply, events ...*turnsv1.Event) {
	t.Helper()
	for _, ev := range events {
		_, err := r.Apply(ev)
		require.NoError(t, err)
	}
}

func TestAnEventThatDoesNotFollowIsRefusedAndChangesNothing(t *testing.T) {
	inRune := proto.CloneOf(hello[3]) // "wörld" from 7 on
	inRune.Offset, inRune.NextOffset = 6, 12
	wrongLength := proto.CloneOf(hello[1])
	wrongLength.NextOffset += 7
	backwards := proto.CloneOf(hello[3])
	backwards.Offset = 2
	backwards.NextOffset = 12
	for name, ev := range map[string]*turnsv1.Event{
		"a gap":                  hello[3],
		"another reply":          clienttest.Text(replyB, "x")[0],
		"a length that is wrong": wrongLength,
		"the end behind a gap":   clienttest.Completed(hello),
		"an overlap of no fit":   backwards,
	} {
		t.Run(name, func(t *testing.T) {
			r := &client.Reply{}
			apply(t, r, hello[:1]...)
			_, err := r.Apply(ev)
			require.ErrorIs(t, err, client.ErrOutOfStep)
			require.Equal(t, &turnsv1.Cursor{ReplyId: replyA, Offset: 1}, r.Cursor())
			require.Empty(t, r.Text())
			require.Nil(t, r.End())
		})
	}
	t.Run("an overlap inside a rune", func(t *testing.T) {
		r := client.NewReply(replyA, 9) // in the middle of ö
		_, err := r.Apply(hello[3])
		require.ErrorIs(t, err, client.ErrOutOfStep)
	})
}

func TestLateEventsOfAReplacedReplyMeanNothing(t *testing.T) {
	r := &client.Reply{}
	apply(t, r, hello[:3]...)
	apply(t, r, clienttest.Restarted(replyA, replyB))
	apply(t, r, clienttest.Text(replyB, "other")...)
	for _, late := range clienttest.All(hello, clienttest.Completed(hello), clienttest.Restarted(replyA, replyB), clienttest.Restarted("", replyA)) {
		fresh, err := r.Apply(late)
		require.NoError(t, err)
		require.Nil(t, fresh)
	}
	require.Equal(t, "other", r.Text())
	require.Equal(t, replyB, r.ID())
}

func TestAnEarlierReplyCanBeSelectedAgain(t *testing.T) {
	r := &client.Reply{}
	apply(t, r, hello...)
	apply(t, r, clienttest.Restarted(replyA, replyB), clienttest.Restarted(replyB, replyA))
	apply(t, r, hello...)
	require.Equal(t, "Hello wörld", r.Text())
}

func TestAReplyThatContinuesKeepsWhatWasShown(t *testing.T) {
	continues := func(offset uint32) *turnsv1.Event {
		ev := clienttest.Restarted(replyA, replyB)
		ev.GetRestarted().Continues = true
		ev.Offset, ev.NextOffset = offset, offset
		return ev
	}
	t.Run("in a log of its own", func(t *testing.T) {
		r := &client.Reply{}
		apply(t, r, hello[:3]...)
		apply(t, r, continues(0))
		apply(t, r, clienttest.Text(replyB, "there")...)
		require.Equal(t, "Hello there", r.Text())
	})
	t.Run("in the same log", func(t *testing.T) {
		r := &client.Reply{}
		apply(t, r, hello[:3]...)
		apply(t, r, continues(7))
		apply(t, r, clienttest.From(clienttest.Text(replyB, "Hello ", "there"), 7)...)
		require.Equal(t, "Hello there", r.Text())
	})
	t.Run("not from a place that was never shown", func(t *testing.T) {
		r := &client.Reply{}
		apply(t, r, hello[:3]...)
		fresh, err := r.Apply(continues(4))
		require.NoError(t, err)
		require.False(t, fresh.GetRestarted().GetContinues(), "the caller is told to drop what it shows")
		require.Empty(t, r.Text())
		require.Equal(t, &turnsv1.Cursor{ReplyId: replyB}, r.Cursor())
	})
}

func TestAReplyThatWasGivenUpCanGoOnAndAWholeOneCannot(t *testing.T) {
	r := &client.Reply{}
	apply(t, r, hello[:2]...)
	apply(t, r, clienttest.Abandoned(hello[:2], turnsv1.AbandonReason_ABANDON_REASON_SHUTDOWN, sameIDNow, 0))
	require.NotNil(t, r.End().GetAbandoned())
	apply(t, r, hello[2:]...)
	require.Nil(t, r.End())
	apply(t, r, clienttest.Completed(hello))
	apply(t, r, clienttest.Abandoned(hello, turnsv1.AbandonReason_ABANDON_REASON_SHUTDOWN, sameIDNow, 0))
	require.NotNil(t, r.End().GetCompleted())
	require.Equal(t, "Hello wörld", r.Text())
}

func TestAnAbandonedReplyMayHaveKeptLessThanWasShown(t *testing.T) {
	r := &client.Reply{}
	apply(t, r, hello[:3]...)
	apply(t, r, clienttest.Abandoned(hello[:2], turnsv1.AbandonReason_ABANDON_REASON_LEASE_EXPIRED, sameIDNow, 0))
	require.Equal(t, "Hello ", r.Text())
	require.Equal(t, uint32(4), r.End().GetAbandoned().GetPartialLength())
}

func TestEventsOfALaterVersionArePassedOver(t *testing.T) {
	r := &client.Reply{}
	apply(t, r, hello[:2]...)
	apply(t, r, &turnsv1.Event{}, &turnsv1.Event{ReplyId: replyA, Offset: 4, NextOffset: 4})
	require.Equal(t, uint32(4), cursorOf(r))
	apply(t, r, &turnsv1.Event{ReplyId: replyA, Offset: 4, NextOffset: 9})
	require.Equal(t, uint32(9), cursorOf(r), "it took room in the log, and what follows fits")
}

func TestAReplyIsBounded(t *testing.T) {
	r := &client.Reply{}
	_, err := r.Apply(&turnsv1.Event{ReplyId: replyA, Offset: 0, NextOffset: 65 << 20, Kind: &turnsv1.Event_BlockStarted{BlockStarted: &turnsv1.BlockStarted{}}})
	require.ErrorIs(t, err, client.ErrReplyTooLarge)
}
