package server

import (
	"context"
	"iter"
	"time"

	"github.com/turnd/turnd/turns"
)

// Service is what the server asks of the domain; turns.Service is the one that is served.
type Service interface {
	Submit(context.Context, turns.Caller, turns.Delivery) (turns.Submission, error)
	// FollowedToEnd is told that the stream of a submission which saves a repeat of some layer has come to the end of its reply.
	FollowedToEnd(context.Context, turns.Layer, turns.Reply)
	FollowTarget(context.Context, turns.Caller, turns.ConversationID, turns.RowID) (turns.ConversationKey, turns.Reply, error)
	FollowReply(context.Context, turns.Caller, turns.ConversationID, turns.RowID) (turns.ConversationKey, turns.Reply, error)
	GetTurn(context.Context, turns.Caller, turns.ConversationID, turns.RowID) (turns.UserTurn, []turns.Reply, error)
	ListTurns(context.Context, turns.Caller, turns.ListQuery) (entries []turns.TurnEntry, nextPageToken string, err error)
	Cancel(context.Context, turns.Caller, turns.ConversationID, turns.RowID) (turns.Reply, error)
	Regenerate(context.Context, turns.Caller, turns.Regeneration) (reply turns.Reply, replayed bool, err error)
	Select(context.Context, turns.Caller, turns.ConversationID, turns.ReplyID) (turns.Reply, error)
	// DeleteTurn says how many user turns it erased.
	DeleteTurn(context.Context, turns.Caller, turns.ConversationID, turns.TurnID) (deleted int, err error)
	CreateConversation(context.Context, turns.Caller, turns.Conversation) (turns.Conversation, error)
	GetConversation(context.Context, turns.Caller, turns.ConversationID) (turns.Conversation, error)
	ListConversations(ctx context.Context, caller turns.Caller, labels map[string]string, pageSize int, pageToken string) (
		page []turns.Conversation, nextPageToken string, err error)
	UpdateConversation(context.Context, turns.Caller, turns.ConversationUpdate) (turns.Conversation, error)
	DeleteConversation(context.Context, turns.Caller, turns.ConversationID) error
	HeldReplies(ctx context.Context, caller turns.Caller, pageSize int, pageToken string) (page []turns.Reply, nextPageToken string, err error)
	ReleaseHeld(ctx context.Context, caller turns.Caller, conversation turns.ConversationID, reply turns.ReplyID, epoch int64) (turns.Reply, error)
	CompleteHeld(ctx context.Context, caller turns.Caller, conversation turns.ConversationID, reply turns.ReplyID, epoch int64,
		content []turns.Block) (turns.Reply, error)
	ListCalls(ctx context.Context, caller turns.Caller, filter turns.CallFilter, pageSize int, pageToken string) (
		page []turns.LedgerCall, nextPageToken string, err error)
	SumCalls(context.Context, turns.Caller, turns.CallFilter) (turns.LedgerSums, error)
	SumRepeats(context.Context, turns.Caller, turns.CallFilter) (map[turns.Layer]int64, error)
	SweepNow(context.Context) (turns.Swept, error)
	Explain(context.Context, turns.Caller, turns.ConversationID, turns.RowID) (turns.Story, error)
	Workers(context.Context) ([]turns.WorkerStatus, error)
	// Advice says what a client may do about a reply as it stands, and how long to wait first.
	Advice(turns.Reply) (turns.Advice, time.Duration)
}

// Follower streams one reply from an offset on; live.Hub is the one that is served.
type Follower interface {
	Follow(ctx context.Context, key turns.ConversationKey, reply turns.ReplyID, from uint32) iter.Seq2[turns.Event, error]
	// Replay streams a reply that has ended and was read with its content, as Follow does.
	Replay(ctx context.Context, key turns.ConversationKey, reply turns.Reply, from uint32) iter.Seq2[turns.Event, error]
	// FollowTurn streams a turn that waits in line, and from its start on its reply.
	FollowTurn(ctx context.Context, key turns.ConversationKey, turn turns.TurnID) iter.Seq2[turns.Event, error]
}
