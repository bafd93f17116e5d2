package turns

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// Deletions is the part of a Store by which content goes for good. What was paid stays on the ledger.
//
// A reply that is in flight or held when it is deleted ends as abandoned(deleted). Its open calls are closed at once, as
// not sent, or as ambiguous with tokens estimated from the request and from what is stored of the log, all of them wasted
// as "deleted"; CloseCalls lets the call's maker correct that.
type Deletions interface {
	// DeleteConversation leaves the mark of a conversation: its key, tenant, id and times, and what it has spent. Its version
	// grows, so that a claim that was computed before is lost; what runs or is held ends; turns in line leave it. Content is
	// out of every reader's reach from then on, and goes by EraseConversation. A missing conversation is CodeNotFound; one
	// that is deleted already stays as it is, and the Deletion is empty.
	DeleteConversation(ctx context.Context, key ConversationKey) (Deletion, error)
	// EraseConversation removes rows of a deleted conversation, at most about limit, and reports whether some are left. With
	// the last of them it is noted as erased. One that is missing, not deleted, or erased has none left.
	EraseConversation(ctx context.Context, key ConversationKey, limit int) (left bool, err error)
	// ConversationsToErase reads which deleted conversations have rows left, the earliest deleted first.
	ConversationsToErase(ctx context.Context, limit int) ([]ConversationKey, error)
	// DeleteTurn erases a user turn and all that hangs below it, over all branches, in one commit: replies go with their logs;
	// of user turns a mark stays, with id, place and the hash of the input, and no content, options or place in line. The
	// conversation's version grows; its leaf, if it was below the turn, becomes the turn's parent, and its last turn the newest
	// that is left. A missing turn is CodeNotFound, one of a deleted conversation CodeDeleted, and more than limit rows are
	// CodeWrongState: nothing is changed then. A turn that is erased already stays as it is, and the Deletion is empty.
	DeleteTurn(ctx context.Context, key ConversationKey, turn TurnID, limit int) (Deletion, error)
}

// Deletion is what a deletion came to.
type Deletion struct {
	// Turns counts the user turns that DeleteTurn erased.
	Turns int
	// Ended are the replies that it ended.
	Ended []EndedReply
}

// EndedReply is a reply that a deletion ended.
type EndedReply struct {
	// Reply is the row before that, without content, and OpenCalls the calls that were open then.
	Reply     Reply
	OpenCalls []OpenCall
}

// ConversationDeleted says that a conversation was deleted.
func ConversationDeleted() *Error {
	return &Error{Code: CodeDeleted, Field: "conversation_id", Problem: "was deleted"}
}

// TurnDeleted says that a user turn was deleted, alone or with one above it.
func TurnDeleted() *Error {
	return &Error{Code: CodeTurnDeleted, Field: "turn_id", Problem: "was deleted; send what you want to say under a new id"}
}

// TooMuchBelow refuses to delete more than limit rows in one commit.
func TooMuchBelow(limit int) *Error {
	return &Error{Code: CodeWrongState, Field: "turn_id", Problem: fmt.Sprintf("has more than %d turns and replies below it; "+
		"delete turns further down first, or the whole conversation", limit), Meta: map[string]string{"limit": strconv.Itoa(limit)}}
}

// isGone reports that a conversation or a turn was deleted.
func isGone(err error) bool { return errors.Is(err, ErrDeleted) || errors.Is(err, ErrTurnDeleted) }
