package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/turnd/turnd/turns"
)

// Faults is a Store that does what another one does, except for the calls it was told to spoil. A method is named as in
// turns.Store; another name is a mistake in the test and panics. What is planned for a method applies to its next calls,
// one plan a call, in the order in which it was planned. It is safe for concurrent use.
type Faults struct {
	store turns.Store

	mu    sync.Mutex
	plans map[string][]plan
	calls map[string]int
	down  error
}

// plan is what happens to one call.
type plan struct {
	fail error
	lose bool
	gate *gate
}

// gate holds one call up.
type gate struct{ arrived, open chan struct{} }

var _ turns.Store = (*Faults)(nil)

// NewFaults decorates a store.
func NewFaults(store turns.Store) *Faults {
	return &Faults{store: store, plans: map[string][]plan{}, calls: map[string]int{}}
}

// FailNext makes the next call of a method fail with err, and nothing is done.
func (f *Faults) FailNext(method string, err error) { f.plan(method, plan{fail: err}) }

// LoseAnswer makes the next call of a method do its work and then fail as a commit without an answer does: with
// turns.ErrUnknownOutcome. A call that fails by itself fails with its own error.
func (f *Faults) LoseAnswer(method string) { f.plan(method, plan{lose: true}) }

// Gate holds up the next call of a method before it does anything. The channel closes when the call has come; open lets
// it go on, and may be called again. A call whose context ends first fails with the context's error.
func (f *Faults) Gate(method string) (arrived <-chan struct{}, open func()) {
	g := &gate{make(chan struct{}), make(chan struct{})}
	f.plan(method, plan{gate: g})
	return g.arrived, sync.OnceFunc(func() { close(g.open) })
}

