package badlink

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed scenarios.json
var scenarios []byte

// Scenario is one bad network and what a client has to make of it.
type Scenario struct {
	Name string `json:"name"`
	// Cases are the numbers of the reported failures that it plays.
	Cases  []string `json:"cases,omitempty"`
	Client Client   `json:"client"`
	// Logs are the replies that are streamed, by a letter.
	Logs map[string][]Block `json:"logs"`
	// Down is true if nothing listens until the client has noticed it.
	Down  bool   `json:"down,omitempty"`
	Calls []Call `json:"calls"`
	// Repeat is true if the last of the calls stands for all that follow.
	Repeat bool   `json:"repeat,omitempty"`
	Expect Expect `json:"expect"`
}

// Client is what the client does.
type Client struct {
	// Do is send, follow (reply A), twice (one turn from two clients that share a record), resume (one client leaves after
	// LeaveAt, another goes on), or again (send, and send again once the reply has ended).
	Do            string `json:"do"`
	From          string `json:"from,omitempty"` // with resume: start or cursor
	LeaveAt       uint32 `json:"leave_at,omitempty"`
	Offset        uint32 `json:"offset,omitempty"` // with follow
	Auto          bool   `json:"auto,omitempty"`
	MaxReconnects int    `json:"max_reconnects,omitempty"`
	MaxSilenceMS  int    `json:"max_silence_ms,omitempty"`
	MaxWaitMS     int    `json:"max_wait_ms,omitempty"`
}

// Block is a block of a reply.
type Block struct {
	Kind string `json:"kind"` // as in BlockKind, in lower case; text if empty
	Tool string `json:"tool,omitempty"`
	Text string `json:"text"`
}

// Call is how one call goes.
type Call struct {
	Events []Event `json:"events,omitempty"`
	End    End     `json:"end"`
}

// Event is one event, or a stretch of a log. One of the fields up to Heartbeat says which; the rest belong to it. Replies are
// named by the letters of their logs.
type Event struct {
	Accepted  string   `json:"accepted,omitempty"` // as in DeliveryResult
	Queued    *int32   `json:"queued,omitempty"`
	Started   string   `json:"started,omitempty"`
	Log       string   `json:"log,omitempty"`
	Restarted []string `json:"restarted,omitempty"` // from one, to another
	Completed string   `json:"completed,omitempty"`
	Abandoned string   `json:"abandoned,omitempty"`
	Held      string   `json:"held,omitempty"`
	Heartbeat string   `json:"heartbeat,omitempty"`

	Attempt   int32   `json:"attempt,omitempty"`
	From      *uint32 `json:"from,omitempty"` // with log; the cursor of the call if left out
	To        *uint32 `json:"to,omitempty"`   // with log; its end if left out
	Runes     int     `json:"runes,omitempty"`
	Continues bool    `json:"continues,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	Advice    string  `json:"advice,omitempty"`
	DelayMS   int     `json:"delay_ms,omitempty"`
}

// End is how a call ends after its events.
type End struct {
	// How is empty for an end in good order, cut for a closed connection, silence for none until the client goes, down for a
	// server that is gone until the client has noticed it, refused for a status.
	How     string `json:"how,omitempty"`
	Code    string `json:"code,omitempty"` // as gRPC spells it: UNAVAILABLE
	Reason  string `json:"reason,omitempty"`
	Advice  string `json:"advice,omitempty"`
	DelayMS int    `json:"delay_ms,omitempty"`
}

// Expect is what has to come of it.
type Expect struct {
	// End is completed, abandoned, held or error.
	End   string `json:"end"`
	Text  string `json:"text"`
	Reply string `json:"reply,omitempty"`
	// Calls is how many deliveries of the turn, or follows of the reply, the server got.
	Calls int `json:"calls"`
	// Cursors are the cursors of the calls: [reply, offset], null for none, or any.
	Cursors []json.RawMessage `json:"cursors,omitempty"`
	// GapsMS are the least times between a call and the next.
	GapsMS   []int `json:"gaps_ms,omitempty"`
	Restarts int   `json:"restarts,omitempty"`
	// Blocks are the kinds of the blocks in the end.
	Blocks []string `json:"blocks,omitempty"`
	// Reason and Advice are those of the error, or the advice of an abandoned reply.
	Reason string `json:"reason,omitempty"`
	Advice string `json:"advice,omitempty"`
	GaveUp bool   `json:"gave_up,omitempty"`
	// Recorded is true if the turn is remembered as in flight afterwards.
	Recorded bool `json:"recorded,omitempty"`
}

// All are the scenarios.
func All() ([]Scenario, error) {
	var file struct {
		Scenarios []Scenario `json:"scenarios"`
	}
	decoder := json.NewDecoder(bytes.NewReader(scenarios))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("read the scenarios: %w", err)
	}
	return file.Scenarios, nil
}

// ReplyID is the id of the reply that a letter names.
func ReplyID(letter byte) string {
	return fmt.Sprintf("0190b6a0-0000-7000-8000-0000000000%02x", letter)
}

// Conversation is the conversation of all scenarios.
const Conversation = "0190b6a0-0000-7000-8000-00000000c000"

func replyID(letter string) string {
	if letter == "" {
		return ""
	}
	return ReplyID(letter[0])
}
