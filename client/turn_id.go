package client

import "github.com/google/uuid"

// upstreamNamespace is the UUIDv5 namespace of turn ids that follow from events elsewhere. It never changes, or a
// redelivery after an update would be a second turn.
var upstreamNamespace = uuid.MustParse("2c9d1f70-7c1c-5b0e-8f0a-4c6a9b8e5d31")

// TurnIDFor derives a turn_id from the id of an event elsewhere: a message in a chat product, a webhook, an entry of a
// queue. Equal ids give equal turns, so that an event which is delivered twice is answered once. Put the name of the
// source before the id, such as "slack:Ev0123", to keep sources apart.
func TurnIDFor(upstream string) string {
	return uuid.NewSHA1(upstreamNamespace, []byte(upstream)).String()
}

// newTurnID mints the id of a turn that a person made.
func newTurnID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}
