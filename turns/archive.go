package turns

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Archive is the port by which whole conversations leave a database and come into one. It is no part of Store: nothing that
// serves turns needs it. Its promises are checked on every engine by package storetest.
type Archive interface {
	ArchiveReader
	// WriteArchived stores a conversation with all its records in one transaction, or nothing. It asks for no record, and
	// gives false, if the conversation is there already. An error that the records give is given back; one of what a record
	// holds is a RefusedRecord. With dry all is done but the commit.
	WriteArchived(ctx context.Context, c ArchivedConversation, records iter.Seq2[ArchivedRecord, error], dry bool) (written bool, err error)
}

// ArchiveReader is the half of an Archive that only reads.
type ArchiveReader interface {
	// ArchiveNames reads the names of conversations with keys beyond one, in the order of their keys, at most limit. Deleted
	// ones are among them.
	ArchiveNames(ctx context.Context, after ConversationKey, limit int) ([]ArchiveName, error)
	// ReadArchived reads one conversation as it is at one moment: itself, then its records in the order of an archive. It
	// holds a page of them in memory at a time, and ends with the first error that one of the two gives. A missing one is
	// CodeNotFound. Of a deleted one there is the mark and the ledger.
	ReadArchived(ctx context.Context, key ConversationKey, head func(ArchivedConversation) error, record func(ArchivedRecord) error) error
}

// ArchiveName names a conversation of any tenant, and says how it stands.
type ArchiveName struct {
	Key        ConversationKey
	Tenant     Tenant
	ID         ConversationID
	Labels     map[string]string
	Deleted    bool
	UpdateTime time.Time
}

// RefusedRecord is an error of what a record holds: the database has a rule against it.
type RefusedRecord struct {
	// Line is that of the record.
	Line  int
	cause error
}

// RefuseRecord wraps an engine's refusal of a record.
func RefuseRecord(line int, cause error) error { return &RefusedRecord{line, cause} }

// Error implements error. What the engine says is for the log alone, since it can quote what is stored.
func (e *RefusedRecord) Error() string { return "the database refuses the record" }

// Unwrap gives the engine's own error.
func (e *RefusedRecord) Unwrap() error { return e.cause }

// RawJSON is JSON text as it is stored; empty is none at all.
type RawJSON string

// MarshalJSON implements json.Marshaler.
func (r RawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// UnmarshalJSON implements json.Unmarshaler. The text is kept without the space between its parts.
func (r *RawJSON) UnmarshalJSON(data []byte) error {
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		return err
	}
	*r = RawJSON(out.String())
	return nil
}

// The archived types have a field for each column that outlives its worker, named as the column is; ArchiveColumns gives
// them to the engines.

// ArchivedConversation is a conversation without its records.
type ArchivedConversation struct {
	Tenant          Tenant            `json:"tenant"`
	Subject         string            `json:"subject"`
	ID              ConversationID    `json:"conversation_id"`
	Title           string            `json:"title,omitzero"`
	Labels          map[string]string `json:"labels,omitempty"`
	Defaults        RawJSON           `json:"defaults,omitzero"`
	DefaultsVersion int32             `json:"defaults_version"`
	NextSeq         int64             `json:"next_seq"`
	Version         int64             `json:"version"`
	Leaf            RowID             `json:"leaf_id,omitzero"`
	LastTurn        TurnID            `json:"last_turn_id,omitzero"`
	// Spent* are what it took up to a place in its ledger, which may be gone before that.
	SpentTurns   int64     `json:"spent_turns,omitzero"`
	SpentTokens  int64     `json:"spent_tokens,omitzero"`
	SpentMicros  int64     `json:"spent_micros,omitzero"`
	SpentUS      int64     `json:"spent_us,omitzero"`
	SpentThrough CallID    `json:"spent_through,omitzero"`
	DeletedAt    time.Time `json:"deleted_at,omitzero"`
	ErasedAt     time.Time `json:"erased_at,omitzero"`
	CreateTime   time.Time `json:"create_time"`
	UpdateTime   time.Time `json:"update_time"`
}

