package turns

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAHintThatComesBeforeItsRunIsKeptForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{runs: map[ReplyID]*run{}, set: Settings{Lease: time.Second}}
		early, never := ReplyID{newID()}, ReplyID{newID()}
		s.Nudge(early)
		s.Nudge(never)
		require.Empty(t, s.nudges.take())
		s.register(&run{reply: Reply{ID: early}})
		require.Equal(t, []ReplyID{early}, slices.Collect(maps.Keys(s.nudges.take())))
		time.Sleep(2 * time.Second)
		s.forgetEarly()
		require.Empty(t, s.nudges.early, "one for a run that never began is let go")
		for range 2 * maxEarly {
			s.Nudge(ReplyID{newID()})
		}
		require.Len(t, s.nudges.early, maxEarly)
	})
}
