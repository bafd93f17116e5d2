package tenanttest

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// IDs are names of what one tenant has, or of what nobody has.
type IDs struct {
	Conversation, Turn, Reply string
	// Tokens are page tokens by the name of the method that gave them, such as "TurnService.ListTurns".
	Tokens map[string]string
}

// tokenID is the size of an id in a page token. A token ends with one or two.
const tokenID = 16

// Missing are ids in the place of these that nobody has. Page tokens keep their form, and point to where nothing is.
func (i IDs) Missing() (IDs, error) {
	none := IDs{Conversation: uuid.NewString(), Turn: uuid.NewString(), Reply: uuid.NewString(), Tokens: map[string]string{}}
	for method, token := range i.Tokens {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || len(raw) <= tokenID {
			return none, fmt.Errorf("the page token of %s is not of the form that this package knows", method)
		}
		for end := len(raw); end > tokenID; end -= tokenID {
			id := uuid.New()
			if at := raw[end-tokenID : end]; uuid.UUID(at) != uuid.Nil { // a nil one names nothing
				copy(at, id[:])
			}
		}
		none.Tokens[method] = base64.RawURLEncoding.EncodeToString(raw)
	}
	return none, nil
}

// In are these ids with another conversation's in the place of their own.
func (i IDs) In(conversation string) IDs {
	i.Conversation = conversation
	return i
}

// as puts the ids of another set in the place of these wherever they stand in a text. Both are of the same length.
func (i IDs) as(other IDs, text string) string {
	pairs := []string{i.Conversation, other.Conversation, i.Turn, other.Turn, i.Reply, other.Reply}
	for method, token := range i.Tokens {
		pairs = append(pairs, token, other.Tokens[method])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
