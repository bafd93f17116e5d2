package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// maxRecordAge is how long a record is good for. Somebody who comes back later has given up on the turn, and sending it
// then would surprise them.
const maxRecordAge = time.Hour

// maxRecordBytes bounds the stored form of a record; the content of a turn is at most 4 MiB by the server's default.
const maxRecordBytes = 32 << 20

// ErrRecordCorrupt is returned by RecordStore.Load for a record that can't be read. The client drops it.
var ErrRecordCorrupt = errors.New("the record of the turn in flight is corrupt")

// Record is what a client has to remember of a turn in flight, to send exactly it again.
type Record struct {
	TurnID string `json:"turn_id"`
	// ConversationID is the conversation by the server's word; before that, as in the input.
	ConversationID string `json:"conversation_id"`
	// Input is the TurnInput in protobuf's wire format, as it was sent at first.
	Input []byte `json:"input"`
	// ReplyID and Offset are the cursor: how far the caller has dealt with events. ReplyID is empty if no reply was seen.
	ReplyID string `json:"reply_id,omitempty"`
	Offset  uint32 `json:"offset,omitempty"`
	// StartTime is when the turn was to be sent for the first time.
	StartTime time.Time `json:"start_time"`
}

// RecordStore keeps the Record of one turn. Its methods are called one at a time by one Client.
type RecordStore interface {
	// Load returns the record, or nil if there is none. An error that is ErrRecordCorrupt has it dropped.
	Load(ctx context.Context) (*Record, error)
	// Save replaces the record. When it returns nil, the record must outlive a crash of the process.
	Save(ctx context.Context, r *Record) error
	// Clear removes the record, if there is one.
	Clear(ctx context.Context) error
}

// newRecord makes the record of a turn that is about to be sent.
func newRecord(in *turnsv1.TurnInput, now time.Time) (*Record, error) {
	wire, err := proto.MarshalOptions{Deterministic: true}.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the turn: %w", err)
	}
	return &Record{TurnID: in.GetTurnId(), ConversationID: in.GetConversationId(), Input: wire, StartTime: now}, nil
}

// input is the turn of a record, or ErrRecordCorrupt.
func (r *Record) input() (*turnsv1.TurnInput, error) {
	in := &turnsv1.TurnInput{}
	if err := proto.Unmarshal(r.Input, in); err != nil {
		return nil, fmt.Errorf("%w: the input is no turn", ErrRecordCorrupt)
	}
	if r.TurnID == "" || in.GetTurnId() != r.TurnID {
		return nil, fmt.Errorf("%w: the input is another turn's", ErrRecordCorrupt)
	}
	return in, nil
}

// stale tells whether the record is too old, or from a future that a corrected clock has taken back.
func (r *Record) stale(now time.Time) bool {
	age := now.Sub(r.StartTime)
	return age > maxRecordAge || age < -maxRecordAge
}

// MemoryRecord keeps a record for the life of the process. The zero value is empty. It is safe for concurrent use.
type MemoryRecord struct {
	mu     sync.Mutex
	record *Record
}

// Load implements RecordStore.
func (m *MemoryRecord) Load(context.Context) (*Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record.clone(), nil
}

// Save implements RecordStore.
func (m *MemoryRecord) Save(_ context.Context, r *Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = r.clone()
	return nil
}

// Clear implements RecordStore.
func (m *MemoryRecord) Clear(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.record = nil
	return nil
}

// clone copies all but the bytes of the input, which nobody changes.
func (r *Record) clone() *Record {
	if r == nil {
		return nil
	}
	c := *r
	return &c
}
