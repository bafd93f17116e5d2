package turns

import (
	"context"
	"time"
)

// Stories is the part of a Store that tells what became of a turn, for people alone. Nothing decides by it.
type Stories interface {
	// ReadStory reads a user turn with its replies, what was called for them, who took them over and how often it was
	// delivered again, all at one moment and without content. The row is the turn's or that of one of its replies. A missing
	// one is CodeNotFound, one that was deleted CodeTurnDeleted or CodeDeleted.
	ReadStory(ctx context.Context, q StoryQuery) (Story, error)
	// AddRepeats adds to what is counted of repeated deliveries. What is counted of a conversation that is not stored is left
	// out. After an unknown outcome the same would be added twice.
	AddRepeats(ctx context.Context, repeats []Repeats) error
	// SumRepeats sums repeated deliveries of a tenant by layer; those of one turn and layer count with the first of them. Of
	// the filter it takes Tenant, Key, Turn, From and Before.
	SumRepeats(ctx context.Context, f LedgerFilter) (map[Layer]int64, error)
}

// StoryQuery is one ReadStory. Of more replies and calls than those two the newest are read.
type StoryQuery struct {
	Key     ConversationKey
	Row     RowID
	Replies int
	Calls   int
}

// Story is what became of a turn.
type Story struct {
	// Turn has no content and no options.
	Turn UserTurn
	// Waits says that it stands in line and has not been answered yet.
	Waits bool
	// Replies are its attempts by number, Takeovers those of them by reply and epoch, and Calls by time.
	Replies   []StoryReply
	Takeovers []ReplyTakeover
	Calls     []LedgerCall
	// Repeats are its deliveries beyond the first, by layer.
	Repeats []Repeats
	// Truncated says that there are earlier replies or calls.
	Truncated bool
}

// StoryReply is a reply of a story.
type StoryReply struct {
	// Reply has no content and no options.
	Reply
	// OwnerName is the name of the worker that has it now or had it last; empty once the worker was forgotten.
	OwnerName string
	// Lookups is how often its provider was asked while it was held, and NextLookup when it is asked again; zero: never.
	Lookups    int
	NextLookup time.Time
	// SettleTime is when its last owner said what it knew of it, after it had ended without that owner.
	SettleTime time.Time
}

// ReplyTakeover is how a reply came to an epoch after its first.
type ReplyTakeover struct {
	Reply ReplyID
	Epoch int64
	// Way is how it was gone on with.
	Way TakeoverWay
	// From had it before and To from then on; a name is empty if nobody knew it any more.
	From, To Worker
	Time     time.Time
}

// TakeoverWay is how a reply that changed hands is gone on with.
type TakeoverWay string

// The ways of a takeover.
const (
	// TakenFree: its last call is known not to have been sent, or to be over, and nothing was written. The next one is made.
	TakenFree TakeoverWay = "free"
	// TakenAgain: the endpoint enforces the key that the open call carries, so the same request under the same key is no second
	// generation. Its answer comes from the beginning and must repeat what is stored.
	TakenAgain TakeoverWay = "again"
	// TakenAsked: the provider can be asked what became of the open call, and be listened to while it goes on with it.
	TakenAsked TakeoverWay = "ask"
	// TakenReplaced: nobody can say, and policy wants another call, which is another reply's.
	TakenReplaced TakeoverWay = "replace"
	// TakenBack: its own worker, which had been declared dead, went on with it under another id.
	TakenBack TakeoverWay = "revive"
)

// Repeats are deliveries of a turn beyond its first that one layer sent.
type Repeats struct {
	Key   ConversationKey
	Turn  TurnID
	Layer Layer
	Count int64
	// FirstAge and LastAge are how long ago the first and the last of them came, when they are added.
	FirstAge, LastAge time.Duration
	// FirstTime and LastTime are when that was, when they are read.
	FirstTime, LastTime time.Time
}
