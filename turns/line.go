package turns

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Lines is the part of a Store that keeps user turns which wait in line behind a reply of their conversation. A turn in
// line is stored and has no reply. What changes a line lets the conversation's version grow, so that whoever acts on a line
// as it was loses.
type Lines interface {
	// Enqueue stores a user turn at the end of its conversation's line. It is won only if the conversation is at
	// ExpectVersion and not deleted, no row has the turn's id, and fewer than Max turns are in line; of these the last alone
	// is told, as Full. The conversation's leaf and its newest turn stay. A parent that is missing is CodeNotFound.
	Enqueue(ctx context.Context, e Enqueueing) (EnqueueResult, error)
	// LeaveLine takes a turn out of line without a call to anybody: a reply that is over from its beginning stands for it.
	// It is won only if the conversation is at ExpectVersion and not deleted, and the turn is in line. The conversation's
	// leaf and its newest turn stay. A departure that the transition table has not is CodeWrongState.
	LeaveLine(ctx context.Context, d Departure) (DepartureResult, error)
	// ReadLine reads, in one statement, where turns stand.
	ReadLine(ctx context.Context, places []LinePlace) ([]LineView, error)
	// IdleLines reads, in the order of their keys and from after one on, conversations with turns in line and no reply in
	// flight, at most limit.
	IdleLines(ctx context.Context, after ConversationKey, limit int) ([]ConversationKey, error)
}

// Enqueueing is one Enqueue.
type Enqueueing struct {
	Key           ConversationKey
	ExpectVersion int64
	Turn          TurnID
	// NewTurn is the turn to store. Its parent is the one that the client set, zero if it set none.
	NewTurn NewTurn
	Waiting Waiting
	// Max bounds the line.
	Max int
	// Reserve is as a Claim's, for the tenant of Waiting's caller.
	Reserve *Reservation
}

// EnqueueResult answers one Enqueue.
type EnqueueResult struct {
	Won  bool
	Full bool
	// Met is the limit that its reservation met. It is not won then.
	Met *LimitMet
	// Seq is the turn's place in the conversation, Position how many turns come before it in line, and CreateTime the time
	// of its row, if won.
	Seq        int64
	Position   int
	CreateTime time.Time
}

// Waiting is what is kept of a delivery while its turn waits: who sent it, and what steers the reply that it is to have.
type Waiting struct {
	Caller Caller
	// ParentSet says that the client set the parent. Else the turn hangs below the conversation's leaf once it starts.
	ParentSet bool
	// Elsewhere says that the parent it set is not the leaf it was put in line behind: it does not wait for tool calls there.
	Elsewhere bool
	// Results says that the turn answers tool calls.
	Results         bool
	OnDisconnect    OnDisconnect
	DisconnectGrace time.Duration
	OnAmbiguous     OnAmbiguous
	OnPartial       OnPartial
	Deadline        time.Duration
	// OverrideNoProgress lets it start though CodeNoProgress would refuse it.
	OverrideNoProgress bool
}

// InLine is one turn of a line.
type InLine struct {
	Turn    TurnID
	Waiting Waiting
}

// Departure is one LeaveLine.
type Departure struct {
	Key           ConversationKey
	ExpectVersion int64
	Turn          TurnID
	// Parent is where the turn hangs from now on.
	Parent RowID
	// Verb and Reason say how the reply that stands for it ends, by the table of transitions. By VerbCancel its generation
	// counts as asked to stop.
	Verb         Verb
	Reason       Reason
	Reply        ReplyID
	Owner        WorkerID
	Model        string
	ProviderCode string
}

// DepartureResult answers one LeaveLine.
type DepartureResult struct {
	Won bool
	// Time is that of the reply's beginning and end, if won.
	Time time.Time
}

// LinePlace names a turn that may be in line.
type LinePlace struct {
	Key  ConversationKey
	Turn TurnID
}

// LineView is where a turn stands: in line, with Position turns before it, or out of it, with the reply that is live or, if
// none is, its newest. Found is false for a turn that is not stored.
type LineView struct {
	Found    bool
	Waiting  bool
	Position int
	Reply    ReplyID
}

// storedWaiting is the JSON form of a Waiting. Fields are only ever added.
type storedWaiting struct {
	Tenant          Tenant       `json:"tenant"`
	Subject         string       `json:"subject,omitempty"`
	ParentSet       bool         `json:"parent_set,omitempty"`
	Elsewhere       bool         `json:"elsewhere,omitempty"`
	Results         bool         `json:"results,omitempty"`
	OnDisconnect    OnDisconnect `json:"on_disconnect,omitempty"`
	DisconnectGrace int64        `json:"disconnect_grace_us,omitempty"`
	OnAmbiguous     OnAmbiguous  `json:"on_ambiguous,omitempty"`
	OnPartial       OnPartial    `json:"on_partial,omitempty"`
	Deadline        int64        `json:"deadline_us,omitempty"`
	Override        bool         `json:"override_no_progress,omitempty"`
}

// EncodeWaiting is the stored form of a Waiting, which is never empty.
func EncodeWaiting(w Waiting) ([]byte, error) {
	return json.Marshal(storedWaiting{
		Tenant: Tenant(dropNUL(string(w.Caller.Tenant))), Subject: dropNUL(w.Caller.Subject), ParentSet: w.ParentSet, Elsewhere: w.Elsewhere, Results: w.Results,
		OnDisconnect: w.OnDisconnect, DisconnectGrace: w.DisconnectGrace.Microseconds(), OnAmbiguous: w.OnAmbiguous,
		OnPartial: w.OnPartial, Deadline: w.Deadline.Microseconds(), Override: w.OverrideNoProgress,
	})
}

// DecodeWaiting reads what EncodeWaiting wrote.
func DecodeWaiting(data []byte) (Waiting, error) {
	var s storedWaiting
	if err := json.Unmarshal(data, &s); err != nil {
		return Waiting{}, fmt.Errorf("decode what is kept of a waiting turn: %w", err)
	}
	return Waiting{
		Caller: Caller{Tenant: s.Tenant, Subject: s.Subject}, ParentSet: s.ParentSet, Elsewhere: s.Elsewhere, Results: s.Results,
		OnDisconnect: s.OnDisconnect, DisconnectGrace: time.Duration(s.DisconnectGrace) * time.Microsecond,
		OnAmbiguous: s.OnAmbiguous, OnPartial: s.OnPartial, Deadline: time.Duration(s.Deadline) * time.Microsecond,
		OverrideNoProgress: s.Override,
	}, nil
}
