package casetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/turnd/turnd/llm/scripted"
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// withSystem makes a conversation whose turns are answered under a system text.
func (w *worker) withSystem(text string) *turnsv1.Conversation {
	w.t.Helper()
	got, err := w.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: &turnsv1.Conversation{
		ConversationId: newID(), Defaults: &turnsv1.GenerationOptions{System: text}}})
	require.NoError(w.t, err)
	return got.GetConversation()
}

// change replaces the fields of a conversation that are named.
func (w *worker) change(c *turnsv1.Conversation, paths ...string) *turnsv1.Conversation {
	w.t.Helper()
	got, err := w.convs.UpdateConversation(w.ctx, &turnsv1.UpdateConversationRequest{Conversation: c, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths}})
	require.NoError(w.t, err)
	return got.GetConversation()
}

func TestARetryIsMadeFromTheDefaultsOfTheFirstAttemptAndARegenerateFromTheCurrent(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(failing(1, scripted.Step{At: scripted.AfterDelta(3), Do: scripted.DoClose}), plain(4))
		c := s.withSystem("one two three")
		require.EqualValues(t, 1, c.GetDefaultsVersion())
		in := ask(c.GetConversationId(), newID(), "hello")
		s.turn(in, nil).abandons(ambiguous)

		c.Defaults = &turnsv1.GenerationOptions{System: "another"}
		c = s.change(c, "defaults")
		require.EqualValues(t, 2, c.GetDefaultsVersion())
		second := s.turn(in, nil).completes()
		calls := w.provider.Calls()
		require.Equal(t, calls[0].BodySHA256, calls[1].BodySHA256, "a retry sends the same bytes")
		require.Equal(t, calls[0].IdempotencyKey, calls[1].IdempotencyKey)
		require.Equal(t, 3+1, calls[1].InputTokens)

		_, err := s.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: c.GetConversationId(), ReplyId: second.reply})
		require.NoError(t, err)
		s.turn(in, nil).completes()
		require.Equal(t, 1+1, w.provider.Calls()[2].InputTokens, "a regenerate uses the current defaults")
		var versions []int32
		for _, r := range s.read(c.GetConversationId(), in.GetTurnId()).GetReplies() {
			versions = append(versions, r.GetDefaultsVersion())
		}
		require.Equal(t, []int32{1, 1, 2}, versions)
	})
}

func TestATitleIsNoNewVersionOfTheDefaults(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(plain(1))
		c := s.withSystem("be brief")
		c.Title, c.Labels = "a title", map[string]string{"a": "b"}
		c = s.change(c, "title", "labels")
		require.EqualValues(t, 1, c.GetDefaultsVersion())
		require.EqualValues(t, 1, s.change(c, "defaults").GetDefaultsVersion(), "the same defaults again")
		c.Defaults = nil
		require.EqualValues(t, 2, s.change(c, "defaults").GetDefaultsVersion())
		in := ask(c.GetConversationId(), newID(), "hi")
		s.turn(in, nil).completes()
		require.Equal(t, 1, w.provider.Calls()[0].InputTokens, "defaults that were cleared set nothing")

		made := ask("", newID(), "hi") // a conversation that its first turn makes
		got := s.turn(made, nil).completes()
		require.EqualValues(t, 1, s.read(got.turn.GetConversationId(), made.GetTurnId()).GetReplies()[0].GetDefaultsVersion())
	})
}

func TestALongSystemTextIsStoredOnceHoweverManyRepliesAreMadeFromIt(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(plain(1))
		c := s.withSystem(strings.Repeat("word ", 10_000))
		for i := range 4 {
			in := ask(c.GetConversationId(), newID(), fmt.Sprint(i))
			got := s.turn(in, nil).completes()
			if i == 3 {
				_, err := s.turns.RegenerateReply(w.ctx, &turnsv1.RegenerateReplyRequest{ConversationId: c.GetConversationId(), ReplyId: got.reply,
					Options: &turnsv1.GenerationOptions{MaxOutputTokens: 7}})
				require.NoError(t, err)
				s.turn(in, nil).completes()
			}
		}
		require.Less(t, w.number(`SELECT sum(length(options)) FROM turns`), 5_000)
		require.Equal(t, 1, w.number(`SELECT count(*) FROM conversation_defaults`))
		require.Equal(t, 10_001, w.provider.Calls()[0].InputTokens)
	})
}

func TestATakeoverSendsWhatTheDefaultsWereThen(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		w.short()
		w.caps.Idempotency, w.caps.Retention = "enforced", patience*100
		dying, die := w.cutOff()
		other := w.serve()
		held := gate("", "never", 64, 20)
		held.Times = 1
		w.script(held, plain(64))
		c := other.withSystem("one two three")
		in := ask(c.GetConversationId(), newID(), "hello")
		dying.turn(in, nil).until(func(s state) bool { return s.reply != "" })
		require.NoError(t, w.provider.WaitGate(w.ctx, "never", 1))
		c.Defaults = &turnsv1.GenerationOptions{System: "another"}
		other.change(c, "defaults")
		die()
		w.eventually(func() bool { return w.provider.Counts().Requests == 2 })
		calls := w.provider.Calls()
		require.Equal(t, calls[0].BodySHA256, calls[1].BodySHA256)
		require.Equal(t, calls[0].IdempotencyKey, calls[1].IdempotencyKey)
	})
}
