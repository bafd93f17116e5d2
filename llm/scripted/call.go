package scripted

import "time"

// End says how a call ended.
type End string

// The ends of a call.
const (
	// EndRunning has not ended: its connection or its generation goes on.
	EndRunning End = "running"
	// EndFinished said everything that its plan says, its terminal event or its error event last.
	EndFinished End = "finished"
	// EndStatus was answered with an error status.
	EndStatus End = "status"
	// EndReset was cut with a TCP reset.
	EndReset End = "reset"
	// EndClosed was closed by the provider without a terminal event, or cut by a reset of the whole provider.
	EndClosed End = "closed"
	// EndClientGone lost its client before the terminal event.
	EndClientGone End = "client_gone"
)

// Call is the record of one request. Numbers are final once End is not EndRunning. A call that joined or replayed a stored
// generation names the first call in ReplayOf and has no tokens of its own, so the sums over all calls are the counts.
type Call struct {
	// N numbers the requests since the last reset, from 1.
	N               int       `json:"n"`
	Wire            string    `json:"wire"`
	Model           string    `json:"model"`
	IdempotencyKey  string    `json:"idempotency_key"`
	BodySHA256      string    `json:"body_sha256"`
	Rule            string    `json:"rule"`
	Status          int       `json:"status"` // 0 until headers were written
	AcceptedAt      time.Time `json:"accepted_at"`
	DeltasGenerated int       `json:"deltas_generated"`
	// DeltasSent counts deltas that were written to the socket without an error.
	DeltasSent   int `json:"deltas_sent"`
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	// UsageReported is true once true output figures were written to the socket.
	UsageReported bool       `json:"usage_reported"`
	End           End        `json:"end"`
	ClientGoneAt  *time.Time `json:"client_gone_at"`
	EndedAt       *time.Time `json:"ended_at"`
	ResponseID    string     `json:"response_id"`
	ReplayOf      int        `json:"replay_of"`
}

// CallPage is a part of the records.
type CallPage struct {
	Calls []Call `json:"calls"`
	// More is true when the page is full and other calls follow its last one.
	More bool `json:"more,omitempty"`
	// Dropped counts the oldest calls that are no longer kept.
	Dropped int `json:"dropped,omitempty"`
}

// Counts are the sums since the last reset.
type Counts struct {
	// Connections counts what was accepted since the reset; connections that live on from before it are not among them.
	Connections  int `json:"connections"`
	Requests     int `json:"requests"`
	Generations  int `json:"generations"`
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	// Asked counts requests about replies and for sessions. They are among no other sums, connections apart.
	Asked int `json:"asked"`
	// Running counts generations that have not ended.
	Running int                  `json:"running"`
	ByKey   map[string]KeyCounts `json:"by_key"`
	// KeysDropped counts requests whose key came when ByKey was full.
	KeysDropped int `json:"keys_dropped,omitempty"`
}

// KeyCounts are the sums of one Idempotency-Key.
type KeyCounts struct {
	Requests    int `json:"requests"`
	Generations int `json:"generations"`
}
