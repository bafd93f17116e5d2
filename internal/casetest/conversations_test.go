package casetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// make creates a conversation.
func (w *worker) make(c *turnsv1.Conversation) *turnsv1.Conversation {
	w.t.Helper()
	if c.ConversationId == "" {
		c.ConversationId = newID()
	}
	got, err := w.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: c})
	require.NoError(w.t, err)
	return got.GetConversation()
}

// pages reads a list to its end, and calls between after each page.
func (w *worker) pages(size int32, labels map[string]string, between func(page int)) (ids []string) {
	w.t.Helper()
	req := &turnsv1.ListConversationsRequest{PageSize: size, Labels: labels}
	for page := 0; ; page++ {
		got, err := w.convs.ListConversations(w.ctx, req)
		require.NoError(w.t, err)
		for _, c := range got.GetConversations() {
			ids = append(ids, c.GetConversationId())
		}
		if req.PageToken = got.GetNextPageToken(); req.PageToken == "" {
			return ids
		}
		between(page)
	}
}

func TestPagesOfConversationsRepeatNoneAndMissNoneThatWasLeftAlone(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		w.script(plain(1))
		var made, used []string
		for i := range 20 {
			made = append(made, s.make(&turnsv1.Conversation{Labels: map[string]string{"even": fmt.Sprint(i%2 == 0)}}).GetConversationId())
		}
		// Between pages one that was shown and one that was not are used, and one is made.
		between := func(page int) {
			for _, id := range []string{made[19-2*page], made[page]} {
				used = append(used, id)
				s.turn(ask(id, newID(), "hi"), nil).completes()
			}
			s.make(&turnsv1.Conversation{})
		}
		seen := map[string]int{}
		for _, id := range s.pages(3, nil, between) {
			seen[id]++
			require.Equal(t, 1, seen[id], "a conversation came twice")
		}
		for _, id := range made {
			if !contains(used, id) {
				require.Equal(t, 1, seen[id], "one that nobody used was missed")
			}
		}
		require.Len(t, s.pages(3, map[string]string{"even": "true"}, func(int) {}), 10)
		require.Empty(t, s.pages(3, map[string]string{"even": "maybe"}, func(int) {}))
	})
}

func contains(list []string, id string) bool { return strings.Contains(strings.Join(list, " "), id) }

func TestOfConcurrentUpdatesAtOneVersionExactlyOneIsMade(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		workers := []*worker{w.serve(), w.serve()}
		c := workers[0].make(&turnsv1.Conversation{Title: "old"})
		update := func(s *worker, title string, version int64) error {
			_, err := s.convs.UpdateConversation(w.ctx, &turnsv1.UpdateConversationRequest{ExpectedVersion: version,
				Conversation: &turnsv1.Conversation{ConversationId: c.GetConversationId(), Title: title},
				UpdateMask:   &fieldmaskpb.FieldMask{Paths: []string{"title"}}})
			return err
		}
		errs := make([]error, 8)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = update(workers[i%2], fmt.Sprint("new ", i), c.GetVersion()) })
		}
		all.Wait()
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
				continue
			}
			require.Equal(t, codes.Aborted, status.Code(err), "%v", err)
		}
		require.Equal(t, 1, made)
		w.fails(update(workers[1], "late", c.GetVersion()), codes.Aborted, "CONFLICT", "DO_NOT_RETRY")
		got, err := workers[1].convs.GetConversation(w.ctx, &turnsv1.GetConversationRequest{ConversationId: c.GetConversationId()})
		require.NoError(t, err)
		require.Equal(t, c.GetVersion()+1, got.GetConversation().GetVersion())
	})
}

func TestALateRepeatOfACreateAnswersWithTheConversationAsItIsNow(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		asked := func(title string) *turnsv1.Conversation {
			return &turnsv1.Conversation{Title: title, Labels: map[string]string{"a": "1", "b": "2"}, Defaults: &turnsv1.GenerationOptions{System: "be kind"}}
		}
		first := s.make(asked("a"))
		first.Title, first.Labels, first.Defaults = "new", map[string]string{"c": ""}, &turnsv1.GenerationOptions{System: "be brief"}
		now := s.change(first, "title", "labels", "defaults")
		late := asked("a")
		late.ConversationId = first.GetConversationId()
		require.True(t, proto.Equal(now, s.make(late)), "the repeat undoes nothing and adds nothing")
		other := asked("new")
		other.ConversationId = first.GetConversationId()
		_, err := s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: other})
		w.fails(err, codes.AlreadyExists, "CONVERSATION_ID_REUSED", "NEW_ID")
		w.stands(map[string]int{qConvs: 1})
	})
}

func TestC74AndC75HostileTitlesAndLabelsAreStoredWholeOrRefusedByTheirField(t *testing.T) {
	onEachEngine(t, func(t *testing.T, w *world) {
		s := w.serve()
		hostile := map[string]string{`"; DROP TABLE turns; --`: `{"a": [1]}`, "$.a": "%_\\", "é\u0301 🦀 \u200d": "\u2028\ufffd", "k": ""}
		c := s.make(&turnsv1.Conversation{Title: "👩\u200d a\x00b \ufffd", Labels: hostile})
		require.Equal(t, "👩\u200d ab \ufffd", c.GetTitle(), "NUL is dropped")
		for k, v := range hostile {
			require.Equal(t, []string{c.GetConversationId()}, s.pages(5, map[string]string{k: v}, nil), "%q", k)
			if v != "" {
				require.Empty(t, s.pages(5, map[string]string{v: k}, nil))
			}
		}
		require.Equal(t, []string{c.GetConversationId()}, s.pages(5, hostile, nil))
		empty := s.make(&turnsv1.Conversation{})
		require.Empty(t, empty.GetTitle())
		require.Empty(t, empty.GetLabels())
		for name, labels := range map[string]map[string]string{
			"no key": {"": "x"}, "a long key": {strings.Repeat("k", 65): ""}, "a long value": {"k": strings.Repeat("v", 257)}, "NUL": {"k": "\x00"},
		} {
			_, err := s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: &turnsv1.Conversation{Labels: labels}})
			w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
			_, err = s.convs.ListConversations(w.ctx, &turnsv1.ListConversationsRequest{Labels: labels})
			w.fails(err, codes.InvalidArgument, "INVALID_FIELD", "DO_NOT_RETRY")
			require.ErrorContains(t, err, "labels", name)
		}
		// Half an emoji is no UTF-8, which no message may hold.
		_, err := s.convs.CreateConversation(w.ctx, &turnsv1.CreateConversationRequest{Conversation: &turnsv1.Conversation{Title: "\xf0\x9f"}})
		require.Error(t, err)
		w.stands(map[string]int{qConvs: 2})
	})
}
