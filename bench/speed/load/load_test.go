package load

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestATurnThatFailsFailsTheRun(t *testing.T) {
	broken := errors.New("no reply")
	var n atomic.Int64
	clients := each(4, func(int) client {
		return func(context.Context) (none time.Time, err error) {
			if n.Add(1) == 100 {
				return none, broken
			}
			return none, nil
		}
	})
	_, err := run(t.Context(), Spec{Warm: time.Hour, Window: time.Hour}, clients)
	require.ErrorIs(t, err, broken)
}

func TestATurnThatWasBegunIsFinishedAndDoesNotCountPastTheWindow(t *testing.T) {
	var begun, finished atomic.Int64
	clients := each(8, func(int) client {
		return func(context.Context) (time.Time, error) {
			begun.Add(1)
			runtime.Gosched()
			finished.Add(1)
			return time.Now(), nil
		}
	})
	r, err := run(t.Context(), Spec{Window: time.Millisecond}, clients)
	require.NoError(t, err)
	require.Equal(t, begun.Load(), finished.Load())
	require.LessOrEqual(t, int64(r.Turns), finished.Load())
}

func TestAReplyOfAnotherLengthIsAnError(t *testing.T) {
	require.NoError(t, sized(1024, 1024))
	require.ErrorContains(t, sized(1008, 1024), "1008 bytes instead of 1024")
}

func TestTheCPUOfAProcessHasItsChildrensInIt(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	before, err := cpuOf(map[string]int{"self": os.Getpid()})
	require.NoError(t, err)
	// Until it has used some CPU itself.
	child := exec.CommandContext(t.Context(), "sh", "-c", `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`)
	require.NoError(t, child.Run())
	after, err := cpuOf(map[string]int{"self": os.Getpid()})
	require.NoError(t, err)
	used := child.ProcessState.UserTime() + child.ProcessState.SystemTime()
	require.Greater(t, used, 2*tick)
	require.GreaterOrEqual(t, after["self"]-before["self"], used-2*tick)
}

func TestTheMedianIsInTheMiddle(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	require.InDelta(t, 3, quantile([]time.Duration{ms(5), ms(1), ms(3)}, 0.5), 0)
	require.Zero(t, quantile(nil, 0.5))
}

func TestALoadEndsWhenItsTurnsAreDone(t *testing.T) {
	var n atomic.Int64
	clients := each(4, func(int) client {
		return func(context.Context) (time.Time, error) { return time.Now(), errOf(n.Add(1) > 12) }
	})
	_, err := run(t.Context(), Spec{Window: time.Hour, Most: 3}, clients)
	require.NoError(t, err)
	require.Equal(t, int64(12), n.Load())
}

func errOf(late bool) error {
	if late {
		return errors.New("a turn too many")
	}
	return nil
}

func TestACopyHasTheSameIDInBothLanguages(t *testing.T) {
	of := uuid.MustParse("8a9554ef-90e2-40ec-b354-0c918e852de1")
	// As Postgres says: SELECT md5('8a9554ef-90e2-40ec-b354-0c918e852de1' || ':' || 7)::uuid.
	require.Equal(t, uuid.MustParse("b32b4423-6b72-e0d4-2d02-1b2a854426db"), CopyID(of, 7))
}
