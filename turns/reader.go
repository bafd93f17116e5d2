package turns

import "context"

// Reader is the part of a Store that only reads. Of a deleted conversation, and of an erased turn, nothing is read: where
// an error says that something is missing, it is CodeDeleted or CodeTurnDeleted instead, also while rows are still there.
type Reader interface {
	// ReadReply reads one reply; content comes from the row once it has ended, else from its chunks. A missing one is
	// CodeNotFound. One that does not decode comes without content and options, with ErrUnreadable.
	ReadReply(ctx context.Context, key ConversationKey, id ReplyID) (Reply, error)
	// ReadLogs reads, in one statement, rows and parts of the stored logs. A reply that is gone has a zero Reply.ID in its
	// view, and so has one whose log can't be read, or has no such offset: it is resolved by itself, and keeps no other from
	// being read.
	ReadLogs(ctx context.Context, positions []LogPosition) ([]LogView, error)
	// FindTurn reads the user turn that an id names: its own, or that of a reply to it. Missing is CodeNotFound. One that does
	// not decode comes without content and options, with ErrUnreadable.
	FindTurn(ctx context.Context, key ConversationKey, id RowID) (UserTurn, error)
	// RepliesTo reads the newest replies to a user turn, at most limit, without content, oldest first. Options that do not
	// decode are left out.
	RepliesTo(ctx context.Context, key ConversationKey, turn TurnID, limit int) ([]Reply, error)
	// NewestLeaf follows the newest branch down from a row, at most limit rows: from a user turn to its live reply or, if
	// none is live, its newest one, and from a reply to the newest user turn below it that was started and is not erased. It
	// gives the row itself if nothing hangs below it.
	NewestLeaf(ctx context.Context, key ConversationKey, from RowID, limit int) (RowID, error)
	// Entries reads what ListTurns shows of user turns: for each the live reply, or the newest, without content, the
	// number of replies, and the ids of the turn and of the newest of its siblings, at most MaxSiblings in all, oldest
	// first. What is erased, or was not started, is no sibling. A reply's options that do not decode are left out.
	Entries(ctx context.Context, key ConversationKey, turns []TurnID) (map[TurnID]Entry, error)
}

// LogPosition asks for a reply's stored log from an offset on, at most about Max bytes of it (0: all).
type LogPosition struct {
	Key   ConversationKey
	Reply ReplyID
	From  uint32
	Max   int
}

// Until is the offset from which on nothing more is asked for.
func (p LogPosition) Until() int64 {
	if p.Max <= 0 {
		return 1 << 32 // beyond every offset of a log
	}
	return int64(p.From) + int64(p.Max)
}

// LogView is a reply's row, without content, and a part of its stored log. The part begins at From, which is at or before
// the offset that was asked for: logs are stored in chunks, and one is read whole.
type LogView struct {
	Reply  Reply
	From   uint32
	Pieces []Piece
}

// MaxSiblings bounds the siblings that are named with a user turn, itself among them.
const MaxSiblings = 100

// Entry is what is shown of a user turn in a list.
type Entry struct {
	Reply      *Reply
	ReplyCount int
	Siblings   []TurnID
}
