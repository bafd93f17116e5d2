package server

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// callFilterFromWire reads a filter over the ledger; none chooses everything.
func callFilterFromWire(f *turnsv1.LedgerFilter) (out turns.CallFilter, err error) {
	if f == nil {
		return out, nil
	}
	// What is left out would choose more than was asked for.
	if err := refuseUnknown(f.ProtoReflect(), "filter"); err != nil {
		return out, err
	}
	if out.Conversation.UUID, err = parseOptionalID("filter.conversation_id", f.GetConversationId()); err != nil {
		return out, err
	}
	if out.Turn.UUID, err = parseOptionalID("filter.turn_id", f.GetTurnId()); err != nil {
		return out, err
	}
	if out.From, err = timeFromWire("filter.start_time", f.GetStartTime()); err != nil {
		return out, err
	}
	if out.Before, err = timeFromWire("filter.end_time", f.GetEndTime()); err != nil {
		return out, err
	}
	out.Provider, out.Model, out.Endpoint, out.Wasted, out.Open = f.GetProvider(), f.GetModel(), f.GetEndpoint(), f.GetWasted(), f.GetOpen()
	known := false
	if out.Class, known = callClasses.domain(f.GetCallClass()); !known {
		return out, invalidField("filter.call_class", "is not known")
	}
	if out.Try, known = callTries.domain(f.GetTry()); !known {
		return out, invalidField("filter.try", "is not known")
	}
	if out.Layer = turns.Layer(f.GetLayer()); out.Layer != "" && !slices.Contains(turns.Layers(), out.Layer) {
		return out, invalidField("filter.layer", "must be first, client, redelivery, takeover or provider")
	}
	return out, nil
}

// timeFromWire reads a time; unset is zero.
func timeFromWire(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if t.CheckValid() != nil {
		return time.Time{}, invalidField(field, "must be a time")
	}
	return t.AsTime(), nil
}

func callToWire(c turns.LedgerCall) *turnsv1.ProviderCall {
	return &turnsv1.ProviderCall{
		CallId:             idText(c.ID.UUID),
		ConversationId:     idText(c.Conversation.UUID),
		ReplyId:            idText(c.Reply.UUID),
		Epoch:              c.Epoch,
		Number:             int32(c.Number),
		First:              c.First,
		Endpoint:           c.Endpoint,
		Provider:           c.Provider,
		Model:              c.Model,
		Class:              callClasses.wire(c.Class),
		Phase:              string(c.Phase),
		HttpStatus:         int32(c.HTTPStatus),
		IdempotencyKey:     c.Key,
		ProviderRequestId:  c.RequestID,
		ProviderResponseId: c.ResponseID,
		Usage:              usageToWire(c.Usage),
		WasteCause:         c.WasteCause,
		CreateTime:         timeToWire(c.CreateTime),
		EndTime:            timeToWire(c.EndTime),
		Layer:              string(c.Layer),
	}
}
