package scripted

import (
	"strconv"
	"strings"
)

// Script says how the endpoint behaves and which plan each request gets. The zero Script answers every request with the
// default reply. The JSON form of these types is the body of PUT /_scripted/script.
type Script struct {
	Endpoint Endpoint `json:"endpoint,omitzero"`
	// Rules are tried in order; the first that matches and has times left gives the plan.
	Rules []Rule `json:"rules,omitempty"`
}

// Endpoint holds what is true for all requests, whatever rule they take.
type Endpoint struct {
	// Idempotency says whether the Idempotency-Key header is honoured; empty is IdempotencyNone.
	Idempotency Idempotency `json:"idempotency,omitempty"`
	// RetentionS is how long, in seconds, a generation can be replayed by its key. 0 is a day.
	RetentionS int `json:"retention_s,omitempty"`
	// LookupDelayMS is how long, in milliseconds after its end, a reply stays unknown to whoever looks it up. A reply in the
	// background is known from its beginning all the same.
	LookupDelayMS int `json:"lookup_delay_ms,omitempty"`
	// KeptS is how long, in seconds after its end, a reply can be asked for. 0 is 10 minutes.
	KeptS int `json:"kept_s,omitempty"`
}

// Idempotency says what an Idempotency-Key does.
type Idempotency string

// The two kinds of endpoint: one that ignores keys, and one that replays by them.
const (
	IdempotencyNone    Idempotency = "none"
	IdempotencyEnforce Idempotency = "enforce"
)

// Rule gives a plan to the requests it matches.
type Rule struct {
	// Name appears in the records of the calls that took this rule.
	Name  string `json:"name,omitempty"`
	Match Match  `json:"match,omitzero"`
	// Times is how often the rule may be taken; 0 is without limit.
	Times int  `json:"times,omitempty"`
	Plan  Plan `json:"plan,omitzero"`
}

// Match narrows a rule; an empty field matches everything.
type Match struct {
	// Wire is the name of a wire, such as anthropic.messages.
	Wire string `json:"wire,omitempty"`
	// Model is the model that the request names.
	Model string `json:"model,omitempty"`
	// Text is a regular expression on the text of the last user message that has any.
	Text string `json:"text,omitempty"`
	// Key is a regular expression on the Idempotency-Key header.
	Key string `json:"key,omitempty"`
	// Ask makes it a rule for requests about a reply, for which nothing is generated; empty is a rule for those that
	// generate. Its plan has steps alone. Model and Text are those of the reply that is asked about.
	Ask Ask `json:"ask,omitempty"`
	// Nth takes only the nth request (from 1) of those that match the other fields, whichever rule they took.
	Nth int `json:"nth,omitempty"`
}

// Plan is one reply: what it says, how it is written, and what goes wrong. Without Reply and Blocks it says the default
// text.
type Plan struct {
	Reply  *Reply  `json:"reply,omitempty"`
	Blocks []Block `json:"blocks,omitempty"`
	// StopReason is Anthropic's word, put into the vendor's on other wires; an unknown word is sent as it is. Empty is end_turn,
	// tool_use when a block is one, or refusal when one is that.
	StopReason string `json:"stop_reason,omitempty"`
	// Usage says which token figures are reported.
	Usage Usage `json:"usage,omitempty"`
	// PaceMS is the pause before each delta, in milliseconds.
	PaceMS int `json:"pace_ms,omitempty"`
	// Write and LineEnd are how the bytes leave.
	Write   WriteMode `json:"write,omitempty"`
	LineEnd LineEnd   `json:"line_end,omitempty"`
	// OnClientGone is what becomes of the generation when nobody listens.
	OnClientGone OnClientGone `json:"on_client_gone,omitempty"`
	// Steps are what goes wrong, or waits, and where.
	Steps []Step `json:"steps,omitempty"`
}

// Reply is a text of pseudo-random words: Deltas deltas of exactly DeltaBytes bytes (0 is 16), the same for the same Seed.
type Reply struct {
	Deltas     int   `json:"deltas"`
	DeltaBytes int   `json:"delta_bytes,omitempty"`
	Seed       int64 `json:"seed,omitempty"`
}

// Block is one content block: exactly one of Text, Thinking, Redacted, Refusal, ToolUse and Vendor. Signature belongs to
// Thinking, and to Text on Gemini's generateContent, where it comes with the last words.
// Redacted is thinking that the vendor has sealed; Chat Completions has no words for it and leaves it out. Refusal is text of
// its own kind on OpenAI's wire, and plain text on Anthropic's, where the stop reason says the rest. Vendor is the JSON of a
// block that only Anthropic has, such as those of tools that it runs itself; it is sent whole, without a delta, and left out
// on other wires. Cites are the JSON of what a Text cites, each in the vendor's own form, for the wires that have a place for it:
// Anthropic Messages, Responses and Interactions. Phase is what part of an answer a Text or a Refusal is, on Responses alone.
type Block struct {
	Text      string   `json:"text,omitempty"`
	Thinking  string   `json:"thinking,omitempty"`
	Signature string   `json:"signature,omitempty"`
	Redacted  string   `json:"redacted,omitempty"`
	Refusal   string   `json:"refusal,omitempty"`
	ToolUse   *ToolUse `json:"tool_use,omitempty"`
	Vendor    string   `json:"vendor,omitempty"`
	Cites     []string `json:"cites,omitempty"`
	Phase     string   `json:"phase,omitempty"`
}

