package turns

import (
	"context"
	"time"
)

// Store is the port to a database. Its contract, which package storetest checks on every engine:
//
//   - Every write is one transaction. What two workers could disagree about is decided by a constraint or by a guard on
//     a row that the same statement locks, never by a read that came before.
//   - The methods that take slices serve many items in one statement; each item is answered by its own result, from what
//     the statement returned. A slice holds at most one item for each conversation. Calls with one item each that come at
//     the same time share statements too: an error of one is no error of another, one whose context ends leaves the others
//     theirs, and tenants take turns.
//   - All times are the database's clock.
//   - An engine that can't be reached is CodeStoreUnavailable. A commit that got no answer wraps ErrUnknownOutcome.
//   - Nothing returned shares memory with the store.
type Store interface {
	Leases
	Claims
	Lines
	Replies
	Returns
	Held
	Stops
	Deletions
	Reader
	Ledger
	Stories
	Spendings
	Gauge
	Conversations
	Quotas
}

// Leases is the part of a Store that keeps workers. A worker has one row, whatever the number of its replies.
type Leases interface {
	// RegisterWorker adds a worker with a lease of ttl from now.
	RegisterWorker(ctx context.Context, w Worker, ttl time.Duration) error
	// RenewLease moves the lease's end to ttl from now. A worker that was buried, or that is unknown, gets ErrBuried: dead
	// is for ever.
	RenewLease(ctx context.Context, id WorkerID, ttl time.Duration) error
	// RetireWorker buries the worker itself: the last act of a clean shutdown. Again is no error.
	RetireWorker(ctx context.Context, id WorkerID) error
	// BuryWorkers marks dead every worker whose lease has run out, apart from those named, and returns those it marked. It
	// must come before any of their claims is touched: a worker that is not dead may still renew. The caller names itself:
	// it is alive, whatever a clock that jumped says of its lease.
	BuryWorkers(ctx context.Context, except ...WorkerID) ([]WorkerID, error)
	// ForgetWorkers removes dead workers whose lease ended longer than age ago and who own no reply in flight.
	ForgetWorkers(ctx context.Context, age time.Duration) error
	// ListWorkers reads the workers that live, and those whose lease ended less than an hour ago, oldest first, at most
	// 1,000.
	ListWorkers(ctx context.Context) ([]WorkerView, error)
	// Server says which life of which database server answers.
	Server(ctx context.Context) (ServerLife, error)
}

// WorkerView is a worker as people see it.
type WorkerView struct {
	Worker
	LeaseUntil time.Time
	Dead       bool
	// InFlight counts its replies in flight.
	InFlight int
	// Uptime is how long it has lived, or did.
	Uptime time.Duration
}

// ServerLife is one run of a database server, from its start to its end.
type ServerLife struct {
	// Name differs from one life to the next: a restart, and a failover to another server, both change it.
	Name string
	// Uptime is how long this life has lasted, as far as the engine can tell.
	Uptime time.Duration
}

// Worker is one running process.
type Worker struct {
	ID WorkerID
	// Name is a label for people.
	Name string
}

// Claims is the part of a Store that a delivery passes: look up, read the path, claim.
type Claims interface {
	// Lookup reads in one statement all that decides what a delivery is. It returns a zero Standing for a conversation
	// that does not exist.
	Lookup(ctx context.Context, q LookupQuery) (Standing, error)
	// ReadPath reads rows from a row upwards to the root, newest first, up to a limit. It returns no rows if the first row
	// does not exist, was erased, or is a turn in line, which has no place yet. A row is read by its key, so a path costs as
	// much in a long conversation as in a short one.
	ReadPath(ctx context.Context, key ConversationKey, from RowID, limit PathLimit) ([]PathRow, error)
	// Claim inserts replies in flight, each with its call row, its user turn if that is new, and its conversation if
	// that is new. An item is won only if the conversation is still at ExpectVersion and not deleted, the slot is free,
	// no reply of the conversation is in flight, and the owner is not dead; else nothing of it is written. The same item
	// sent again after it was won is not won again. A missing parent is CodeNotFound, beside the results of the others.
	Claim(ctx context.Context, claims []Claim) ([]ClaimResult, error)
}

