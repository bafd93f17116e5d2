// Package demand foretells throughput from what a turn demands of each resource, by the laws of closed systems: no resource can give
// more than it has, so turns a second are at most what it has to what a turn takes of it, and the scarcest one decides.
//
// A model is made of one measured point and has nothing fitted to others, so that the others test it.
package demand

import "fmt"

// Saturated is the share of free cores that a load can get: the rest is lost to moments at which one core waits.
const Saturated = 0.9

// Point is a load that was measured.
type Point struct {
	Workers   int     `json:"workers"`
	PerSecond float64 `json:"turns_per_second"`
	// CPU is in seconds a turn: of the workers together, of the store, and of whatever else is on the same cores.
	Worker float64 `json:"worker_cpu_s"`
	Store  float64 `json:"store_cpu_s"`
	Other  float64 `json:"other_cpu_s"`
	// Syncs is how often a turn has the store's disk flush its log; turns that commit together share one.
	Syncs float64 `json:"syncs"`
	// Spare is the share of the machine's cores that nobody used meanwhile, neither the load nor anything else.
	Spare float64 `json:"spare"`
}

// CPU is what a turn takes in all, in seconds.
func (p Point) CPU() float64 { return p.Worker + p.Store + p.Other }

// Machine is what the load is on.
type Machine struct {
	Cores float64 `json:"cores"`
	// Syncs is how often a second the disk can flush, one after the other.
	Syncs float64 `json:"syncs_per_second"`
	// Idle is how many cores a worker takes that has nothing to do.
	Idle float64 `json:"idle_worker_cores"`
}

// Model foretells turns a second from the point of one worker.
type Model struct {
	Machine
	One Point `json:"one"`
}

// Busy is the share of the cores that a point took.
func (m Model) Busy(p Point) float64 { return p.PerSecond * p.CPU() / m.Cores }

// usable is the share of the cores that a load can get: what one worker got, and what was spare beside it.
func (m Model) usable() float64 {
	busy := m.Busy(m.One)
	return max(busy, Saturated*(busy+m.One.Spare))
}

// Bound is how many turns a second a resource allows.
type Bound struct {
	What      string  `json:"what"`
	PerSecond float64 `json:"turns_per_second"`
}

// Bounds are those of so many workers on the machine: its cores, its disk, and the workers themselves, of which each gives what one
// gave if that was stopped by nothing else.
func (m Model) Bounds(workers int) []Bound {
	bounds := []Bound{{"cores", (m.Cores*m.usable() - float64(workers-1)*m.Idle) / m.One.CPU()}}
	if m.One.Syncs > 0 {
		bounds = append(bounds, Bound{"disk", m.Syncs / m.One.Syncs})
	}
	return append(bounds, Bound{"workers", float64(workers) * m.One.PerSecond})
}

// At is what is foretold of so many workers, and by what it is stopped. Where one worker had all the cores, they are named and not
// the worker.
func (m Model) At(workers int) Bound { return least(m.Bounds(workers)) }

func least(bounds []Bound) Bound {
	found := bounds[0]
	for _, b := range bounds[1:] {
		if b.PerSecond < found.PerSecond*(1-1e-9) {
			found = b
		}
	}
	return found
}

// Error is by how much what was foretold misses what was measured, as a share of the latter.
func (m Model) Error(measured Point) float64 {
	return m.At(measured.Workers).PerSecond/measured.PerSecond - 1
}

// Cluster is a house that nobody measured: workers and stores on machines of their own, and whatever else on others. Turns are spread
// over stores by their conversation, so that each turn is of one store.
type Cluster struct {
	Workers, WorkerCores, Stores, StoreCores int
	// Syncs is how often a second the disk of one store can flush.
	Syncs float64
}

func (c Cluster) String() string {
	return fmt.Sprintf("%d workers of %d cores, %d stores of %d cores", c.Workers, c.WorkerCores, c.Stores, c.StoreCores)
}

// Extrapolate is what a cluster would give if a turn demanded there what it demands of one worker here.
func (m Model) Extrapolate(c Cluster) Bound {
	bounds := []Bound{
		{"cores of workers", (float64(c.Workers*c.WorkerCores)*Saturated - float64(c.Workers)*m.Idle) / m.One.Worker},
		{"cores of stores", float64(c.Stores*c.StoreCores) * Saturated / m.One.Store},
	}
	if m.One.Syncs > 0 {
		bounds = append(bounds, Bound{"disks of stores", float64(c.Stores) * c.Syncs / m.One.Syncs})
	}
	return least(bounds)
}