// Key is its stored key.
func (c *ArchivedConversation) Key() ConversationKey { return KeyOf(c.Tenant, c.ID) }

// ArchivedRecord is one of the five: versions of the defaults come first, by number, then rows by seq, calls by id, takeovers by
// reply and epoch, and repeats by turn and layer.
type ArchivedRecord struct {
	// Line is where it stands in a file that is read; 0 elsewhere.
	Line     int
	Defaults *ArchivedDefaults
	Row      *ArchivedRow
	Call     *ArchivedCall
	Takeover *ArchivedTakeover
	Repeats  *ArchivedRepeats
	// Unended says that the row is of a reply that has not ended, and is given as if it had.
	Unended bool
}

// ArchivedDefaults is a version of a conversation's defaults.
type ArchivedDefaults struct {
	Version    int32     `json:"version"`
	Defaults   RawJSON   `json:"defaults,omitzero"`
	CreateTime time.Time `json:"create_time"`
}

// ArchivedRow is a user turn or a reply.
type ArchivedRow struct {
	Role                Role        `json:"-" column:"role"`
	ID                  RowID       `json:"id"`
	Parent              RowID       `json:"parent_id,omitzero"`
	Seq                 int64       `json:"seq"`
	Content             RawJSON     `json:"content,omitzero"`
	Options             RawJSON     `json:"options,omitzero"`
	InputHash           []byte      `json:"input_hash,omitempty"`
	Generation          int32       `json:"generation"`
	CancelledGeneration int32       `json:"cancelled_generation,omitzero"`
	SlotVersion         int64       `json:"slot_version,omitzero"`
	RespondsTo          TurnID      `json:"responds_to,omitzero"`
	Status              Status      `json:"status,omitzero"`
	Reason              Reason      `json:"reason,omitzero"`
	Attempt             int32       `json:"attempt,omitzero"`
	Epoch               int64       `json:"epoch,omitzero"`
	Owner               WorkerID    `json:"owner,omitzero"`
	Endpoint            string      `json:"endpoint,omitzero"`
	Provider            string      `json:"provider,omitzero"`
	Model               string      `json:"model,omitzero"`
	ProviderModel       string      `json:"provider_model,omitzero"`
	RequestHash         []byte      `json:"request_hash,omitempty"`
	BuilderVersion      int32       `json:"builder_version,omitzero"`
	WindowStart         RowID       `json:"window_start,omitzero"`
	Calls               int32       `json:"calls,omitzero"`
	WaitedUS            int64       `json:"waited_us,omitzero"`
	LogLen              uint32      `json:"log_len,omitzero"`
	StopReason          StopReason  `json:"stop_reason,omitzero"`
	InputTokens         int64       `json:"input_tokens,omitzero"`
	CacheReadTokens     int64       `json:"cache_read_tokens,omitzero"`
	CacheWriteTokens    int64       `json:"cache_write_tokens,omitzero"`
	OutputTokens        int64       `json:"output_tokens,omitzero"`
	ReasoningTokens     int64       `json:"reasoning_tokens,omitzero"`
	TokenSource         TokenSource `json:"token_source,omitzero"`
	WastedTokens        int64       `json:"wasted_tokens,omitzero"`
	CostMicros          int64       `json:"cost_micros,omitzero"`
	ProviderCalls       int32       `json:"provider_calls,omitzero"`
	ResponseID          string      `json:"provider_response_id,omitzero"`
	ProviderCode        string      `json:"provider_code,omitzero"`
	RetryAfterUS        int64       `json:"retry_after_us,omitzero"`
	CancelRequested     bool        `json:"cancel_requested,omitzero"`
	DisconnectGraceUS   int64       `json:"disconnect_grace_us,omitzero"`
	ReplacedBy          ReplyID     `json:"replaced_by,omitzero"`
	DefaultsVersion     int32       `json:"defaults_version,omitzero"`
	Waiting             RawJSON     `json:"waiting,omitzero"`
	StoppedFor          TurnID      `json:"stopped_for,omitzero"`
	Erased              bool        `json:"erased,omitzero"`
	OnAmbiguous         OnAmbiguous `json:"on_ambiguous,omitzero"`
	OnPartial           OnPartial   `json:"on_partial,omitzero"`
	SettledAt           time.Time   `json:"settled_at,omitzero"`
	CreateTime          time.Time   `json:"create_time"`
	EndTime             time.Time   `json:"end_time,omitzero"`
}

