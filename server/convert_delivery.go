package server

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// previousAttemptsHeader is set by gRPC libraries that retry a call by themselves.
const previousAttemptsHeader = "grpc-previous-rpc-attempts"

// deliveryFromWire reads an arrival of a user turn. limit is the most bytes of content, and of options. The domain has the
// same limit on content; it stands here as well so that what is far too large is neither copied nor hashed. That content
// is not blank, and which of the policies are served, is the domain's to say: it is asked of every front.
func deliveryFromWire(ctx context.Context, in *turnsv1.TurnInput, cursor *turnsv1.Cursor, limit int) (turns.Delivery, error) {
	if err := refuseUnknown(in.ProtoReflect(), "input"); err != nil {
		return turns.Delivery{}, err
	}
	input, err := inputFromWire(in)
	if err != nil {
		return turns.Delivery{}, err
	}
	if err := within("input.content", turns.SizeOf(input.Content), limit); err != nil {
		return turns.Delivery{}, err
	}
	if err := within("input.options", optionsSize(input.Options), limit); err != nil {
		return turns.Delivery{}, err
	}
	d := turns.Delivery{Input: input}
	if err := policiesFromWire(&d, in); err != nil {
		return turns.Delivery{}, err
	}
	if d.Source == "" && retriedByLibrary(ctx) {
		d.Source = turns.SourceClientRetry
	}
	d.Cursor, err = cursorFromWire(cursor)
	return d, err
}

func inputFromWire(in *turnsv1.TurnInput) (turns.Input, error) {
	conversation, err := parseOptionalID("input.conversation_id", in.GetConversationId())
	if err != nil {
		return turns.Input{}, err
	}
	turn, err := parseID("input.turn_id", in.GetTurnId())
	if err != nil {
		return turns.Input{}, err
	}
	options, err := optionsFromWire("input.options", in.GetOptions())
	if err != nil {
		return turns.Input{}, err
	}
	out := turns.Input{
		Conversation: turns.ConversationID{UUID: conversation},
		Turn:         turns.TurnID{UUID: turn},
		Content:      contentFromWire(in.GetContent()),
		Options:      options,
	}
	switch p := in.GetParent().(type) {
	case *turnsv1.TurnInput_ParentId:
		parent, err := parseID("input.parent_id", p.ParentId)
		if err != nil {
			return turns.Input{}, err
		}
		out.Parent, out.ParentSet = turns.RowID{UUID: parent}, true
	case *turnsv1.TurnInput_Root:
		out.ParentSet = true
	}
	return out, nil
}

// policiesFromWire reads what concerns this delivery alone. An unknown value is refused and not taken for the default: a
// client that asks for a policy of a later version must not silently get another.
func policiesFromWire(d *turns.Delivery, in *turnsv1.TurnInput) error {
	var known [5]bool
	d.OnBusy, known[0] = onBusies.domain(in.GetOnBusy())
	d.OnDisconnect, known[1] = onDisconnects.domain(in.GetOnDisconnect())
	d.OnAmbiguous, known[2] = onAmbiguouses.domain(in.GetOnAmbiguous())
	d.OnPartial, known[3] = onPartials.domain(in.GetOnPartial())
	d.Source, known[4] = deliverySources.domain(in.GetSource())
	for i, field := range []string{"on_busy", "on_disconnect", "on_ambiguous", "on_partial", "source"} {
		if !known[i] {
			return invalidField("input."+field, "is not a value that this server knows")
		}
	}
	d.OverrideNoProgress = in.GetOverrideNoProgress()
	var err error
	if d.DisconnectGrace, err = durationFromWire("input.disconnect_grace", in.GetDisconnectGrace()); err != nil {
		return err
	}
	d.Deadline, err = durationFromWire("input.deadline", in.GetDeadline())
	return err
}

// durationFromWire reads a duration; unset is zero, which the domain takes for "as the endpoint says".
func durationFromWire(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if d.CheckValid() != nil || d.AsDuration() < 0 {
		return 0, invalidField(field, "must be a duration that is not negative")
	}
	return d.AsDuration(), nil
}

// cursorFromWire reads what the client has shown already. Whether the reply is one of the turn's is for the domain.
func cursorFromWire(c *turnsv1.Cursor) (*turns.Cursor, error) {
	if c == nil {
		return nil, nil
	}
	id, err := parseID("cursor.reply_id", c.GetReplyId())
	if err != nil {
		return nil, err
	}
	return &turns.Cursor{Reply: turns.ReplyID{UUID: id}, Offset: c.GetOffset()}, nil
}

// retriedByLibrary reports a call that a gRPC library sent again without its program's doing.
func retriedByLibrary(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	for _, v := range md.Get(previousAttemptsHeader) {
		if n, err := strconv.Atoi(v); err == nil && n > 0 {
			return true
		}
	}
	return false
}

// within refuses a size beyond a limit, with both in numbers that a client can act on.
func within(field string, size, limit int) error {
	if size <= limit {
		return nil
	}
	return &turns.Error{Code: turns.CodeContentTooLarge, Field: field,
		Problem: fmt.Sprintf("is %d bytes and the limit is %d; send less", size, limit),
		Meta:    map[string]string{"size": strconv.Itoa(size), "limit": strconv.Itoa(limit)}}
}
