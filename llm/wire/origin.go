package wire

import (
	"strconv"

	"github.com/google/uuid"

	"github.com/turnd/turnd/turns"
)

// The names under which an origin rides in a request's metadata.
const (
	originConversation = "turnd_conversation"
	originTurn         = "turnd_turn"
	originGeneration   = "turnd_generation"
)

// Metadata is an origin as vendors keep it with a response: text by name. It is nil for a zero origin. The conversation is
// named by its key, which is a digest and says nothing to others.
func Metadata(o turns.Origin) map[string]string {
	if o.IsZero() {
		return nil
	}
	return map[string]string{
		originConversation: o.Conversation.String(),
		originTurn:         o.Turn.String(),
		originGeneration:   strconv.Itoa(int(o.Generation)),
	}
}

// OriginOf reads what Metadata wrote; ok is false for metadata that is not ours.
func OriginOf(metadata map[string]string) (o turns.Origin, ok bool) {
	key, err1 := uuid.Parse(metadata[originConversation])
	turn, err2 := uuid.Parse(metadata[originTurn])
	generation, err3 := strconv.ParseInt(metadata[originGeneration], 10, 32)
	if err1 != nil || err2 != nil || err3 != nil || generation < 1 {
		return turns.Origin{}, false
	}
	return turns.Origin{Conversation: turns.ConversationKey(key), Turn: turns.TurnID{UUID: turn}, Generation: int32(generation)}, true
}