// LookupQuery names what a delivery is about.
type LookupQuery struct {
	Key  ConversationKey
	Turn TurnID
	// Parent, if not zero, is a row whose existence is asked for.
	Parent RowID
	// Cursor, if not zero, is a reply to look for among the replies of Turn.
	Cursor ReplyID
	// Beside asks what a turn would hang beside that takes the place of a running one.
	Beside bool
	// ContentUpTo asks for the content of the turn's live reply, if that is complete and not longer than so many bytes. One that
	// does not decode is left out.
	ContentUpTo uint32
	// Tenant is as in CallPermit.
	Tenant Tenant
}

// Standing is how a conversation and one turn of it stand.
type Standing struct {
	// Exists says that the conversation does; Deleted that only its mark is left.
	Exists  bool
	Deleted bool
	// Version grows with every claim and update; a claim is a compare-and-set on it. NextSeq is the first free place.
	Version int64
	NextSeq int64
	Leaf    RowID
	// Defaults are the conversation's current ones, and DefaultsVersion says which those are: 1 for the first.
	Defaults        Options
	DefaultsVersion int32
	// ParentFound answers LookupQuery.Parent. A turn in line is no parent yet.
	ParentFound bool
	// Running is the conversation's reply in flight, nil if there is none.
	Running *Reply
	// LastTurn is the user turn that was started last.
	LastTurn TurnID
	// Line are the turns in line, the first first.
	Line []InLine
	// LeafReply is the reply at the leaf and LeafTurn its user turn, both without content, and Awaited the turn that the
	// reply was stopped for, if that is not stored yet. They are read where a turn is in line, or LookupQuery.Beside asks.
	LeafReply *Reply
	LeafTurn  *UserTurn
	Awaited   TurnID
	// Busy and Stopped answer LookupQuery.Beside, without content: the user turn of Running, and the one whose reply was
	// stopped for the turn asked for.
	Busy    *UserTurn
	Stopped *UserTurn
	// Turn is the user turn asked for, nil if it is not stored; InputHash is of its input and CancelledGeneration the
	// newest generation that was asked to stop (0: none).
	Turn                *UserTurn
	InputHash           []byte
	CancelledGeneration int32
	// Live is the turn's live reply and Newest its reply with the highest attempt; both without content, but for what
	// LookupQuery.ContentUpTo asks for.
	Live   *Reply
	Newest *Reply
	// Cursor answers LookupQuery.Cursor: the reply, without content, if it is one of the turn's.
	Cursor *Reply
}

// PathLimit bounds a path: it has at most Rows rows, and ends with the row whose stored content takes it to Bytes bytes
// or beyond.
type PathLimit struct {
	Rows  int
	Bytes int
	// Until, if not zero, is a row to end with. If it is zero and Model is not empty, the path ends with the row where the
	// window of the newest reply by that model on it started, of those that are complete or were until another took their
	// place.
	Until RowID
	Model string
	// Tokens, if not 0, bounds what is read before there is a row to end with: the path ends with the row that takes it to so
	// many tokens, each row counted at its least, by LeastBytesPerToken and LeastBytesOfRow.
	Tokens int
}

// PathRow is one row of a path.
type PathRow struct {
	ID     RowID
	Parent RowID
	// User is set for a user turn, Reply (with content) for a reply.
	User  *UserTurn
	Reply *Reply
	// Unreadable says that what is stored in the row does not decode. User or Reply is then without content and options.
	Unreadable bool
}

