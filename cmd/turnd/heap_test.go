package main

import (
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCollectorTakesTheHeapToBeAtLeastItsFloor(t *testing.T) {
	nextAt := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NextGC
	}
	for name, c := range map[string]struct {
		gogc  string
		limit int64
		held  bool
	}{
		"by default":         {"", math.MaxInt64, true},
		"GOGC is set":        {"50", math.MaxInt64, false},
		"room for it":        {"", 512 << 20, true},
		"a small GOMEMLIMIT": {"", 511 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := nextAt()
			release := holdFloor(c.gogc, c.limit)
			held := nextAt()
			release()
			require.Equal(t, c.held, held >= before+heapFloor, "%d after %d", held, before)
		})
	}
}
