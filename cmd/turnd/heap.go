package main

import (
	"runtime"
	"runtime/debug"
)

const (
	// heapFloor is how much the collector takes the heap to be at least. It runs when the heap has doubled, and what lives in a
	// worker that streams hundreds of turns a second is so little that it would run twenty times a second.
	heapFloor = 64 << 20
	// floorShare is the part of a memory limit that the floor may be: one of so many.
	floorShare = 8
)

// holdFloor allocates memory that counts for the collector and is never touched, so that no page of it is ever in use. An
// operator who has set GOGC has said how often it is to run, and below a small GOMEMLIMIT there is no room: then there is no
// floor, and what it gives does nothing. The floor is there until release is called.
func holdFloor(gogc string, memoryLimit int64) (release func()) {
	if gogc != "" || memoryLimit < floorShare*heapFloor {
		return func() {}
	}
	floor := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(floor) }
}

// memoryLimit is GOMEMLIMIT in bytes, as the runtime has it.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) }
