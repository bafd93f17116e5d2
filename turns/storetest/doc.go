// Package storetest holds a turns.Store to its contract.
//
// Run checks every sentence of the port that promises something, each by a subtest named after it, on a fresh store.
// RunModel drives a store with random operations beside a model that knows no SQL. RunConcurrent lets many goroutines at
// few conversations and then checks what must hold in the rows. An engine passes all three or it is no engine; where a
// test must see or plant rows that the port has no method for, it uses plain SQL that both engines understand.
//
// Faults decorates a Store for the tests of what stands on it: it fails, holds up, or loses the answer of a chosen call.
package storetest
