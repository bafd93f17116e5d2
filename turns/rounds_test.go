package turns

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALoopThatStandsStillIsNamedOnceNoOutageExplainsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{set: Settings{Lease: 20 * time.Second, Sweep: 5 * time.Second}}
		require.NoError(t, s.Stuck(), "before Run there are no loops")
		renew := s.rounds.noted(leaseRounds, func(context.Context) {})
		s.rounds.note(checkpointRounds)
		time.Sleep(79 * time.Second)
		require.NoError(t, s.Stuck(), "four leases are not over")
		renew(t.Context())
		time.Sleep(time.Second)
		require.EqualError(t, s.Stuck(), "the loop of checkpoints has not come round for 1m20s")
		s.rounds.note(checkpointRounds)
		require.NoError(t, s.Stuck())
	})
}

func TestALoopMayBeAwayForAMinuteWhateverTheSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{set: Settings{Lease: time.Second, Sweep: time.Second}}
		s.rounds.note(sweepRounds)
		time.Sleep(time.Minute - 1)
		require.NoError(t, s.Stuck())
		time.Sleep(1)
		require.ErrorContains(t, s.Stuck(), "sweeps")
	})
}
