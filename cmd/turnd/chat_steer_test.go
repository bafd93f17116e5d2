package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	fake "github.com/turnd/turnd/client/clienttest"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

const chatTurn = "0190b6a0-0000-7000-8000-0000000000aa"

// secondReply answers a follower with a reply of the second generation.
func secondReply() fake.Answer {
	log := fake.Text(chatSecond, "Another")
	return fake.Play(fake.All(fake.Started(chatSecond, 2), log, fake.Completed(log))...)
}

func regenerated(repeat bool) fake.Answer {
	return fake.Respond(&turnsv1.RegenerateReplyResponse{Replayed: repeat, Reply: &turnsv1.Reply{ReplyId: chatSecond, Generation: 2}})
}

// siblings are two replies to the last turn, of which the second counts.
func siblings() fake.Answer {
	text := func(s string) []*turnsv1.Block {
		return []*turnsv1.Block{{Kind: &turnsv1.Block_Text{Text: &turnsv1.TextBlock{Text: s}}}}
	}
	return fake.Respond(&turnsv1.GetTurnResponse{Turn: &turnsv1.UserTurn{TurnId: chatTurn, Generation: 2}, Replies: []*turnsv1.Reply{
		{ReplyId: chatReply, Content: text("Hello\n\x1b[2Jthere"), Status: turnsv1.ReplyStatus_REPLY_STATUS_ABANDONED,
			AbandonReason: turnsv1.AbandonReason_ABANDON_REASON_SUPERSEDED},
		{ReplyId: chatSecond, Content: text(strings.Repeat("long ", 30)), Status: turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE}}})
}

func theLastTurn() fake.Answer {
	return fake.Respond(&turnsv1.ListTurnsResponse{Entries: []*turnsv1.TurnEntry{{
		Turn: &turnsv1.UserTurn{TurnId: chatTurn, Generation: 2}, Reply: &turnsv1.Reply{ReplyId: chatReply}}}})
}

func TestAgainAfterAWholeReplyHasAnotherOneMade(t *testing.T) {
	b := newChat(t, chatWhole(), regenerated(false), secondReply())
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n/again\n")))
	require.Equal(t, "Hello\nAnother\n", b.out)
	calls := b.server.Calls()
	require.Equal(t, chatReply, calls[1].Regenerate.GetReplyId())
	require.Equal(t, int32(1), calls[1].Regenerate.GetExpectedGeneration())
	require.Equal(t, chatConversation, calls[1].Regenerate.GetConversationId())
	require.Equal(t, chatSecond, calls[2].Follow.GetReplyId())
}

func TestAgainSaysThatAnotherClickWasFirst(t *testing.T) {
	b := newChat(t, chatWhole(), regenerated(true), secondReply())
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n/again\n")))
	require.Contains(t, b.status, "another reply was asked for already; here is the latest")
	require.Equal(t, "Hello\nAnother\n", b.out)
}

func TestAgainWorksInAConversationOfAnEarlierRun(t *testing.T) {
	b := newChat(t, chatWhole(), theLastTurn(), regenerated(false), secondReply())
	require.NoError(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("/again\n")))
	require.Equal(t, "Another\n", b.out)
	require.Equal(t, int32(2), b.server.Calls()[2].Regenerate.GetExpectedGeneration())
}

func TestPickListsTheRepliesAndGoesBackToOne(t *testing.T) {
	b := newChat(t, chatWhole(), siblings(), siblings(),
		fake.Respond(&turnsv1.SelectReplyResponse{Reply: &turnsv1.Reply{ReplyId: chatReply}}),
		fake.Play(fake.All(fake.Started(chatReply, 1), chatLog, fake.Completed(chatLog))...),
		regenerated(false), secondReply())
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n/pick\n/pick 1\n/again\n")))
	require.Equal(t, "Hello\nHello\nAnother\n", b.out)
	require.Contains(t, b.status, "·    1  was complete, and another took its place: Hello ?[2Jthere\n", "nothing that steers a terminal")
	require.Contains(t, b.status, "· *  2  is complete: long long")
	require.Contains(t, b.status, "…\n")
	calls := b.server.Calls()
	require.Equal(t, chatReply, calls[3].Select.GetReplyId())
	require.Equal(t, int32(2), calls[5].Regenerate.GetExpectedGeneration(), "the turn's, not that of the reply that was picked")
}

func TestWhatCannotBePickedIsTold(t *testing.T) {
	for typed, words := range map[string]string{
		"/pick x\n":     "/pick takes the number of a reply",
		"/pick 0\n":     "/pick takes the number of a reply",
		"/pick 3\n":     "there are 2 replies",
		"/pick 1\n":     "WRONG_STATE: refused for a test",
		"/new\n/pick\n": "there is no turn yet that this could be about",
	} {
		b := newChat(t, chatWhole(), siblings(), fake.Fail(fake.Refusal(codes.FailedPrecondition, "WRONG_STATE", "DO_NOT_RETRY", 0)))
		require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n"+typed)))
		require.Contains(t, b.status, words, typed)
		require.Equal(t, "Hello\n", b.out)
	}
}

func TestACommandThatIsCalledOffSaysSo(t *testing.T) {
	var b *chatBed
	b = newChat(t, chatWhole(), func(c *fake.Call) error {
		b.interrupt()
		<-c.Done()
		return nil
	}, chatWhole())
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("hi\n/again\nmore\n")))
	require.Contains(t, b.status, "called off; whether it was done is not known here")
	require.Equal(t, "Hello\nHello\n", b.out)
}

func TestLinesThatLookLikeCommandsAreNotSent(t *testing.T) {
	b := newChat(t, chatWhole())
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("/etc/passwd is what?\n/quit now\n/help\n//etc/passwd is what?\n")))
	require.Contains(t, b.status, `there is no command "/etc/passwd"; to send a line that begins with /, type // instead`)
	require.Contains(t, b.status, "/quit takes nothing after it")
	for _, c := range chatCommands() {
		require.Equal(t, 2, strings.Count(b.status, c.help))
	}
	require.Len(t, b.inputs(), 1)
	require.Equal(t, "/etc/passwd is what?", b.inputs()[0].GetContent()[0].GetText().GetText())
}

func TestStopFindsAReplyWhoseStreamWasLost(t *testing.T) {
	b := newChat(t, fake.Play(fake.All(chatStart(1), chatLog[:2])...),
		fake.Fail(fake.Refusal(codes.ResourceExhausted, "OVERLOADED", "SAME_ID_AFTER_WAIT", time.Hour)),
		theLastTurn(), fake.Respond(&turnsv1.CancelReplyResponse{Reply: &turnsv1.Reply{Status: turnsv1.ReplyStatus_REPLY_STATUS_COMPLETE}}))
	require.Error(t, b.run(t.Context(), t, nil, "-m", "hi"))
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("/new\n/stop\n"), "--conversation", chatConversation, "--record", t.TempDir()+"/r"))
	require.Contains(t, b.status, "there is no turn yet")
	require.NoError(t, b.run(t.Context(), t, strings.NewReader("/stop\n"), "--conversation", chatConversation, "--record", t.TempDir()+"/r"))
	require.Contains(t, b.status, "the last reply is complete")
	require.Equal(t, chatTurn, b.server.Calls()[3].Cancel.GetTurnId())
}
