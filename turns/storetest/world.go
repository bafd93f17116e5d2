package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/turns"
)

// reporter is what the helpers need of a test: rapid's runs are tests too, and shrink only what fails by their own.
type reporter interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// world is a store with one living worker, and short words for what tests do with it.
type world struct {
	Engine
	t      reporter
	ctx    context.Context
	worker turns.WorkerID
}

func newWorld(t *testing.T, open Opener) *world {
	w := &world{Engine: open(t), t: t, ctx: t.Context()}
	w.worker = w.register()
	return w
}

// hour is a lease that outlives any test.
const hour = time.Hour

// register adds a worker whose lease outlives the test.
func (w *world) register() turns.WorkerID {
	id := turns.WorkerID{UUID: uuid.New()}
	require.NoError(w.t, w.Store.RegisterWorker(w.ctx, turns.Worker{ID: id, Name: "w"}, hour))
	return id
}

// exec runs SQL made by fmt, with ids as literals.
func (w *world) exec(format string, ids ...[16]byte) {
	w.t.Helper()
	require.NoError(w.t, w.Exec(w.ctx, w.sql(format, ids...)))
}

func (w *world) sql(format string, ids ...[16]byte) string {
	literals := make([]any, len(ids))
	for i, id := range ids {
		literals[i] = w.ID(id)
	}
	return fmt.Sprintf(format, literals...)
}

// count is the one integer that a query gives.
func (w *world) count(format string, ids ...[16]byte) int64 {
	w.t.Helper()
	rows, err := w.Query(w.ctx, w.sql(format, ids...))
	require.NoError(w.t, err)
	require.Len(w.t, rows, 1)
	switch n := rows[0][0].(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	}
	w.t.Fatalf("not an integer: %T", rows[0][0])
	return 0
}

// expireLease ends a worker's lease in the past.
func (w *world) expireLease(id turns.WorkerID) {
	w.exec("UPDATE workers SET lease_until = start_time WHERE worker_id = %s", id.UUID)
}

// bury makes a worker dead.
func (w *world) bury(id turns.WorkerID) {
	w.t.Helper()
	w.expireLease(id)
	buried, err := w.Store.BuryWorkers(w.ctx)
	require.NoError(w.t, err)
	require.Equal(w.t, []turns.WorkerID{id}, buried)
}

// passDeadline moves a reply's own deadline into the past.
func (w *world) passDeadline(id turns.ReplyID) {
	w.exec("UPDATE turns SET deadline_at = create_time WHERE id = %s", id.UUID)
}

// askToStop leaves the mark that a stop leaves on a reply, and none on its turn.
func (w *world) askToStop(id turns.ReplyID) {
	w.exec("UPDATE turns SET cancel_requested = true WHERE id = %s", id.UUID)
}

// markDeleted leaves only the mark of a conversation.
func (w *world) markDeleted(key turns.ConversationKey) {
	w.exec("UPDATE conversations SET deleted_at = create_time WHERE conversation_key = %s", key)
}

// tables is every table with an order that makes a dump comparable.
var tables = []string{
	"conversations ORDER BY conversation_key",
	"conversation_defaults ORDER BY conversation_key, version",
	"turns ORDER BY conversation_key, id",
	"reply_chunks ORDER BY conversation_key, reply_id, start_offset",
	"provider_calls ORDER BY conversation_key, call_id",
	"reply_takeovers ORDER BY conversation_key, reply_id, epoch",
	"turn_repeats ORDER BY conversation_key, turn_id, layer",
	"quotas ORDER BY tenant, subject, day",
	"quota_reservations ORDER BY conversation_key, turn_id, generation",
	"workers ORDER BY worker_id",
}

// dump is all that is stored.
func (w *world) dump() [][][]any {
	w.t.Helper()
	var all [][][]any
	for _, table := range tables {
		rows, err := w.Query(w.ctx, "SELECT * FROM "+table)
		require.NoError(w.t, err)
		all = append(all, rows)
	}
	return all
}

// unchanged asserts that an act leaves every stored row as it is.
func (w *world) unchanged(act func()) {
	w.t.Helper()
	before := w.dump()
	act()
	require.Empty(w.t, cmp.Diff(before, w.dump()), "stored rows changed")
}

// conversation names one of a tenant.
type conversation struct {
	tenant turns.Tenant
	id     turns.ConversationID
	key    turns.ConversationKey
}

func newConversation() conversation { return conversationOf("tenant", uuid.New()) }

func conversationOf(tenant turns.Tenant, id uuid.UUID) conversation {
	c := turns.ConversationID{UUID: id}
	return conversation{tenant, c, turns.KeyOf(tenant, c)}
}

