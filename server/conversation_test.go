package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/server"
	"github.com/turnd/turnd/turns"
)

// conversations keeps one conversation, and what was asked of it.
type conversations struct {
	*fake
	stored turns.Conversation
	update turns.ConversationUpdate
	labels map[string]string
	size   int
	token  string
}

func (c *conversations) CreateConversation(_ context.Context, _ turns.Caller, made turns.Conversation) (turns.Conversation, error) {
	made.Version, made.Leaf, made.Running = 1, replyID.Row(), replyID
	made.CreateTime, made.UpdateTime = noon, noon
	c.stored = made
	return made, nil
}

func (c *conversations) GetConversation(_ context.Context, _ turns.Caller, id turns.ConversationID) (turns.Conversation, error) {
	if id != c.stored.ID {
		return turns.Conversation{}, turns.NotFound("conversation", "conversation_id")
	}
	return c.stored, nil
}

func (c *conversations) ListConversations(_ context.Context, _ turns.Caller, labels map[string]string, size int, token string) ([]turns.Conversation, string, error) {
	c.labels, c.size, c.token = labels, size, token
	return []turns.Conversation{c.stored}, "next", nil
}

func (c *conversations) UpdateConversation(_ context.Context, _ turns.Caller, u turns.ConversationUpdate) (turns.Conversation, error) {
	c.update = u
	return c.stored, nil
}

func serveConversations(t *testing.T) (*conversations, turnsv1.ConversationServiceClient) {
	c := &conversations{fake: newFake()}
	h := start(t, c.fake, func(cfg *server.Config) { cfg.Service = c })
	return c, turnsv1.NewConversationServiceClient(h.Conn)
}

func wireConversation() *turnsv1.Conversation {
	return &turnsv1.Conversation{ConversationId: conversationID.String(), Title: "t",
		Defaults: &turnsv1.GenerationOptions{Model: "m"}, Labels: map[string]string{"k": "v"}}
}

func TestAConversationIsMadeAndReadWithAllItsFields(t *testing.T) {
	_, client := serveConversations(t)
	made, err := client.CreateConversation(t.Context(), &turnsv1.CreateConversationRequest{Conversation: wireConversation()})
	require.NoError(t, err)
	want := wireConversation()
	want.LeafId, want.RunningReplyId, want.Version = replyID.String(), replyID.String(), 1
	want.CreateTime, want.UpdateTime = timestamppb.New(noon), timestamppb.New(noon)
	require.Empty(t, cmp.Diff(want, made.GetConversation(), protocmp.Transform()))
	read, err := client.GetConversation(t.Context(), &turnsv1.GetConversationRequest{ConversationId: strings.ToUpper(conversationID.String())})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, read.GetConversation(), protocmp.Transform()))
	_, err = client.GetConversation(t.Context(), &turnsv1.GetConversationRequest{ConversationId: otherID.String()})
	require.Equal(t, "NOT_FOUND", info(t, err, codes.NotFound).GetReason())
}

func TestAPageOfConversationsIsAskedForAsItWas(t *testing.T) {
	c, client := serveConversations(t)
	page, err := client.ListConversations(t.Context(), &turnsv1.ListConversationsRequest{PageSize: 3, PageToken: "p", Labels: map[string]string{"k": "v"}})
	require.NoError(t, err)
	require.Len(t, page.GetConversations(), 1)
	require.Equal(t, "next", page.GetNextPageToken())
	require.Equal(t, 3, c.size)
	require.Equal(t, "p", c.token)
	require.Equal(t, map[string]string{"k": "v"}, c.labels)
}

func TestAnUpdateSetsWhatItsMaskNamesAndNothingElse(t *testing.T) {
	c, client := serveConversations(t)
	title := "t"
	for name, want := range map[string]turns.ConversationUpdate{
		"title":    {ID: conversationID, ExpectVersion: 4, Title: &title},
		"defaults": {ID: conversationID, ExpectVersion: 4, Defaults: &turns.Options{Model: "m"}},
		"labels":   {ID: conversationID, ExpectVersion: 4, Labels: map[string]string{"k": "v"}, SetLabels: true},
	} {
		_, err := client.UpdateConversation(t.Context(), &turnsv1.UpdateConversationRequest{
			Conversation: wireConversation(), UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{name}}, ExpectedVersion: 4})
		require.NoError(t, err)
		require.Equal(t, want, c.update)
	}
}

func TestABadConversationIsRefusedByItsField(t *testing.T) {
	_, client := serveConversations(t)
	create := func(change func(*turnsv1.Conversation)) error {
		c := wireConversation()
		change(c)
		_, err := client.CreateConversation(t.Context(), &turnsv1.CreateConversationRequest{Conversation: c})
		return err
	}
	update := func(change func(*turnsv1.UpdateConversationRequest)) error {
		req := &turnsv1.UpdateConversationRequest{Conversation: wireConversation(), UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"title"}}}
		change(req)
		_, err := client.UpdateConversation(t.Context(), req)
		return err
	}
	_, none := client.CreateConversation(t.Context(), &turnsv1.CreateConversationRequest{})
	_, tooMany := client.ListConversations(t.Context(), &turnsv1.ListConversationsRequest{Labels: manyLabels(33)})
	for name, c := range map[string]struct {
		err   error
		field string
	}{
		"none":               {none, "conversation"},
		"nil id":             {create(func(c *turnsv1.Conversation) { c.ConversationId = nilID }), "conversation.conversation_id"},
		"long title":         {create(func(c *turnsv1.Conversation) { c.Title = strings.Repeat("t", 513) }), "conversation.title"},
		"long label":         {create(func(c *turnsv1.Conversation) { c.Labels = map[string]string{"k": strings.Repeat("v", 257)} }), "conversation.labels"},
		"label without key":  {create(func(c *turnsv1.Conversation) { c.Labels = map[string]string{"": "v"} }), "conversation.labels"},
		"NUL in a label":     {create(func(c *turnsv1.Conversation) { c.Labels = map[string]string{"k": "a\x00"} }), "conversation.labels"},
		"too many labels":    {create(func(c *turnsv1.Conversation) { c.Labels = manyLabels(33) }), "conversation.labels"},
		"too many asked for": {tooMany, "labels"},
		"unknown field":      {create(func(c *turnsv1.Conversation) { unknownField(c.Defaults, 99) }), "conversation.defaults"},
		"long defaults":      {create(func(c *turnsv1.Conversation) { c.Defaults.System = strings.Repeat("s", 5_000_000) }), "conversation.defaults"},
		"update of none":     {update(func(r *turnsv1.UpdateConversationRequest) { r.Conversation.ConversationId = "" }), "conversation.conversation_id"},
		"no mask":            {update(func(r *turnsv1.UpdateConversationRequest) { r.UpdateMask = nil }), "update_mask"},
		"mask of no field":   {update(func(r *turnsv1.UpdateConversationRequest) { r.UpdateMask.Paths = []string{"leaf_id"} }), "update_mask"},
		"negative version":   {update(func(r *turnsv1.UpdateConversationRequest) { r.ExpectedVersion = -1 }), "expected_version"},
	} {
		t.Run(name, func(t *testing.T) {
			info(t, c.err, codes.InvalidArgument)
			require.Equal(t, c.field, fieldAt(c.err))
		})
	}
}

func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[strings.Repeat("k", i+1)] = "v"
	}
	return labels
}
