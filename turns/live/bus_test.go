package live_test

import (
	"testing"

	"github.com/turnd/turnd/turns/live"
	"github.com/turnd/turnd/turns/live/bustest"
)

func TestTheMemoryBusKeepsTheContract(t *testing.T) {
	for name, pieceBytes := range map[string]int{"hints alone": 0, "with pieces": 1 << 10} {
		t.Run(name, func(t *testing.T) {
			bustest.Run(t, func(_ testing.TB, n int) []live.Bus {
				memory := live.NewMemory(pieceBytes)
				buses := make([]live.Bus, n)
				for i := range buses {
					buses[i] = memory.End()
				}
				return buses
			})
		})
	}
}