func newTurnID() turns.TurnID   { return turns.TurnID{UUID: uuid.New()} }
func newReplyID() turns.ReplyID { return turns.ReplyID{UUID: uuid.New()} }
func newCallID() turns.CallID   { return turns.CallID{UUID: uuid.New()} }

var testRoute = turns.Route{Model: "demo", Endpoint: "local", Provider: "anthropic", ProviderModel: "demo-1", Credential: "digest"}

// newCall is the n-th call of a reply, for the route of the tests.
func newCall(n int) turns.NewCall {
	return turns.NewCall{ID: newCallID(), Number: n, First: n == 1, Key: "key", Route: testRoute, RequestHash: []byte("request"),
		BuilderVersion: 1, RequestBytes: 100}
}

// first is a claim of a new turn in a conversation that does not exist yet.
func (w *world) first(c conversation) turns.Claim {
	turn := newTurnID()
	return turns.Claim{
		Key: c.key, Tenant: c.tenant, Subject: "subject", Conversation: c.id, NextSeq: 1, Turn: turn,
		NewTurn: &turns.NewTurn{InputHash: []byte("hash"), Content: []turns.Block{turns.Text{Text: "hello"}}},
		Reply: turns.NewReply{ID: newReplyID(), Attempt: 1, Generation: 1, Owner: w.worker, Route: testRoute, Calls: 1,
			RequestHash: []byte("request"), BuilderVersion: 1, WindowStart: turn.Row(), Deadline: time.Hour,
			OnAmbiguous: turns.OnAmbiguousHold, OnPartial: turns.OnPartialContinue},
		Call: newCall(1),
	}
}

// openOf is a new call as its row is read while it is open, but for its age.
func openOf(c turns.NewCall) turns.OpenCall {
	return turns.OpenCall{ID: c.ID, Number: c.Number, First: c.First, Layer: c.MadeBy(), Key: c.Key, Endpoint: c.Route.Endpoint,
		Provider: c.Route.Provider, Model: c.Route.Model, ProviderModel: c.Route.ProviderModel, Credential: c.Route.Credential,
		RequestHash: c.RequestHash, BuilderVersion: c.BuilderVersion, RequestBytes: c.RequestBytes, HasBody: c.Body != nil,
		Submitted: !c.Unsent}
}

var ageless = cmpopts.IgnoreFields(turns.OpenCall{}, "Age")

// next is a claim of a new turn below the conversation's leaf, as the conversation stands now.
func (w *world) next(c conversation) turns.Claim {
	w.t.Helper()
	st := w.lookup(c, turns.TurnID{})
	claim := w.first(c)
	claim.ExpectVersion, claim.NextSeq = st.Version, max(1, st.NextSeq)
	claim.NewTurn.Parent = st.Leaf
	return claim
}

// again is a claim of a further attempt for a stored turn, as the conversation stands now.
func (w *world) again(c conversation, turn turns.TurnID) turns.Claim {
	w.t.Helper()
	st := w.lookup(c, turn)
	claim := w.first(c)
	claim.ExpectVersion, claim.NextSeq, claim.NewTurn, claim.Turn = st.Version, st.NextSeq, nil, turn
	claim.Reply.WindowStart = turn.Row()
	if st.Newest != nil {
		claim.Reply.Attempt, claim.Reply.Calls, claim.Call.First = st.Newest.Attempt+1, st.Newest.Calls+1, false
		claim.Reply.Generation = st.Turn.Generation
	}
	return claim
}

// regenerate is a claim of the turn's next generation, in the place of its complete reply if it has one.
func (w *world) regenerate(c conversation, turn turns.TurnID) turns.Claim {
	w.t.Helper()
	claim, live := w.again(c, turn), w.lookup(c, turn).Live
	claim.Reply.Generation++
	claim.Reply.Calls, claim.Call.First = 1, true
	if live != nil {
		claim.Supersede = live.ID
	}
	return claim
}

func (w *world) lookup(c conversation, turn turns.TurnID) turns.Standing {
	w.t.Helper()
	st, err := w.Store.Lookup(w.ctx, turns.LookupQuery{Key: c.key, Turn: turn})
	require.NoError(w.t, err)
	return st
}

// claim sends one claim.
func (w *world) claim(c turns.Claim) turns.ClaimResult {
	w.t.Helper()
	results, err := w.Store.Claim(w.ctx, []turns.Claim{c})
	require.NoError(w.t, err)
	require.Len(w.t, results, 1)
	return results[0]
}

