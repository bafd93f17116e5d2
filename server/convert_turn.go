package server

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// turnToWire writes a user turn as it is stored; one that was read without content has none.
func turnToWire(t turns.UserTurn) *turnsv1.UserTurn {
	return &turnsv1.UserTurn{
		ConversationId: idText(t.Conversation.UUID),
		TurnId:         idText(t.ID.UUID),
		ParentId:       idText(t.Parent.UUID),
		Seq:            t.Seq,
		Content:        contentToWire(t.Content),
		Options:        optionsToWire(t.Options),
		CreateTime:     timeToWire(t.CreateTime),
		Generation:     t.Generation,
	}
}

// turnHeadToWire writes a user turn without its content.
func turnHeadToWire(t turns.UserTurn) *turnsv1.UserTurn {
	t.Content = nil
	return turnToWire(t)
}

// timeToWire writes a time; the zero time is unset.
func timeToWire(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