// Down makes every call fail with err, as when the database is away, until Down(nil). Plans are kept for later.
func (f *Faults) Down(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

// Calls is how many calls of a method have come, the spoiled ones too.
func (f *Faults) Calls(method string) int {
	mustBeMethod(method)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

func (f *Faults) plan(method string, p plan) {
	mustBeMethod(method)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plans[method] = append(f.plans[method], p)
}

func mustBeMethod(name string) {
	if _, ok := reflect.TypeFor[turns.Store]().MethodByName(name); !ok {
		panic(fmt.Sprintf("storetest: turns.Store has no method %q", name))
	}
}

// next counts a call and takes its plan.
func (f *Faults) next(method string) plan {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
	if f.down != nil {
		return plan{fail: f.down}
	}
	plans := f.plans[method]
	if len(plans) == 0 {
		return plan{}
	}
	f.plans[method] = plans[1:]
	return plans[0]
}

// spoil runs a call by its plan.
func spoil[T any](ctx context.Context, f *Faults, method string, call func() (T, error)) (T, error) {
	var none T
	p := f.next(method)
	if p.gate != nil {
		close(p.gate.arrived)
		select {
		case <-p.gate.open:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	if p.fail != nil {
		return none, p.fail
	}
	result, err := call()
	if p.lose && err == nil {
		return none, fmt.Errorf("%w: %w", turns.ErrUnknownOutcome, turns.Unavailable(errors.New("the answer was lost")))
	}
	return result, err
}

// spoilErr is spoil for a method that gives nothing but an error.
func spoilErr(ctx context.Context, f *Faults, method string, call func() error) error {
	_, err := spoil(ctx, f, method, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// RegisterWorker implements turns.Store.
func (f *Faults) RegisterWorker(ctx context.Context, w turns.Worker, ttl time.Duration) error {
	return spoilErr(ctx, f, "RegisterWorker", func() error { return f.store.RegisterWorker(ctx, w, ttl) })
}

// RenewLease implements turns.Store.
func (f *Faults) RenewLease(ctx context.Context, id turns.WorkerID, ttl time.Duration) error {
	return spoilErr(ctx, f, "RenewLease", func() error { return f.store.RenewLease(ctx, id, ttl) })
}

// RetireWorker implements turns.Store.
func (f *Faults) RetireWorker(ctx context.Context, id turns.WorkerID) error {
	return spoilErr(ctx, f, "RetireWorker", func() error { return f.store.RetireWorker(ctx, id) })
}

// BuryWorkers implements turns.Store.
func (f *Faults) BuryWorkers(ctx context.Context, except ...turns.WorkerID) ([]turns.WorkerID, error) {
	return spoil(ctx, f, "BuryWorkers", func() ([]turns.WorkerID, error) { return f.store.BuryWorkers(ctx, except...) })
}

// ForgetWorkers implements turns.Store.
func (f *Faults) ForgetWorkers(ctx context.Context, age time.Duration) error {
	return spoilErr(ctx, f, "ForgetWorkers", func() error { return f.store.ForgetWorkers(ctx, age) })
}

// Server implements turns.Store.
func (f *Faults) Server(ctx context.Context) (turns.ServerLife, error) {
	return spoil(ctx, f, "Server", func() (turns.ServerLife, error) { return f.store.Server(ctx) })
}

// Lookup implements turns.Store.
func (f *Faults) Lookup(ctx context.Context, q turns.LookupQuery) (turns.Standing, error) {
	return spoil(ctx, f, "Lookup", func() (turns.Standing, error) { return f.store.Lookup(ctx, q) })
}

// ReadPath implements turns.Store.
func (f *Faults) ReadPath(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit turns.PathLimit) ([]turns.PathRow, error) {
	return spoil(ctx, f, "ReadPath", func() ([]turns.PathRow, error) { return f.store.ReadPath(ctx, key, from, limit) })
}

// Claim implements turns.Store.
func (f *Faults) Claim(ctx context.Context, c []turns.Claim) ([]turns.ClaimResult, error) {
	return spoil(ctx, f, "Claim", func() ([]turns.ClaimResult, error) { return f.store.Claim(ctx, c) })
}

// PermitCalls implements turns.Store.
func (f *Faults) PermitCalls(ctx context.Context, p []turns.CallPermit) ([]turns.PermitResult, error) {
	return spoil(ctx, f, "PermitCalls", func() ([]turns.PermitResult, error) { return f.store.PermitCalls(ctx, p) })
}

// CloseCalls implements turns.Store.
func (f *Faults) CloseCalls(ctx context.Context, o []turns.CallOutcome) error {
	return spoilErr(ctx, f, "CloseCalls", func() error { return f.store.CloseCalls(ctx, o) })
}

// Checkpoint implements turns.Store.
func (f *Faults) Checkpoint(ctx context.Context, c []turns.Checkpoint) ([]turns.CheckpointResult, error) {
	return spoil(ctx, f, "Checkpoint", func() ([]turns.CheckpointResult, error) { return f.store.Checkpoint(ctx, c) })
}

// End implements turns.Store.
func (f *Faults) End(ctx context.Context, e []turns.Ending) ([]turns.EndResult, error) {
	return spoil(ctx, f, "End", func() ([]turns.EndResult, error) { return f.store.End(ctx, e) })
}

// MarkFollowed implements turns.Replies.
func (f *Faults) MarkFollowed(ctx context.Context, m []turns.FollowMark) error {
	return spoilErr(ctx, f, "MarkFollowed", func() error { return f.store.MarkFollowed(ctx, m) })
}

// StaleReplies implements turns.Store.
func (f *Faults) StaleReplies(ctx context.Context, q turns.StaleQuery) ([]turns.StaleReply, error) {
	return spoil(ctx, f, "StaleReplies", func() ([]turns.StaleReply, error) { return f.store.StaleReplies(ctx, q) })
}

// Sweep implements turns.Store.
func (f *Faults) Sweep(ctx context.Context, s turns.Sweeping) (bool, error) {
	return spoil(ctx, f, "Sweep", func() (bool, error) { return f.store.Sweep(ctx, s) })
}

// ReadReply implements turns.Store.
func (f *Faults) ReadReply(ctx context.Context, key turns.ConversationKey, id turns.ReplyID) (turns.Reply, error) {
	return spoil(ctx, f, "ReadReply", func() (turns.Reply, error) { return f.store.ReadReply(ctx, key, id) })
}

// ReadLogs implements turns.Store.
func (f *Faults) ReadLogs(ctx context.Context, p []turns.LogPosition) ([]turns.LogView, error) {
	return spoil(ctx, f, "ReadLogs", func() ([]turns.LogView, error) { return f.store.ReadLogs(ctx, p) })
}

// FindTurn implements turns.Store.
func (f *Faults) FindTurn(ctx context.Context, key turns.ConversationKey, id turns.RowID) (turns.UserTurn, error) {
	return spoil(ctx, f, "FindTurn", func() (turns.UserTurn, error) { return f.store.FindTurn(ctx, key, id) })
}

// RepliesTo implements turns.Store.
func (f *Faults) RepliesTo(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, limit int) ([]turns.Reply, error) {
	return spoil(ctx, f, "RepliesTo", func() ([]turns.Reply, error) { return f.store.RepliesTo(ctx, key, turn, limit) })
}

// Entries implements turns.Store.
func (f *Faults) Entries(ctx context.Context, key turns.ConversationKey, ids []turns.TurnID) (map[turns.TurnID]turns.Entry, error) {
	return spoil(ctx, f, "Entries", func() (map[turns.TurnID]turns.Entry, error) { return f.store.Entries(ctx, key, ids) })
}

// CreateConversation implements turns.Store.
func (f *Faults) CreateConversation(ctx context.Context, c turns.Conversation) (stored turns.Conversation, created bool, err error) {
	created, err = spoil(ctx, f, "CreateConversation", func() (bool, error) {
		stored, created, err = f.store.CreateConversation(ctx, c)
		return created, err
	})
	if err != nil {
		stored = turns.Conversation{}
	}
	return stored, created, err
}

// ReadConversation implements turns.Store.
func (f *Faults) ReadConversation(ctx context.Context, key turns.ConversationKey) (turns.Conversation, error) {
	return spoil(ctx, f, "ReadConversation", func() (turns.Conversation, error) { return f.store.ReadConversation(ctx, key) })
}

// ListConversations implements turns.Store.
func (f *Faults) ListConversations(ctx context.Context, q turns.ConversationQuery) (turns.ConversationPage, error) {
	return spoil(ctx, f, "ListConversations", func() (turns.ConversationPage, error) { return f.store.ListConversations(ctx, q) })
}

// UpdateConversation implements turns.Store.
func (f *Faults) UpdateConversation(ctx context.Context, c turns.Conversation, version int64) (bool, error) {
	return spoil(ctx, f, "UpdateConversation", func() (bool, error) { return f.store.UpdateConversation(ctx, c, version) })
}

// ConversationSpent implements turns.Store.
func (f *Faults) ConversationSpent(ctx context.Context, key turns.ConversationKey) (turns.Spending, error) {
	return spoil(ctx, f, "ConversationSpent", func() (turns.Spending, error) { return f.store.ConversationSpent(ctx, key) })
}

// TenantSpent implements turns.Store.
func (f *Faults) TenantSpent(ctx context.Context, tenant turns.Tenant) (turns.Spending, error) {
	return spoil(ctx, f, "TenantSpent", func() (turns.Spending, error) { return f.store.TenantSpent(ctx, tenant) })
}

// SettleReservations implements turns.Store.
func (f *Faults) SettleReservations(ctx context.Context, keys []turns.ReservationKey) error {
	return spoilErr(ctx, f, "SettleReservations", func() error { return f.store.SettleReservations(ctx, keys) })
}

// SettleOpen implements turns.Store.
func (f *Faults) SettleOpen(ctx context.Context, tenant turns.Tenant, subject string, limit int) (int, error) {
	return spoil(ctx, f, "SettleOpen", func() (int, error) { return f.store.SettleOpen(ctx, tenant, subject, limit) })
}

// QuotaUsed implements turns.Store.
func (f *Faults) QuotaUsed(ctx context.Context, tenant turns.Tenant, subject string) (turns.QuotaUse, error) {
	return spoil(ctx, f, "QuotaUsed", func() (turns.QuotaUse, error) { return f.store.QuotaUsed(ctx, tenant, subject) })
}

// QuotaSettled implements turns.Store.
func (f *Faults) QuotaSettled(ctx context.Context, tenant turns.Tenant, subject string) (turns.QuotaUse, error) {
	return spoil(ctx, f, "QuotaSettled", func() (turns.QuotaUse, error) { return f.store.QuotaSettled(ctx, tenant, subject) })
}

// ForgetQuotas implements turns.Store.
func (f *Faults) ForgetQuotas(ctx context.Context, age time.Duration, limit int) (bool, error) {
	return spoil(ctx, f, "ForgetQuotas", func() (bool, error) { return f.store.ForgetQuotas(ctx, age, limit) })
}

// ReadDefaults implements turns.Store.
func (f *Faults) ReadDefaults(ctx context.Context, key turns.ConversationKey, version int32) (turns.Options, error) {
	return spoil(ctx, f, "ReadDefaults", func() (turns.Options, error) { return f.store.ReadDefaults(ctx, key, version) })
}

// OwnedReplies implements turns.Store.
func (f *Faults) OwnedReplies(ctx context.Context, owner turns.WorkerID, age time.Duration, limit int) ([]turns.Fence, error) {
	return spoil(ctx, f, "OwnedReplies", func() ([]turns.Fence, error) { return f.store.OwnedReplies(ctx, owner, age, limit) })
}

// Revive implements turns.Store.
func (f *Faults) Revive(ctx context.Context, r turns.Revival) (bool, error) {
	return spoil(ctx, f, "Revive", func() (bool, error) { return f.store.Revive(ctx, r) })
}

// Salvage implements turns.Store.
func (f *Faults) Salvage(ctx context.Context, e turns.Ending) (bool, error) {
	return spoil(ctx, f, "Salvage", func() (bool, error) { return f.store.Salvage(ctx, e) })
}

// TakeOver implements turns.Store.
func (f *Faults) TakeOver(ctx context.Context, t turns.Takeover) (turns.TakeoverResult, error) {
	return spoil(ctx, f, "TakeOver", func() (turns.TakeoverResult, error) { return f.store.TakeOver(ctx, t) })
}

// Restore implements turns.Store.
func (f *Faults) Restore(ctx context.Context, l turns.LostReply) (bool, error) {
	return spoil(ctx, f, "Restore", func() (bool, error) { return f.store.Restore(ctx, l) })
}

// Settle implements turns.Store.
func (f *Faults) Settle(ctx context.Context, e turns.Ending) (bool, error) {
	return spoil(ctx, f, "Settle", func() (bool, error) { return f.store.Settle(ctx, e) })
}

// RequestStop implements turns.Store.
func (f *Faults) RequestStop(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, generation int32, by turns.TurnID) (turns.Reply, error) {
	return spoil(ctx, f, "RequestStop", func() (turns.Reply, error) { return f.store.RequestStop(ctx, key, turn, generation, by) })
}

// Enqueue implements turns.Store.
func (f *Faults) Enqueue(ctx context.Context, e turns.Enqueueing) (turns.EnqueueResult, error) {
	return spoil(ctx, f, "Enqueue", func() (turns.EnqueueResult, error) { return f.store.Enqueue(ctx, e) })
}

// LeaveLine implements turns.Store.
func (f *Faults) LeaveLine(ctx context.Context, d turns.Departure) (turns.DepartureResult, error) {
	return spoil(ctx, f, "LeaveLine", func() (turns.DepartureResult, error) { return f.store.LeaveLine(ctx, d) })
}

// ReadLine implements turns.Store.
func (f *Faults) ReadLine(ctx context.Context, places []turns.LinePlace) ([]turns.LineView, error) {
	return spoil(ctx, f, "ReadLine", func() ([]turns.LineView, error) { return f.store.ReadLine(ctx, places) })
}

// IdleLines implements turns.Store.
func (f *Faults) IdleLines(ctx context.Context, after turns.ConversationKey, limit int) ([]turns.ConversationKey, error) {
	return spoil(ctx, f, "IdleLines", func() ([]turns.ConversationKey, error) { return f.store.IdleLines(ctx, after, limit) })
}

// Select implements turns.Store.
func (f *Faults) Select(ctx context.Context, s turns.Selection) (bool, error) {
	return spoil(ctx, f, "Select", func() (bool, error) { return f.store.Select(ctx, s) })
}

// ListWorkers implements turns.Store.
func (f *Faults) ListWorkers(ctx context.Context) ([]turns.WorkerView, error) {
	return spoil(ctx, f, "ListWorkers", func() ([]turns.WorkerView, error) { return f.store.ListWorkers(ctx) })
}

// Replace implements turns.Store.
func (f *Faults) Replace(ctx context.Context, r turns.Replacement) (turns.ClaimResult, error) {
	return spoil(ctx, f, "Replace", func() (turns.ClaimResult, error) { return f.store.Replace(ctx, r) })
}

// HeldReplies implements turns.Store.
func (f *Faults) HeldReplies(ctx context.Context, q turns.HeldQuery) ([]turns.HeldReply, error) {
	return spoil(ctx, f, "HeldReplies", func() ([]turns.HeldReply, error) { return f.store.HeldReplies(ctx, q) })
}

// DueLookups implements turns.Store.
func (f *Faults) DueLookups(ctx context.Context, base, most time.Duration, limit int) ([]turns.HeldReply, error) {
	return spoil(ctx, f, "DueLookups", func() ([]turns.HeldReply, error) { return f.store.DueLookups(ctx, base, most, limit) })
}

// WakeLookup implements turns.Store.
func (f *Faults) WakeLookup(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, generation int32) (bool, error) {
	return spoil(ctx, f, "WakeLookup", func() (bool, error) { return f.store.WakeLookup(ctx, key, turn, generation) })
}

// ResolveHeld implements turns.Store.
func (f *Faults) ResolveHeld(ctx context.Context, r turns.Resolution) (turns.EndResult, error) {
	return spoil(ctx, f, "ResolveHeld", func() (turns.EndResult, error) { return f.store.ResolveHeld(ctx, r) })
}

// NoteCalls implements turns.Store.
func (f *Faults) NoteCalls(ctx context.Context, notes []turns.CallNote) ([]turns.NoteResult, error) {
	return spoil(ctx, f, "NoteCalls", func() ([]turns.NoteResult, error) { return f.store.NoteCalls(ctx, notes) })
}

// ReadCall implements turns.Store.
func (f *Faults) ReadCall(ctx context.Context, key turns.ConversationKey, id turns.CallID) (turns.OpenCall, error) {
	return spoil(ctx, f, "ReadCall", func() (turns.OpenCall, error) { return f.store.ReadCall(ctx, key, id) })
}

// ListCalls implements turns.Store.
func (f *Faults) ListCalls(ctx context.Context, q turns.LedgerQuery) ([]turns.LedgerCall, error) {
	return spoil(ctx, f, "ListCalls", func() ([]turns.LedgerCall, error) { return f.store.ListCalls(ctx, q) })
}

// SumCalls implements turns.Store.
func (f *Faults) SumCalls(ctx context.Context, filter turns.LedgerFilter) (turns.LedgerSums, error) {
	return spoil(ctx, f, "SumCalls", func() (turns.LedgerSums, error) { return f.store.SumCalls(ctx, filter) })
}

// ReadStory implements turns.Store.
func (f *Faults) ReadStory(ctx context.Context, q turns.StoryQuery) (turns.Story, error) {
	return spoil(ctx, f, "ReadStory", func() (turns.Story, error) { return f.store.ReadStory(ctx, q) })
}

// AddRepeats implements turns.Store.
func (f *Faults) AddRepeats(ctx context.Context, repeats []turns.Repeats) error {
	_, err := spoil(ctx, f, "AddRepeats", func() (struct{}, error) { return struct{}{}, f.store.AddRepeats(ctx, repeats) })
	return err
}

// SumRepeats implements turns.Store.
func (f *Faults) SumRepeats(ctx context.Context, filter turns.LedgerFilter) (map[turns.Layer]int64, error) {
	return spoil(ctx, f, "SumRepeats", func() (map[turns.Layer]int64, error) { return f.store.SumRepeats(ctx, filter) })
}

// DeleteConversation implements turns.Store.
func (f *Faults) DeleteConversation(ctx context.Context, key turns.ConversationKey) (turns.Deletion, error) {
	return spoil(ctx, f, "DeleteConversation", func() (turns.Deletion, error) { return f.store.DeleteConversation(ctx, key) })
}

// EraseConversation implements turns.Store.
func (f *Faults) EraseConversation(ctx context.Context, key turns.ConversationKey, limit int) (bool, error) {
	return spoil(ctx, f, "EraseConversation", func() (bool, error) { return f.store.EraseConversation(ctx, key, limit) })
}

// ConversationsToErase implements turns.Store.
func (f *Faults) ConversationsToErase(ctx context.Context, limit int) ([]turns.ConversationKey, error) {
	return spoil(ctx, f, "ConversationsToErase", func() ([]turns.ConversationKey, error) { return f.store.ConversationsToErase(ctx, limit) })
}

// DeleteTurn implements turns.Store.
func (f *Faults) DeleteTurn(ctx context.Context, key turns.ConversationKey, turn turns.TurnID, limit int) (turns.Deletion, error) {
	return spoil(ctx, f, "DeleteTurn", func() (turns.Deletion, error) { return f.store.DeleteTurn(ctx, key, turn, limit) })
}

// NewestLeaf implements turns.Store.
func (f *Faults) NewestLeaf(ctx context.Context, key turns.ConversationKey, from turns.RowID, limit int) (turns.RowID, error) {
	return spoil(ctx, f, "NewestLeaf", func() (turns.RowID, error) { return f.store.NewestLeaf(ctx, key, from, limit) })
}