// Claim is one claim.
type Claim struct {
	Key          ConversationKey
	Tenant       Tenant
	Subject      string
	Conversation ConversationID
	// ExpectVersion is Standing.Version; 0 makes the conversation.
	ExpectVersion int64
	// NextSeq is Standing.NextSeq: the user turn's place if it is new, then the reply's.
	NextSeq int64
	// NewTurn is the user turn to store with its reply; nil for a further attempt of a stored one.
	NewTurn *NewTurn
	// Start is set for the first call of a turn that is in line, or was taken out of it before anything was called for it: it
	// leaves the line with this claim and hangs below Start's parent. The claim is lost if the turn is in line and Start is nil,
	// or if Start is set and a call was made for it before.
	Start *Start
	Turn  TurnID
	// Supersede is the complete reply that this one takes the place of: it becomes abandoned(superseded) in the same
	// commit, and the claim is lost if it is no longer complete. Zero: no reply is live.
	Supersede ReplyID
	Reply     NewReply
	Call      NewCall
	// Reserve, if set, is charged in the same commit, unless the turn and generation has its share already. Where a limit does
	// not let it, nothing is written, and the result says which.
	Reserve *Reservation
}

// NewTurn is a user turn to store.
type NewTurn struct {
	// Parent is resolved: the row it hangs below, zero for a root.
	Parent    RowID
	InputHash []byte
	Content   []Block
	Options   Options
}

// Start begins a turn that was stored before it could be answered.
type Start struct {
	// Parent is resolved, as in NewTurn.
	Parent RowID
}

// NewReply is a reply to insert as in flight.
type NewReply struct {
	ID      ReplyID
	Attempt int32
	// Epoch is 1 for a reply that was never stored before (0 stands for it); one that a failover lost comes back with one
	// more than it had.
	Epoch int64
	// Generation is the user turn's, or one more: then the user turn's grows with it.
	Generation int32
	// Options are what the request was built with, where that differs from the turn's own filled up by the conversation's
	// defaults of DefaultsVersion: a regenerate's changes. Later attempts of the generation use both again.
	Options         Options
	DefaultsVersion int32
	Owner           WorkerID
	Route           Route
	// Calls and Waited are the turn's and generation's budget spent up to and with call 1 of this reply.
	Calls          int
	Waited         time.Duration
	RequestHash    []byte
	BuilderVersion int
	WindowStart    RowID
	// Deadline is the most time for the reply from the claim on; past it any worker may end it.
	Deadline time.Duration
	// DisconnectGrace is how long the last follower may be gone before the owner stops it; zero: it goes on.
	DisconnectGrace time.Duration
	// OnAmbiguous and OnPartial are the policies it is made under.
	OnAmbiguous OnAmbiguous
	OnPartial   OnPartial
	// Traceparent is the span context of the claim, as W3C has it in text; empty without one.
	Traceparent string
}

// ClaimResult answers one Claim.
type ClaimResult struct {
	Won bool
	// CreateTime is the claim's time, if won.
	CreateTime time.Time
	// Met is the limit that its reservation met. The claim is not won then.
	Met *LimitMet
}

// Fence is the guard of every write of a reply in flight: this reply, in flight, this epoch, this owner.
type Fence struct {
	Key   ConversationKey
	Reply ReplyID
	Epoch int64
	Owner WorkerID
}

