package server

import (
	"fmt"
	"strings"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// conversationFromWire reads what a client may set of a conversation.
func conversationFromWire(c *turnsv1.Conversation, limit int) (turns.Conversation, error) {
	if err := refuseUnknown(c.ProtoReflect(), "conversation"); err != nil {
		return turns.Conversation{}, err
	}
	id, err := parseOptionalID("conversation.conversation_id", c.GetConversationId())
	if err != nil {
		return turns.Conversation{}, err
	}
	defaults, err := optionsFromWire("conversation.defaults", c.GetDefaults())
	if err != nil {
		return turns.Conversation{}, err
	}
	if err := within("conversation.defaults", optionsSize(defaults), min(limit, turns.MaxDefaults)); err != nil {
		return turns.Conversation{}, err
	}
	if err := checkLabels("conversation.labels", c.GetLabels()); err != nil {
		return turns.Conversation{}, err
	}
	return turns.Conversation{ID: turns.ConversationID{UUID: id}, Title: c.GetTitle(), Defaults: defaults, Labels: c.GetLabels()}, nil
}

func checkLabels(field string, labels map[string]string) error {
	if len(labels) > turns.MaxLabels {
		return invalidField(field, fmt.Sprintf("has more than %d labels", turns.MaxLabels))
	}
	for k, v := range labels {
		if len(k) == 0 || len(k) > turns.MaxLabelKey || len(v) > turns.MaxLabelValue {
			return invalidField(field, fmt.Sprintf("has a key that is not of 1 to %d bytes, or a value beyond %d", turns.MaxLabelKey, turns.MaxLabelValue))
		}
		if strings.Contains(k+v, "\x00") {
			return invalidField(field, "holds a NUL character, which no label can")
		}
	}
	return nil
}

func conversationToWire(c turns.Conversation) *turnsv1.Conversation {
	return &turnsv1.Conversation{
		ConversationId:  idText(c.ID.UUID),
		Title:           c.Title,
		Defaults:        optionsToWire(c.Defaults),
		Labels:          c.Labels,
		LeafId:          idText(c.Leaf.UUID),
		RunningReplyId:  idText(c.Running.UUID),
		Version:         c.Version,
		DefaultsVersion: c.DefaultsVersion,
		CreateTime:      timeToWire(c.CreateTime),
		UpdateTime:      timeToWire(c.UpdateTime),
	}
}
