// Package load is the client side of the measurements: closed loops of clients, each of which sends its next turn when the
// last one is over, against a service, a floor, or a database.
//
// A load runs in a process of its own, so that its CPU is told apart from that of what it measures. It reads the CPU of the
// others itself, at the very moments at which its window opens and shuts. A turn that fails, or whose reply is not as long as it
// has to be, fails the whole run: a service that drops turns is fast.
package load