// Replies is the part of a Store that writes replies after the claim.
type Replies interface {
	// PermitCalls adds call rows under the fence, each counting against its turn's budget. A permit is refused if the
	// fence does not hold, a stop was asked for, or MaxCalls are spent. The reply's row moves to the route, hash and builder
	// of the call, and forgets the response id of the one before; unless it has a call of a greater number.
	PermitCalls(ctx context.Context, permits []CallPermit) ([]PermitResult, error)
	// CloseCalls records outcomes of calls whose reply stays as it is. A row is closed once; closing a closed one
	// changes nothing, unless a deletion closed it: what it guessed gives way to what the call's maker knows. There is no
	// fence: a call is closed by who made it, whatever became of the reply.
	CloseCalls(ctx context.Context, outcomes []CallOutcome) error
	// Checkpoint appends the tails of logs under their fences and learns which replies were lost or must stop.
	Checkpoint(ctx context.Context, checkpoints []Checkpoint) ([]CheckpointResult, error)
	// End completes, abandons or holds replies under their fences: content, length, usage and the last call's row in one
	// commit; chunks are removed. Calls still open are closed with it, as ambiguous and estimated from their request, unless
	// the reply is held: then they stay open, and Usage is that of the others.
	End(ctx context.Context, endings []Ending) ([]EndResult, error)
	// MarkFollowed says that replies in flight are followed on this worker: their FollowedLeft is at least For from now on.
	MarkFollowed(ctx context.Context, marks []FollowMark) error
	// StaleReplies reads, without locks and without content, replies in flight whose owner is dead or unknown or whose own
	// deadline has passed. A row that holds nonsense does not keep the others from being found.
	StaleReplies(ctx context.Context, q StaleQuery) ([]StaleReply, error)
	// Sweep ends a stale reply from outside. It is won only if the reply is still in flight under the epoch and owner
	// that were read, its log still as long, and its owner still dead or its deadline passed; with VerbCancel a stop that
	// was asked for is enough. Open calls are closed as given; with StatusHeld the others stay open, as with End. The reply's
	// epoch stays, and it is not settled.
	Sweep(ctx context.Context, s Sweeping) (won bool, err error)
}

// Returns is the part of a Store by which a worker finds and brings back what is its own. Revive and Salvage share a guard:
// the reply is abandoned for a reason of Revivable, under the fence's epoch and owner, not settled; its generation is its
// user turn's current one and was not asked to stop; no later turn was started; and the indexes find the slot and the
// conversation free. Both let the conversation's version grow, so that a claim that was computed before is lost.
type Returns interface {
	// OwnedReplies reads the fences of an owner's replies in flight that were claimed longer than age ago, oldest first.
	OwnedReplies(ctx context.Context, owner WorkerID, age time.Duration, limit int) ([]Fence, error)
	// Revive brings a reply that was ended from outside back in flight, under the next epoch and a new owner, with the
	// whole log so far.
	Revive(ctx context.Context, r Revival) (won bool, err error)
	// Salvage completes a reply that was ended from outside and whose last owner has it whole.
	// Its calls are corrected as given.
	Salvage(ctx context.Context, e Ending) (won bool, err error)
	// TakeOver gives a reply in flight whose owner is dead to another worker, under the next epoch. It is won only if the
	// reply is still under the fence that was read and its log still as long, its owner is dead, no stop was asked for, its
	// deadline has not passed, and its epoch is below MaxEpoch. Open calls are closed as given, with the next one's row
	// opened in the same commit, under the rules of PermitCalls.
	TakeOver(ctx context.Context, t Takeover) (TakeoverResult, error)
	// Restore inserts a reply that a failover lost and whose slot is taken by now: as abandoned and settled, with what its
	// last owner has of it and the rows of its calls, closed. It is won only if the conversation is still at ExpectVersion
	// and not deleted, and the user turn is stored; the same again is not won again.
	Restore(ctx context.Context, l LostReply) (won bool, err error)
	// Settle gives an abandoned reply, once, what its last owner knew of it: content that extends what is stored, usage,
	// and its calls as given. Only the reply's epoch, owner and that nobody settled it are asked for; status and reason
	// stay. The fence's owner is the last one.
	Settle(ctx context.Context, e Ending) (won bool, err error)
}

// Revival is one Revive.
type Revival struct {
	// Fence names the reply under its last owner.
	Fence Fence
	// Owner runs it from now on; it must not be dead.
	Owner WorkerID
	// Pieces are the whole log, which must extend the stored content, Length its length.
	Pieces []Piece
	Length uint32
	// Deadline is the most time from now on.
	Deadline time.Duration
	// Call is the call that is still under way, whose row is open again; zero if there is none.
	Call CallID
}