// ToolUse is a call of a tool; Input is the JSON text of its arguments, sent in pieces as it is.
type ToolUse struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input,omitempty"`
}

// Usage says which token figures a reply reports.
type Usage string

// UsageFull (the default) reports what the vendor reports; UsageStartOnly only what Anthropic says in message_start;
// UsageNone nothing; UsageZero zeros.
const (
	UsageFull      Usage = "full"
	UsageStartOnly Usage = "start_only"
	UsageNone      Usage = "none"
	UsageZero      Usage = "zero"
)

// WriteMode says how a reply is cut into writes.
type WriteMode string

// WriteEvent (the default) flushes each event, WriteByte each byte (which splits runes), WriteOnce writes the whole
// response at its end.
const (
	WriteEvent WriteMode = "event"
	WriteByte  WriteMode = "byte"
	WriteOnce  WriteMode = "once"
)

// LineEnd is the line ending of the event stream; all three are legal.
type LineEnd string

// The line endings; LineEndLF is the default.
const (
	LineEndLF   LineEnd = "lf"
	LineEndCRLF LineEnd = "crlf"
	LineEndCR   LineEnd = "cr"
)

// OnClientGone says what a generation does when nobody listens any more.
type OnClientGone string

// ClientGoneFinish (the default) produces and counts the rest; ClientGoneStop ends the generation.
const (
	ClientGoneFinish OnClientGone = "finish"
	ClientGoneStop   OnClientGone = "stop"
)

// Step does something at a point of the reply. Steps at one point are played in the order of the plan.
type Step struct {
	At Point  `json:"at"`
	Do Action `json:"do"`
	// Gate names the gate of a wait.
	Gate string `json:"gate,omitempty"`
	// Status and Headers belong to a status step.
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Error is the vendor's error type of a status or error_event. Empty picks the vendor's usual one.
	Error string `json:"error,omitempty"`
}

// Point is a place in the course of a call: one of the constants, or what AfterDelta returns.
type Point string

// The fixed points, in the order in which a call passes them.
const (
	// AtAccept is before anything of a request is read.
	AtAccept Point = "accept"
	// AtRequestRead is after the body was read and counted, and before the generation begins: what is refused here costs
	// nothing.
	AtRequestRead Point = "request_read"
	// AtBeforeHeaders is when the generation has begun and the client has heard nothing.
	AtBeforeHeaders Point = "before_headers"
	// AtAfterHeaders is when the headers are on the wire, and no event.
	AtAfterHeaders Point = "after_headers"
	// AtBeforeTerminal is when only the terminal event is missing; usage, if any, has been said.
	AtBeforeTerminal Point = "before_terminal"
	// AtAfterTerminal is when the terminal event was said and the body has not ended.
	AtAfterTerminal Point = "after_terminal"
)

// AfterDelta is the point after the nth delta; AfterDelta(0) lies between the opening event and the first delta.
func AfterDelta(n int) Point { return Point("delta:" + strconv.Itoa(n)) }

// delta returns the number of a delta point. Only the canonical decimal form is one, as points are compared as text.
func (p Point) delta() (int, bool) {
	digits, found := strings.CutPrefix(string(p), "delta:")
	if !found {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && AfterDelta(n) == p
}

// Action is what a step does.
type Action string

// The actions. Only DoErrorEvent ends the generation; the others trouble the connection.
const (
	// DoStatus answers with a status and the vendor's error body, in place of a reply.
	DoStatus Action = "status"
	// DoReset cuts the connection with a TCP RST.
	DoReset Action = "reset"
	// DoClose ends it in good order: with FIN alone before the headers, and after them with the end of the body first, so
	// that to HTTP the body is complete.
	DoClose Action = "close"
	// DoSilence says nothing more and keeps the connection until the client leaves.
	DoSilence Action = "silence"
	// DoWait holds the call at a gate until it is opened.
	DoWait Action = "wait"
	// DoErrorEvent says the vendor's error event and ends the body.
	DoErrorEvent Action = "error_event"
	// DoGarbage says an event that is not JSON and goes on. Before the headers it says what is not HTTP and closes.
	DoGarbage Action = "garbage"
	// DoEndless says a line that has no end, until the client leaves.
	DoEndless Action = "endless"
	// DoComment says a comment, which a reader of events must skip.
	DoComment Action = "comment"
	// DoRepeatTerminal says the terminal event once more.
	DoRepeatTerminal Action = "repeat_terminal"
	// DoKeepOpen does not end the body, until the client leaves.
	DoKeepOpen Action = "keep_open"
)
