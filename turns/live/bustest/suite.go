package bustest

import (
	"testing"

	"github.com/turnd/turnd/turns/live"
)

// Opener makes the buses of n workers that hear each other. They live as long as the test.
type Opener func(t testing.TB, n int) []live.Bus

// promise is one sentence of the contract and the check of it.
type promise struct {
	name  string
	check func(t *testing.T, open Opener)
}

// Run checks the whole contract.
func Run(t *testing.T, open Opener) {
	for _, p := range []promise{
		{"every follower hears exactly the log and one end", followersHearTheLog},
		{"hints alone bring news", hintsBringNews},
		{"pieces come before they are stored", piecesComeEarly},
		{"a stop reaches the owner", stopsReachTheOwner},
		{"lost, repeated, reordered and false hints change nothing", faultsChangeNothing},
		{"without any hint there is progress", progressWithoutHints},
		{"a bus says when it is connected and ends with its context", connectionsAreTold},
	} {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.check(t, open)
		})
	}
}
