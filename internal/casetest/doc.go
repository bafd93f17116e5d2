// Package casetest holds, as tests alone, sequences of calls that break products of this kind, with the outcome that is
// right. Each plays through real gRPC against real servers on both engines and a scripted provider over HTTP, and
// compares what clients heard, what is stored, and what the provider counted.
package casetest
