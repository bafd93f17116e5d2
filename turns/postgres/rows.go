package postgres

import (
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/turnd/turnd/turns"
)

// rowColumns is a row of turns as turnRow reads it, without content; rowSource is where it comes from.
const (
	rowColumns = `
	c.conversation_id, t.id, t.role, t.parent_id, t.seq, t.options, t.input_hash, t.generation, t.cancelled_generation,
	t.responds_to, t.status, t.reason, t.attempt, t.epoch, t.owner, t.endpoint, t.provider, t.model, t.request_hash,
	t.window_start, t.calls, t.waited_us, t.log_len, t.stop_reason, t.input_tokens, t.cache_read_tokens,
	t.cache_write_tokens, t.output_tokens, t.reasoning_tokens, t.token_source, t.wasted_tokens, t.cost_micros,
	t.provider_calls, t.provider_code, t.retry_after_us, t.create_time, t.end_time,
	t.builder_version, t.provider_model, t.provider_response_id, t.on_ambiguous, t.on_partial, t.traceparent, t.replaced_by,
	t.disconnect_grace_us, (EXTRACT(EPOCH FROM t.followed_until - clock_timestamp()) * 1000000)::bigint AS followed_left_us,
	COALESCE(c.last_turn_id <> t.responds_to, false) AS later_turn,
	COALESCE(t.erased, false) AS erased, COALESCE(t.cancel_requested, false) AS cancel_requested, t.settled_at IS NOT NULL AS settled, t.defaults_version,
	COALESCE(t.status = 'in_flight' AND COALESCE(w.dead, true), false) AS owner_dead,
	(EXTRACT(EPOCH FROM w.lease_until - clock_timestamp()) * 1000000)::bigint AS lease_left_us,
	(EXTRACT(EPOCH FROM clock_timestamp() - t.create_time) * 1000000)::bigint AS age_us`

	rowSource = ` turns t
	JOIN conversations c ON c.conversation_key = t.conversation_key
	LEFT JOIN` + ownerOf

	// ownerOf is the owner of a reply in flight; of one that has ended it is not even looked for.
	ownerOf = ` workers w ON w.worker_id = CASE WHEN t.status = 'in_flight' THEN t.owner END`
)

// The content of a row: a user turn's always; a reply's only where it was asked for. A reply that has not ended has no
// content in its row, and is read from its chunks.
const (
	ownContent = `, CASE WHEN t.role = 'user' THEN t.content END AS content, NULL::text[] AS chunks`

	allContent = `, t.content, CASE WHEN t.content = '' THEN ARRAY(
		SELECT k.pieces FROM reply_chunks k
		WHERE k.conversation_key = t.conversation_key AND k.reply_id = t.id ORDER BY k.start_offset) END AS chunks`
)

// turnRow is a user turn or a reply. All fields take NULL as their zero value.
type turnRow struct {
	ConversationID      zeronull.UUID
	ID                  zeronull.UUID
	Role                zeronull.Text
	ParentID            zeronull.UUID
	Seq                 zeronull.Int8
	Options             zeronull.Text
	InputHash           []byte
	Generation          zeronull.Int4
	CancelledGeneration zeronull.Int4
	RespondsTo          zeronull.UUID
	Status              zeronull.Text
	Reason              zeronull.Text
	Attempt             zeronull.Int4
	Epoch               zeronull.Int8
	Owner               zeronull.UUID
	Endpoint            zeronull.Text
	Provider            zeronull.Text
	Model               zeronull.Text
	RequestHash         []byte
	WindowStart         zeronull.UUID
	Calls               zeronull.Int4
	WaitedUs            zeronull.Int8
	LogLen              zeronull.Int8
	StopReason          zeronull.Text
	InputTokens         zeronull.Int8
	CacheReadTokens     zeronull.Int8
	CacheWriteTokens    zeronull.Int8
	OutputTokens        zeronull.Int8
	ReasoningTokens     zeronull.Int8
	TokenSource         zeronull.Text
	WastedTokens        zeronull.Int8
	CostMicros          zeronull.Int8
	ProviderCalls       zeronull.Int4
	ProviderCode        zeronull.Text
	RetryAfterUs        zeronull.Int8
	CreateTime          zeronull.Timestamptz
	EndTime             zeronull.Timestamptz
	BuilderVersion      zeronull.Int4
	ProviderModel       zeronull.Text
	ProviderResponseID  zeronull.Text
	OnAmbiguous         zeronull.Text
	OnPartial           zeronull.Text
	Traceparent         zeronull.Text
	ReplacedBy          zeronull.UUID
	DisconnectGraceUs   zeronull.Int8
	FollowedLeftUs      zeronull.Int8
	LaterTurn           bool
	Erased              bool
	CancelRequested     bool
	Settled             bool
	DefaultsVersion     zeronull.Int4
	OwnerDead           bool
	LeaseLeftUs         zeronull.Int8
	AgeUs               zeronull.Int8
	Content             zeronull.Text
	Chunks              []string
}

func (r *turnRow) isUser() bool { return r.Role == "user" }

