package turns

import (
	"context"
	"time"
)

// Spool is the port to a place on this machine for endings that the store has not taken, so that paid output survives this
// process. What is kept is written later through the same guarded writes as ever: keeping it decides nothing.
type Spool interface {
	// Keep stores an ending durably before it returns. One that is kept already, by reply and epoch, is replaced.
	Keep(ctx context.Context, e Spooled) error
	// Drop removes what was kept for a reply and epoch. It is no error if nothing is there.
	Drop(ctx context.Context, f Fence) error
	// Kept reads at most limit of the endings that are kept, the oldest first. What can't be read, because it is damaged or
	// of another version, is set aside and said, and keeps no other from being read.
	Kept(ctx context.Context, limit int) ([]Spooled, error)
}

// Spooled is an ending with what is needed to write it without the run that made it.
type Spooled struct {
	Tenant       Tenant
	Conversation ConversationID
	Turn         TurnID
	// First is where Ending.Content begins: what lies before it was stored and is read back.
	First  uint32
	Ending Ending
	// KeptAt is when it was kept, by this machine's clock; for people alone.
	KeptAt time.Time
}