// ArchivedCall is a row of the ledger.
type ArchivedCall struct {
	ID               CallID      `json:"call_id"`
	Turn             TurnID      `json:"turn_id"`
	Generation       int32       `json:"generation"`
	Reply            ReplyID     `json:"reply_id"`
	Epoch            int64       `json:"epoch"`
	Number           int32       `json:"number"`
	First            bool        `json:"first,omitzero"`
	Layer            Layer       `json:"layer,omitzero"`
	Endpoint         string      `json:"endpoint"`
	Provider         string      `json:"provider"`
	Model            string      `json:"model"`
	ProviderModel    string      `json:"provider_model,omitzero"`
	Credential       string      `json:"credential,omitzero"`
	Class            CallClass   `json:"class"`
	Phase            CallPhase   `json:"phase,omitzero"`
	HTTPStatus       int32       `json:"http_status,omitzero"`
	IdempotencyKey   string      `json:"idempotency_key"`
	RequestHash      []byte      `json:"request_hash,omitempty"`
	BuilderVersion   int32       `json:"builder_version,omitzero"`
	RequestBytes     int64       `json:"request_bytes"`
	Session          string      `json:"session,omitzero"`
	SubmittedAt      time.Time   `json:"submitted_at,omitzero"`
	RequestID        string      `json:"provider_request_id,omitzero"`
	ResponseID       string      `json:"provider_response_id,omitzero"`
	InputTokens      int64       `json:"input_tokens,omitzero"`
	CacheReadTokens  int64       `json:"cache_read_tokens,omitzero"`
	CacheWriteTokens int64       `json:"cache_write_tokens,omitzero"`
	OutputTokens     int64       `json:"output_tokens,omitzero"`
	ReasoningTokens  int64       `json:"reasoning_tokens,omitzero"`
	TokenSource      TokenSource `json:"token_source,omitzero"`
	WasteCause       string      `json:"waste_cause,omitzero"`
	WastedTokens     int64       `json:"wasted_tokens,omitzero"`
	CostMicros       int64       `json:"cost_micros,omitzero"`
	ExtraRequests    int32       `json:"extra_requests,omitzero"`
	OutputLow        int64       `json:"output_low,omitzero"`
	OutputHigh       int64       `json:"output_high,omitzero"`
	CreateTime       time.Time   `json:"create_time"`
	EndTime          time.Time   `json:"end_time"`
}

// ArchivedTakeover is how a reply came to an epoch after its first.
type ArchivedTakeover struct {
	Reply      ReplyID     `json:"reply_id"`
	Epoch      int64       `json:"epoch"`
	Way        TakeoverWay `json:"way,omitzero"`
	From       WorkerID    `json:"from_worker"`
	FromName   string      `json:"from_name,omitzero"`
	To         WorkerID    `json:"to_worker"`
	ToName     string      `json:"to_name,omitzero"`
	CreateTime time.Time   `json:"create_time"`
}

// ArchivedRepeats are deliveries of a turn beyond its first, by one layer.
type ArchivedRepeats struct {
	Turn      TurnID    `json:"turn_id"`
	Layer     Layer     `json:"layer"`
	Count     int64     `json:"count"`
	FirstTime time.Time `json:"first_time"`
	LastTime  time.Time `json:"last_time"`
}
