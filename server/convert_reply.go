package server

import (
	"fmt"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// Bounds of the content of replies in one message, in bytes. FollowReply gives all of it. The total keeps an answer with
// a user turn of common size below 4 MiB, which is where gRPC clients stop reading unless they are told otherwise.
const (
	replyContentLimit = 1<<20 - 4 // a cut is made at a rune, which may go up to 3 bytes beyond
	totalContentLimit = 3 << 20
)

// replyToWire writes a reply with as much of its content as limit allows; a limit of 0 or less leaves content out.
func (s *Server) replyToWire(r turns.Reply, limit int) (*turnsv1.Reply, error) {
	out := s.replyHeadToWire(r)
	if limit <= 0 {
		out.ContentTruncated = r.Length > 0
		return out, nil
	}
	log, err := turns.LogOf(r.Content)
	if err != nil {
		return nil, fmt.Errorf("stored content of reply %s: %w", r.ID, err)
	}
	content, cut := log.Blocks(limit)
	for i, b := range content {
		if o, ok := b.(turns.Opaque); ok && o.Provider == "" {
			content[i] = turns.Opaque{Provider: r.Provider, Type: o.Type}
		}
	}
	out.Content, out.ContentTruncated = contentToWire(content), cut || log.Len() < r.Length
	return out, nil
}

// replyHeadToWire writes a reply without its content. Length still says how much there is.
func (s *Server) replyHeadToWire(r turns.Reply) *turnsv1.Reply {
	advice, _ := s.cfg.Service.Advice(r)
	out := &turnsv1.Reply{
		ConversationId:  idText(r.Conversation.UUID),
		ReplyId:         idText(r.ID.UUID),
		TurnId:          idText(r.Turn.UUID),
		Status:          statuses.wire(r.Status),
		AbandonReason:   abandonReasons.wire(r.Reason),
		Attempt:         r.Attempt,
		Generation:      r.Generation,
		Epoch:           r.Epoch,
		Length:          r.Length,
		StopReason:      stopReasons.wire(r.StopReason),
		Provider:        r.Provider,
		Model:           r.Model,
		Usage:           usageToWire(r.Usage),
		Advice:          advices.wire(advice),
		DefaultsVersion: r.DefaultsVersion,
		CreateTime:      timeToWire(r.CreateTime),
		EndTime:         timeToWire(r.EndTime),
	}
	if r.Status == turns.StatusInFlight && !r.CreateTime.IsZero() {
		// Creation plus age is the database's present, so this needs no clock of ours.
		out.LeaseExpireTime = timeToWire(r.CreateTime.Add(r.Age).Add(r.LeaseLeft))
	}
	return out
}

// repliesToWire writes all replies to a turn. The newest come first where the message's room runs out.
func (s *Server) repliesToWire(replies []turns.Reply) ([]*turnsv1.Reply, error) {
	out := make([]*turnsv1.Reply, len(replies))
	room := totalContentLimit
	for i := len(replies) - 1; i >= 0; i-- {
		r, err := s.replyToWire(replies[i], min(room, replyContentLimit))
		if err != nil {
			return nil, err
		}
		for _, b := range r.GetContent() {
			room -= len(b.GetText().GetText()) + len(b.GetThinking().GetText()) + len(b.GetToolUse().GetInputJson()) + len(b.GetRefusal().GetText())
		}
		out[i] = r
	}
	return out, nil
}

func usageToWire(u turns.Usage) *turnsv1.Usage {
	return &turnsv1.Usage{
		InputTokens:      u.Input,
		CacheReadTokens:  u.CacheRead,
		CacheWriteTokens: u.CacheWrite,
		OutputTokens:     u.Output,
		ReasoningTokens:  u.Reasoning,
		Source:           tokenSources.wire(u.Source),
		WastedTokens:     u.Wasted,
		CostMicros:       u.CostMicros,
		ProviderCalls:    u.Calls,
	}
}