func (r *turnRow) userTurn() (*turns.UserTurn, error) {
	var content []turns.Block
	var err error
	if !r.Erased {
		content, err = turns.DecodeContent([]byte(r.Content))
	}
	if err != nil {
		return nil, err
	}
	turn, err := r.userTurnHead()
	if err == nil {
		turn.Content = content
	}
	return turn, err
}

// userTurnHead is the row as a user turn that was read without its content.
func (r *turnRow) userTurnHead() (*turns.UserTurn, error) {
	options, err := turns.DecodeOptions([]byte(r.Options))
	if err != nil {
		return nil, err
	}
	return &turns.UserTurn{
		Conversation: turns.ConversationID{UUID: uuid.UUID(r.ConversationID)},
		ID:           turns.TurnID{UUID: uuid.UUID(r.ID)},
		Parent:       turns.RowID{UUID: uuid.UUID(r.ParentID)},
		Seq:          int64(r.Seq),
		Options:      options,
		Generation:   int32(r.Generation),
		Erased:       r.Erased,
		CreateTime:   utc(r.CreateTime),
	}, nil
}

// reply is the row as a reply, with whatever content was read.
func (r *turnRow) reply() (*turns.Reply, error) {
	content, err := decodeLog(string(r.Content), r.Chunks)
	if err != nil {
		return nil, err
	}
	options, err := turns.DecodeOptions([]byte(r.Options))
	if err != nil {
		return nil, err
	}
	return &turns.Reply{
		Conversation:    turns.ConversationID{UUID: uuid.UUID(r.ConversationID)},
		ID:              turns.ReplyID{UUID: uuid.UUID(r.ID)},
		Turn:            turns.TurnID{UUID: uuid.UUID(r.RespondsTo)},
		Status:          turns.Status(r.Status),
		Reason:          turns.Reason(r.Reason),
		Attempt:         int32(r.Attempt),
		Generation:      int32(r.Generation),
		Epoch:           int64(r.Epoch),
		Owner:           turns.WorkerID{UUID: uuid.UUID(r.Owner)},
		Options:         options,
		DefaultsVersion: int32(r.DefaultsVersion),
		Settled:         r.Settled,
		CancelRequested: r.CancelRequested,
		LaterTurn:       r.LaterTurn,
		DisconnectGrace: microseconds(int64(r.DisconnectGraceUs)),
		FollowedLeft:    microseconds(int64(r.FollowedLeftUs)),
		Content:         content,
		Length:          uint32(r.LogLen),
		StopReason:      turns.StopReason(r.StopReason),
		Endpoint:        string(r.Endpoint),
		Provider:        string(r.Provider),
		Model:           string(r.Model),
		Usage:           r.usage(),
		Calls:           int(r.Calls),
		Waited:          microseconds(int64(r.WaitedUs)),
		RequestHash:     r.RequestHash,
		WindowStart:     turns.RowID{UUID: uuid.UUID(r.WindowStart)},
		BuilderVersion:  int(r.BuilderVersion),
		ProviderModel:   string(r.ProviderModel),
		ResponseID:      string(r.ProviderResponseID),
		OnAmbiguous:     turns.OnAmbiguous(r.OnAmbiguous),
		OnPartial:       turns.OnPartial(r.OnPartial),
		Traceparent:     string(r.Traceparent),
		ReplacedBy:      turns.ReplyID{UUID: uuid.UUID(r.ReplacedBy)},
		ProviderCode:    string(r.ProviderCode),
		RetryAfter:      microseconds(int64(r.RetryAfterUs)),
		CreateTime:      utc(r.CreateTime),
		EndTime:         utc(r.EndTime),
		LeaseLeft:       microseconds(int64(r.LeaseLeftUs)),
		OwnerDead:       r.OwnerDead,
		Age:             microseconds(int64(r.AgeUs)),
	}, nil
}

func (r *turnRow) usage() turns.Usage {
	return turns.Usage{
		Input:      int64(r.InputTokens),
		CacheRead:  int64(r.CacheReadTokens),
		CacheWrite: int64(r.CacheWriteTokens),
		Output:     int64(r.OutputTokens),
		Reasoning:  int64(r.ReasoningTokens),
		Source:     turns.TokenSource(r.TokenSource),
		Wasted:     int64(r.WastedTokens),
		CostMicros: int64(r.CostMicros),
		Calls:      int32(r.ProviderCalls),
	}
}

// decodeLog is a log from a row's content or, where there is none, from chunks in their order.
func decodeLog(content string, chunks []string) ([]turns.Piece, error) {
	log, err := turns.DecodePieces([]byte(content))
	if err != nil {
		return nil, err
	}
	for _, chunk := range chunks {
		pieces, err := turns.DecodePieces([]byte(chunk))
		if err != nil {
			return nil, err
		}
		log = append(log, pieces...)
	}
	return log, nil
}

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// utc gives a time without the process's zone, so that equal moments are equal values.
func utc(t zeronull.Timestamptz) time.Time { return time.Time(t).UTC() }
