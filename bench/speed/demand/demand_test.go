package demand

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// full is a worker that has both cores of a machine to the last: 200 turns a second of 10 ms each.
var full = Model{Machine{Cores: 2, Syncs: 1000, Idle: 0.02}, Point{Workers: 1, PerSecond: 200, Worker: 0.003, Store: 0.005, Other: 0.002, Syncs: 1}}

func TestMoreWorkersOnFullCoresGiveNoMore(t *testing.T) {
	require.InDelta(t, 1, full.Busy(full.One), 1e-9)
	require.Equal(t, "cores", full.At(1).What)
	require.InDelta(t, 200, full.At(1).PerSecond, 1e-9)
	require.Equal(t, "cores", full.At(3).What)
	require.InDelta(t, 196, full.At(3).PerSecond, 1e-9) // two idle workers' share less: 0.04 cores of 10 ms
}

func TestAWorkerThatLeavesCoresIdleIsHelpedByAnother(t *testing.T) {
	m := full
	m.One.PerSecond, m.One.Spare = 60, 0.6 // 30 % of the cores; somebody else has 10 %
	require.Equal(t, Bound{"workers", 60}, m.At(1))
	require.Equal(t, Bound{"workers", 120}, m.At(2))
	// Four would be 240, and the cores end before, less three idle workers.
	require.Equal(t, "cores", m.At(4).What)
	require.InDelta(t, (2*Saturated*0.9-0.06)/0.01, m.At(4).PerSecond, 1e-9)
}

func TestCoresThatOthersHaveAreNotToBeHad(t *testing.T) {
	m := full
	m.One.PerSecond = 60 // and nothing is spare
	require.Equal(t, "cores", m.At(2).What)
	require.InDelta(t, 58, m.At(2).PerSecond, 1e-9)
}

func TestADiskThatIsSlowStopsAllOfThem(t *testing.T) {
	m := full
	m.One.PerSecond, m.One.Spare, m.One.Syncs, m.Syncs = 60, 0.7, 2, 200
	require.Equal(t, Bound{"disk", 100}, m.At(3))
	m.One.Syncs = 0 // nothing is known of it
	require.NotEqual(t, "disk", m.At(3).What)
}

func TestTheErrorIsThatOfThePointThatWasMeasured(t *testing.T) {
	require.InDelta(t, 0, full.Error(full.One), 1e-9)
	require.InDelta(t, 0.1, full.Error(Point{Workers: 3, PerSecond: 196 / 1.1}), 1e-9)
	require.InDelta(t, -0.2, full.Error(Point{Workers: 3, PerSecond: 196 / 0.8}), 1e-9)
}

func TestTheScarcestPartOfAClusterDecides(t *testing.T) {
	c := Cluster{Workers: 10, WorkerCores: 8, Stores: 1, StoreCores: 16, Syncs: 1e6}
	got := full.Extrapolate(c)
	require.Equal(t, "cores of stores", got.What)
	require.InDelta(t, 16*Saturated/0.005, got.PerSecond, 1e-9)
	c.Stores = 4
	require.InDelta(t, 4*16*Saturated/0.005, full.Extrapolate(c).PerSecond, 1e-9)
	c.Stores = 100
	got = full.Extrapolate(c)
	require.Equal(t, "cores of workers", got.What)
	require.InDelta(t, (80*Saturated-0.2)/0.003, got.PerSecond, 1e-9)
	c.Syncs = 10
	require.Equal(t, Bound{"disks of stores", 1000}, full.Extrapolate(c))
}
