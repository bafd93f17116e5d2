package turns

import (
	"context"
	"errors"
	"time"
)

// Spool is the port to a place on this machine for endings that the store has not taken, so that paid output survives this
// process. What is kept is written later through the same guarded writes as ever: keeping it decides nothing.
type Spool interface {
	// Keep stores an ending durably before it returns. One that is kept already, by reply and epoch, is replaced.
	Keep(ctx context.Context, e Spooled) error
	// Drop removes what was kept for a reply and epoch. It is no error if nothing is there.
	Drop(ctx context.Context, f Fence) error
	// Kept reads at most limit of the endings that are kept, the oldest first, without those of replies that are to be passed
	// over. What can't be read, because it is damaged or of another version, is set aside and said, and keeps no other from
	// being read.
	Kept(ctx context.Context, limit int, pass func(ReplyID) bool) ([]Spooled, error)
}

// Spooled is an ending with what is needed to write it without the run that made it, also where the store has lost the
// reply's row.
type Spooled struct {
	// Claim is what the reply was claimed by, without its user turn, and Reply the row as its run knew it.
	Claim Claim
	Reply Reply
	// Call is the last call's row in the ledger, which Ending.Call closes if that is set; Past are those before it.
	Call NewCall
	Past []SpooledCall
	// Unclosed are those outcomes of Past that the store has not taken.
	Unclosed []CallOutcome
	// Reviver is the owner of a revival of the reply whose outcome is unknown; zero if there was none.
	Reviver WorkerID
	// First is where Ending.Content begins: what lies before it was stored and is read back.
	First  uint32
	Ending Ending
	// KeptAt is when it was kept, by this machine's clock; for people alone.
	KeptAt time.Time
}

// SpooledCall is a call with its outcome.
type SpooledCall struct {
	Call    NewCall
	Outcome CallOutcome
}

// NoSpool is a Spool where there is none: it keeps nothing, and says so.
type NoSpool struct{}

// errNoSpool is what NoSpool fails with.
var errNoSpool = errors.New("there is no spool to keep an ending in")

// Keep implements Spool. It always fails.
func (NoSpool) Keep(context.Context, Spooled) error { return errNoSpool }

// Drop implements Spool.
func (NoSpool) Drop(context.Context, Fence) error { return nil }

// Kept implements Spool. There is never anything.
func (NoSpool) Kept(context.Context, int, func(ReplyID) bool) ([]Spooled, error) { return nil, nil }