// MaxEpoch bounds how often a reply is taken over or comes back: a turn that kills its workers must not go on for ever.
const MaxEpoch = 4

// Takeover is one TakeOver.
type Takeover struct {
	// Fence names the reply under the owner that is dead, StoredLength how long its log was when it was read.
	Fence        Fence
	StoredLength uint32
	// Owner runs it from now on; it must not be dead.
	Owner WorkerID
	// Closed are the outcomes of calls that the dead owner left open.
	Closed []CallOutcome
	// Call is the row of the next call, permitted if fewer than MaxCalls are spent. With a zero id there is none: the call
	// that is open is gone on with, or its outcome asked for. Then nothing is spent, MaxCalls is not looked at, and open calls
	// that Closed does not name stay open.
	Call     NewCall
	MaxCalls int
	// Traceparent is the span context of the takeover, which takes the place of the claim's; empty without one.
	Traceparent string
	// Way is how it is gone on with, for its story.
	Way TakeoverWay
}

// TakeoverResult answers one Takeover.
type TakeoverResult struct {
	Won bool
	// Calls is the number of calls of the turn and generation now, if won, and Left the time to the reply's deadline; 0: it
	// has none.
	Calls int
	Left  time.Duration
}

// LostReply is one Restore.
type LostReply struct {
	Key           ConversationKey
	Tenant        Tenant
	Conversation  ConversationID
	ExpectVersion int64
	NextSeq       int64
	Turn          TurnID
	Reply         NewReply
	// Ending is what became of it: abandoned, with a reason. Its fence and its call are not looked at.
	Ending Ending
	// Calls are its ledger rows, with their outcomes in the same places.
	Calls    []NewCall
	Outcomes []CallOutcome
}

// CallPermit asks for one further call.
type CallPermit struct {
	Fence Fence
	// Tenant is whose it is, so that tenants take turns where many wait; empty where nobody knows.
	Tenant   Tenant
	Call     NewCall
	Turn     TurnID
	MaxCalls int
	// Waited is added to the turn's waiting budget.
	Waited time.Duration
}

// PermitResult answers one CallPermit.
type PermitResult struct {
	Granted bool
	// Calls is the number of calls of the turn and generation now, if granted.
	Calls int
}

// Checkpoint appends to a stored log: Pieces take it from From to To. With From = To it only asks.
type Checkpoint struct {
	Fence  Fence
	From   uint32
	To     uint32
	Pieces []Piece
	// ResponseID is the vendor's id of the response, if known; stored as soon as it is.
	ResponseID string
}

// CheckpointResult answers one Checkpoint.
type CheckpointResult struct {
	// Held says that the fence holds and the stored log is now To long.
	Held bool
	// CancelRequested says that somebody asked for a stop.
	CancelRequested bool
}

// Ending ends a reply by its owner's hand.
type Ending struct {
	Fence Fence
	// Tenant is as in CallPermit.
	Tenant Tenant
	// Verb is VerbComplete, VerbAbandon or VerbHold, and Status and Reason what it leads to by the table.
	Verb   Verb
	Status Status
	Reason Reason
	// StoredLength is how long the stored log is; a checkpoint that landed meanwhile makes the ending lose.
	StoredLength uint32
	Content      []Piece
	Length       uint32
	StopReason   StopReason
	Usage        Usage
	ResponseID   string
	ProviderCode string
	RetryAfter   time.Duration
	// Call closes the reply's last call; nil if it is closed already.
	Call *CallOutcome
	// LookupIn is when a held reply is to be asked for at its provider; zero: nobody can be asked.
	LookupIn time.Duration
}

// Replacement is one Replace: Ending abandons by VerbReplace, and Claim is of the same turn and generation, without
// Supersede.
type Replacement struct {
	Ending Ending
	Claim  Claim
}

