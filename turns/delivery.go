package turns

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Input is a user turn as a client sends it. It is what HashInput hashes: the same turn id with another input is
// refused.
type Input struct {
	// Conversation is zero for a new conversation, whose id is derived from Turn.
	Conversation ConversationID
	Turn         TurnID
	// Parent is where the turn hangs, if ParentSet; zero then is a new root. Unset: below the conversation's leaf at the
	// first delivery.
	Parent    RowID
	ParentSet bool
	Content   []Block
	Options   Options
}

// Key is the stored key of the input's conversation.
func (in Input) Key(tenant Tenant) ConversationKey { return KeyOf(tenant, in.ConversationID()) }

// ConversationID is the conversation, derived from the turn if none was sent.
func (in Input) ConversationID() ConversationID {
	if in.Conversation.IsZero() {
		return DeriveConversation(in.Turn)
	}
	return in.Conversation
}

// Cursor is a place in the log of a reply: what a client has shown already.
type Cursor struct {
	Reply  ReplyID
	Offset uint32
}

// Delivery is one arrival of a user turn. All but Input steers this delivery alone and is not part of the turn's
// identity.
type Delivery struct {
	Input        Input
	Cursor       *Cursor
	Source       DeliverySource
	OnBusy       OnBusy
	OnDisconnect OnDisconnect
	// DisconnectGrace is how long the last follower must be gone, with OnDisconnectCancel; zero: 30 s.
	DisconnectGrace time.Duration
	OnAmbiguous     OnAmbiguous
	OnPartial       OnPartial
	// OverrideNoProgress lets the turn go on though CodeNoProgress would refuse it.
	OverrideNoProgress bool
	// Deadline is the most time for the reply from the claim on; zero: as the endpoint says.
	Deadline time.Duration
}

// DeliverySource is the layer that sent a delivery, for the duplicate counters alone. Empty: not known.
type DeliverySource string

// The sources of deliveries.
const (
	SourceClientRetry DeliverySource = "client"
	SourceRedelivery  DeliverySource = "redelivery"
)

// OnBusy decides about a turn that comes while another reply of its conversation is running. Empty is OnBusyReject.
type OnBusy string

// The ways to treat a busy conversation.
const (
	OnBusyReject    OnBusy = "reject"
	OnBusyEnqueue   OnBusy = "enqueue"
	OnBusyInterrupt OnBusy = "interrupt"
	OnBusySupersede OnBusy = "supersede"
)

// OnDisconnect decides when the last follower leaves. Empty is OnDisconnectContinue.
type OnDisconnect string

// What happens when the last follower leaves.
const (
	OnDisconnectContinue OnDisconnect = "continue"
	OnDisconnectCancel   OnDisconnect = "cancel"
)

// OnAmbiguous decides about a call whose outcome is unknown and can't be asked for. Empty is OnAmbiguousAbandon.
type OnAmbiguous string

// The policies for an unknown outcome.
const (
	OnAmbiguousAbandon OnAmbiguous = "abandon"
	OnAmbiguousRetry   OnAmbiguous = "retry"
	OnAmbiguousHold    OnAmbiguous = "hold"
)

// OnPartial decides about a reply that was cut after its first delta. Empty is OnPartialDiscard.
type OnPartial string

// The policies for a partial reply.
const (
	OnPartialDiscard  OnPartial = "discard"
	OnPartialContinue OnPartial = "continue"
)

// DeliveryResult says what a delivery was.
type DeliveryResult string

// The results of a delivery.
const (
	ResultNew      DeliveryResult = "new"      // the first of its turn
	ResultAttached DeliveryResult = "attached" // a repeat, while the reply is running
	ResultReplayed DeliveryResult = "replayed" // a repeat, after the reply ended; nothing was tried
	ResultRetried  DeliveryResult = "retried"  // a repeat that made a new attempt
	ResultQueued   DeliveryResult = "queued"   // the first or a repeat of a turn that waits in line
)

// Normalise brings a delivery's input into the form that is hashed and stored: NUL, which Postgres can't hold in text,
// is dropped from every string. Normalising twice is normalising once.
func (in Input) Normalise() Input {
	in.Content, in.Options = normaliseContent(in.Content), in.Options.normalise()
	return in
}

