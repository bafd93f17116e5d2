package turns

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// What is here and in release.go and complete.go is for those who run turnd. All of it is bounded by the caller's tenant,
// apart from the workers, which belong to no tenant.

// HeldReplies reads a page of the tenant's held replies, without content, the earliest first; the token of the next one is
// empty on the last.
func (s *Service) HeldReplies(ctx context.Context, caller Caller, size int, token string) ([]Reply, string, error) {
	size, err := pageSize(size)
	if err != nil {
		return nil, "", err
	}
	q := HeldQuery{Tenant: caller.Tenant, Limit: size + 1}
	if q.AfterTime, q.AfterID.UUID, err = parsePlace(heldPage, token); err != nil {
		return nil, "", err
	}
	found, err := s.store.HeldReplies(ctx, q)
	if err != nil {
		return nil, "", err
	}
	replies := make([]Reply, 0, len(found))
	for _, h := range found {
		replies = append(replies, h.Reply)
	}
	if len(replies) <= size {
		return replies, "", nil
	}
	last := replies[size-1]
	return replies[:size], placeToken(heldPage, last.CreateTime, last.ID.UUID), nil
}

// CallFilter chooses entries of the ledger. A zero field chooses all.
type CallFilter struct {
	Conversation ConversationID
	// Turn goes with Conversation alone.
	Turn TurnID
	// From is the first time that is chosen, Before the first after it that is not.
	From     time.Time
	Before   time.Time
	Provider string
	Model    string
	Endpoint string
	Class    CallClass
	Layer    Layer
	// Try chooses first calls of their turn and generation, or the others.
	Try CallTry
	// Wasted chooses calls of which tokens were wasted, Open those that have not ended.
	Wasted bool
	Open   bool
}

// ofCallsAlone reports whether it asks for what only calls have.
func (f CallFilter) ofCallsAlone() bool {
	return f.Provider != "" || f.Model != "" || f.Endpoint != "" || f.Class != "" || f.Try != "" || f.Wasted || f.Open
}

// of is the filter for one tenant.
func (f CallFilter) of(tenant Tenant) (LedgerFilter, error) {
	out := LedgerFilter{Tenant: tenant, Turn: f.Turn, From: f.From, Before: f.Before, Provider: f.Provider, Model: f.Model,
		Endpoint: f.Endpoint, Class: f.Class, Layer: f.Layer, Try: f.Try, Wasted: f.Wasted, Open: f.Open}
	switch {
	case !f.Conversation.IsZero():
		key := KeyOf(tenant, f.Conversation)
		out.Key = &key
	case !f.Turn.IsZero():
		return out, invalid("filter.conversation_id", "must be given together with turn_id")
	}
	if !f.From.IsZero() && !f.Before.IsZero() && f.Before.Before(f.From) {
		return out, invalid("filter.end_time", "must not come before start_time")
	}
	return out, nil
}

// ListCalls reads a page of the tenant's ledger, the earliest first.
func (s *Service) ListCalls(ctx context.Context, caller Caller, f CallFilter, size int, token string) ([]LedgerCall, string, error) {
	size, err := pageSize(size)
	if err != nil {
		return nil, "", err
	}
	q := LedgerQuery{Limit: size + 1}
	if q.Filter, err = f.of(caller.Tenant); err != nil {
		return nil, "", err
	}
	if q.AfterTime, q.AfterID.UUID, err = parsePlace(callPage, token); err != nil {
		return nil, "", err
	}
	calls, err := s.store.ListCalls(ctx, q.begun())
	if err != nil || len(calls) <= size {
		return calls, "", err
	}
	last := calls[size-1]
	return calls[:size], placeToken(callPage, last.CreateTime, last.ID.UUID), nil
}

// SumCalls sums the tenant's ledger.
func (s *Service) SumCalls(ctx context.Context, caller Caller, f CallFilter) (LedgerSums, error) {
	filter, err := f.of(caller.Tenant)
	if err != nil {
		return LedgerSums{}, err
	}
	return s.store.SumCalls(ctx, filter)
}

// WorkerStatus is a worker as it is shown.
type WorkerStatus struct {
	WorkerView
	// Draining is known of the worker that answers alone: the others keep it to themselves.
	Draining bool
}

// Workers reads the workers that live, and those that left within the last hour.
func (s *Service) Workers(ctx context.Context) ([]WorkerStatus, error) {
	views, err := s.store.ListWorkers(ctx)
	if err != nil {
		return nil, err
	}
	workers := make([]WorkerStatus, 0, len(views))
	for _, v := range views {
		workers = append(workers, WorkerStatus{WorkerView: v, Draining: v.ID == s.WorkerID() && s.Draining()})
	}
	return workers, nil
}

// Kinds of pages, so that a token of one list is told apart from one of another.
const (
	heldPage byte = 'h'
	callPage byte = 'c'
)

// placeVersion is that of a token's form.
const placeVersion = 1

// placeToken names the row that a page ended with.
func placeToken(kind byte, at time.Time, id uuid.UUID) string {
	b := binary.BigEndian.AppendUint64([]byte{placeVersion, kind}, uint64(at.UnixMicro()))
	return base64.RawURLEncoding.EncodeToString(append(b, id[:]...))
}

// parsePlace reads what placeToken made; no token is the beginning.
func parsePlace(kind byte, token string) (at time.Time, id uuid.UUID, err error) {
	if token == "" {
		return at, id, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(b) != 10+len(id) || b[0] != placeVersion || b[1] != kind {
		return at, id, invalid("page_token", "is not one that a page gave; start again without it")
	}
	copy(id[:], b[10:])
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b[2:10]))), id, nil
}