// EndResult answers one Ending.
type EndResult struct {
	// Won says that this ending was written.
	Won bool
	// EndTime is when, if won.
	EndTime time.Time
	// InLine says that a turn was in line behind the reply, as far as this write saw.
	InLine bool
}

// FollowMark is one MarkFollowed.
type FollowMark struct {
	Key   ConversationKey
	Reply ReplyID
	For   time.Duration
}

// StaleQuery bounds StaleReplies: one conversation if Key is not nil, at most Limit replies. Stopped asks also for replies
// in flight that were asked to stop, whatever their owner.
type StaleQuery struct {
	Key     *ConversationKey
	Stopped bool
	Limit   int
}

// StaleReply is a candidate for a sweep.
type StaleReply struct {
	Key ConversationKey
	// Reply has no content and no options. Its usage is the sum over its ledger rows that are closed, each a call.
	Reply Reply
	// OwnerDead and DeadlinePassed say why it is stale; CancelRequested that a stop was asked for.
	OwnerDead       bool
	DeadlinePassed  bool
	CancelRequested bool
	// OpenCalls are its ledger rows without an outcome.
	OpenCalls []OpenCall
}

// Sweeping ends a stale reply.
type Sweeping struct {
	Fence   Fence
	Verb    Verb
	Status  Status
	Reason  Reason
	Content []Piece
	Length  uint32
	Usage   Usage
	Calls   []CallOutcome
	// LookupIn is as in Ending, where Status is StatusHeld: its calls stay open then.
	LookupIn time.Duration
}

// Conversations is the part of a Store that keeps conversations as such.
type Conversations interface {
	// CreateConversation makes one; created is false if the key is taken, and c is then what is stored.
	// CreateHash stays what it was made with whatever is updated, until it is deleted.
	CreateConversation(ctx context.Context, c Conversation) (stored Conversation, created bool, err error)
	// ReadConversation reads one; missing is CodeNotFound, a deleted one has Deleted set.
	ReadConversation(ctx context.Context, key ConversationKey) (Conversation, error)
	// ListConversations reads a tenant's conversations that are not deleted, last used first. It looks at no more than are
	// asked for, whatever the labels match.
	ListConversations(ctx context.Context, q ConversationQuery) (ConversationPage, error)
	// UpdateConversation replaces title, defaults and labels if the version is still the expected one; updated is false
	// if it is not. Defaults under a DefaultsVersion that is not stored yet are kept under it for ever.
	UpdateConversation(ctx context.Context, c Conversation, expectVersion int64) (updated bool, err error)
	// ReadDefaults reads a version of a conversation's defaults. One that was never stored set nothing.
	ReadDefaults(ctx context.Context, key ConversationKey, version int32) (Options, error)
}

// Conversation is a tree of turns.
type Conversation struct {
	Key     ConversationKey
	ID      ConversationID
	Tenant  Tenant
	Subject string
	Title   string
	// Defaults fill what a turn leaves unset. DefaultsVersion is 1 for the first, and one more at each change of them.
	Defaults        Options
	DefaultsVersion int32
	Labels          map[string]string
	// CreateHash is of what it was created with; nil if a turn made it, or an import.
	CreateHash []byte
	Leaf       RowID
	Running    ReplyID
	Version    int64
	Deleted    bool
	CreateTime time.Time
	UpdateTime time.Time
}

// ConversationQuery is one page of ListConversations: those last used before BeforeTime, or at it with a smaller key.
type ConversationQuery struct {
	Tenant     Tenant
	Subject    string
	Labels     map[string]string
	BeforeTime time.Time
	BeforeKey  ConversationKey
	// Limit bounds what is found, Look what is looked at to find it.
	Limit int
	Look  int
}

// ConversationPage is what ListConversations found. Reached, if not nil, is the last conversation that it looked at, before
// as many were found as were asked for: beyond it there may be more.
type ConversationPage struct {
	Found   []Conversation
	Reached *Conversation
}