func (o Options) normalise() Options {
	o.Model, o.System = dropNUL(o.Model), dropNUL(o.System)
	o.StopSequences = mapStrings(o.StopSequences, dropNUL)
	if len(o.Tools) > 0 {
		tools := make([]Tool, len(o.Tools))
		for i, t := range o.Tools {
			tools[i] = Tool{dropNUL(t.Name), dropNUL(t.Description), dropNUL(t.InputSchemaJSON)}
		}
		o.Tools = tools
	}
	return o
}

func normaliseContent(content []Block) []Block {
	out := make([]Block, len(content))
	for i, b := range content {
		switch b := b.(type) {
		case Text:
			out[i] = Text{Text: dropNUL(b.Text)}
		case Image:
			b.MediaType, b.URL = dropNUL(b.MediaType), dropNUL(b.URL)
			out[i] = b
		case Document:
			b.MediaType, b.Title, b.URL = dropNUL(b.MediaType), dropNUL(b.Title), dropNUL(b.URL)
			out[i] = b
		case ToolResult:
			b.ToolUseID, b.Content = dropNUL(b.ToolUseID), normaliseContent(b.Content)
			out[i] = b
		default:
			out[i] = b
		}
	}
	return out
}

func mapStrings(in []string, f func(string) string) []string {
	if len(in) == 0 {
		return nil
	}
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = f(s)
	}
	return out
}

func dropNUL(s string) string {
	if strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\x00", "")
}

// maxDeadline bounds what a client may ask for: a day is longer than any model's total limit.
const maxDeadline = 24 * time.Hour

// validate checks a normalised delivery. It names the field at fault and never quotes what stands in it.
func (d Delivery) validate(maxContent int) error {
	in := d.Input
	if in.Turn.IsZero() {
		return invalid("input.turn_id", "must be a UUID other than the nil one; mint it once, before the first send")
	}
	if in.ParentSet && in.Parent == in.Turn.Row() {
		return invalid("input.parent_id", "is the turn itself; name what is above it, or root")
	}
	if size := SizeOf(in.Content); size > maxContent {
		return &Error{Code: CodeContentTooLarge, Field: "input.content",
			Problem: fmt.Sprintf("is %d bytes and the limit is %d; send less", size, maxContent),
			Meta:    map[string]string{"size": fmt.Sprint(size), "limit": fmt.Sprint(maxContent)}}
	}
	if IsBlank(in.Content) {
		return &Error{Code: CodeContentEmpty, Field: "input.content", Problem: "holds nothing but blanks; send a block with text"}
	}
	if err := validateBlocks(in.Content); err != nil {
		return err
	}
	if err := in.Options.validateTools("input.options"); err != nil {
		return err
	}
	if d.DisconnectGrace < 0 || d.DisconnectGrace > maxDeadline {
		return invalid("input.disconnect_grace", fmt.Sprintf("must be between 0 and %s", maxDeadline))
	}
	if d.Deadline < 0 || d.Deadline > maxDeadline {
		return invalid("input.deadline", fmt.Sprintf("must be between 0 and %s", maxDeadline))
	}
	return nil
}

// ValidateContent checks the blocks of a user turn that comes from elsewhere than a client. Blank ones pass: they are left out
// of what goes to a provider.
func ValidateContent(content []Block) error { return validateBlocks(content) }

func validateBlocks(content []Block) error {
	for i, b := range content {
		field := fmt.Sprintf("input.content[%d]", i)
		switch b := b.(type) {
		case Text:
			if !utf8.ValidString(b.Text) {
				return invalid(field+".text", "is not valid UTF-8")
			}
		case ToolResult:
			if err := b.validate(field); err != nil {
				return err
			}
		case Image:
			if err := b.validate(field + ".image"); err != nil {
				return err
			}
		case Document:
			if err := b.validate(field + ".document"); err != nil {
				return err
			}
		default:
			return invalid(field, "this kind of block stands only in replies")
		}
	}
	return nil
}

// validate checks a tool result. One without content is allowed: a tool can come to nothing.
func (b ToolResult) validate(field string) error {
	if b.ToolUseID == "" {
		return invalid(field+".tool_use_id", "must name the call that is answered")
	}
	for i, inner := range b.Content {
		at := fmt.Sprintf("%s.content[%d]", field, i)
		switch inner := inner.(type) {
		case Text:
			if !utf8.ValidString(inner.Text) {
				return invalid(at+".text", "is not valid UTF-8")
			}
		case Image:
			if err := inner.validate(at + ".image"); err != nil {
				return err
			}
		default:
			return invalid(at, "only text and images can stand in a tool result")
		}
	}
	return nil
}