// win sends a claim that must be won.
func (w *world) win(c turns.Claim) turns.Claim {
	w.t.Helper()
	require.True(w.t, w.claim(c).Won, "the claim was lost")
	return c
}

// lose sends a claim that must be lost and leave nothing behind.
func (w *world) lose(c turns.Claim) {
	w.t.Helper()
	w.unchanged(func() {
		w.t.Helper()
		require.False(w.t, w.claim(c).Won, "the claim was won")
	})
}

// fresh claims a first turn in a new conversation.
func (w *world) fresh() (conversation, turns.Claim) {
	w.t.Helper()
	c := newConversation()
	return c, w.win(w.first(c))
}

func fenceOf(c turns.Claim) turns.Fence {
	return turns.Fence{Key: c.Key, Reply: c.Reply.ID, Epoch: 1, Owner: c.Reply.Owner}
}

// opening starts block 0 with some text.
func opening(text string) turns.Piece {
	return turns.Piece{Kind: turns.KindText, Starts: true, Text: text}
}

// more goes on in block 0.
func more(text string) turns.Piece { return turns.Piece{Kind: turns.KindText, Text: text} }

// whole is block 0 from start to end.
func whole(text string) turns.Piece {
	return turns.Piece{Kind: turns.KindText, Starts: true, Text: text, Ends: true}
}

func lengthOf(pieces []turns.Piece) (n uint32) {
	for _, p := range pieces {
		n += p.Len()
	}
	return n
}

// checkpoint appends pieces to a reply's log at an offset.
func (w *world) checkpoint(f turns.Fence, from uint32, pieces ...turns.Piece) turns.CheckpointResult {
	w.t.Helper()
	results, err := w.Store.Checkpoint(w.ctx, []turns.Checkpoint{
		{Fence: f, From: from, To: from + lengthOf(pieces), Pieces: pieces}})
	require.NoError(w.t, err)
	require.Len(w.t, results, 1)
	return results[0]
}

// append checkpoints pieces that must be taken, and gives the log's new length.
func (w *world) append(f turns.Fence, from uint32, pieces ...turns.Piece) uint32 {
	w.t.Helper()
	require.True(w.t, w.checkpoint(f, from, pieces...).Held, "the checkpoint was refused")
	return from + lengthOf(pieces)
}

// completing is the ending of a claim whose stored log has the given length.
func completing(c turns.Claim, stored uint32, pieces ...turns.Piece) turns.Ending {
	return turns.Ending{
		Fence: fenceOf(c), Verb: turns.VerbComplete, Status: turns.StatusComplete, StoredLength: stored,
		Content: pieces, Length: lengthOf(pieces), StopReason: turns.StopEndTurn,
		Usage: turns.Usage{Input: 9, Output: 4, Source: turns.SourceReported, Calls: 1},
		Call:  closing(c.Key, c.Call.ID, turns.ClassOK),
	}
}

// abandoning is the ending of a claim with a reason.
func abandoning(c turns.Claim, stored uint32, reason turns.Reason, pieces ...turns.Piece) turns.Ending {
	e := completing(c, stored, pieces...)
	e.Verb, e.Status, e.Reason, e.StopReason = turns.VerbAbandon, turns.StatusAbandoned, reason, ""
	e.Call.Class = turns.ClassTransient
	return e
}

func closing(key turns.ConversationKey, id turns.CallID, class turns.CallClass) *turns.CallOutcome {
	return &turns.CallOutcome{Key: key, ID: id, Class: class, Phase: turns.PhaseDone, HTTPStatus: 200,
		Usage: turns.Usage{Input: 9, Output: 4, Source: turns.SourceReported, Calls: 1}}
}

func (w *world) end(e turns.Ending) turns.EndResult {
	w.t.Helper()
	results, err := w.Store.End(w.ctx, []turns.Ending{e})
	require.NoError(w.t, err)
	require.Len(w.t, results, 1)
	return results[0]
}

// finish sends an ending that must be won.
func (w *world) finish(e turns.Ending) {
	w.t.Helper()
	require.True(w.t, w.end(e).Won, "the ending was lost")
}

func (w *world) read(c conversation, id turns.ReplyID) turns.Reply {
	w.t.Helper()
	r, err := w.Store.ReadReply(w.ctx, c.key, id)
	require.NoError(w.t, err)
	return r
}

// hold makes a reply held, whatever it was before.
func (w *world) hold(id turns.ReplyID) {
	w.exec("UPDATE turns SET status = 'held', end_time = NULL WHERE id = %s", id.UUID)
}

// equal compares values of the domain.
func equal(t reporter, want, got any, opts ...cmp.Option) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, got, opts...))
}
