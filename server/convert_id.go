package server

import (
	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// parseID reads an id in either case. The nil UUID is refused: in the domain it means "none".
func parseID(field, s string) (uuid.UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil || id == uuid.Nil {
		return uuid.Nil, invalidField(field, "must be a UUID other than the nil one")
	}
	return id, nil
}

// parseOptionalID is parseID where an empty string means "none".
func parseOptionalID(field, s string) (uuid.UUID, error) {
	if s == "" {
		return uuid.Nil, nil
	}
	return parseID(field, s)
}

// idText is an id on the wire: lower case, empty for none.
func idText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// parseConversation reads the conversation_id of a request.
func parseConversation(s string) (turns.ConversationID, error) {
	id, err := parseID("conversation_id", s)
	return turns.ConversationID{UUID: id}, err
}

// parseTarget reads a oneof of turn_id and reply_id, one of which is set.
func parseTarget(turnID, replyID string) (turns.RowID, error) {
	field, s := "turn_id", turnID
	if replyID != "" {
		field, s = "reply_id", replyID
	}
	id, err := parseID(field, s)
	return turns.RowID{UUID: id}, err
}

// parseTurn reads the turn_id of a request that names nothing else.
func parseTurn(s string) (turns.TurnID, error) {
	id, err := parseID("turn_id", s)
	return turns.TurnID{UUID: id}, err
}

// parseReply reads the reply_id of a request that names nothing else.
func parseReply(s string) (turns.ReplyID, error) {
	id, err := parseID("reply_id", s)
	return turns.ReplyID{UUID: id}, err
}

// parseReplyOf reads a reply's id with its conversation's.
func parseReplyOf(req interface {
	GetConversationId() string
	GetReplyId() string
}) (turns.ConversationID, turns.ReplyID, error) {
	conversation, err := parseConversation(req.GetConversationId())
	if err != nil {
		return conversation, turns.ReplyID{}, err
	}
	reply, err := parseReply(req.GetReplyId())
	return conversation, reply, err
}

func invalidField(field, problem string) *turns.Error {
	return &turns.Error{Code: turns.CodeInvalidField, Field: field, Problem: problem}
}
