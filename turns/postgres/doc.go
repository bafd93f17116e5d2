// Package postgres keeps turns in Postgres 15 or later, for any number of workers.
//
// Every write is one statement that commits by itself, under READ COMMITTED. A condition counts as a guard only on a row
// that the statement locks; candidates for a sweep are read without locks and won one by one. Statements take arrays, so
// that one item and a hundred are the same statement, and lock rows in key order, so that two batches can't wait for
// each other. Time in a guard is clock_timestamp(), which is the time after a wait for a lock and not before.
//
// Errors are told apart by SQLSTATE and by what RETURNING gave, never by the name of a constraint, which a distributed
// Postgres leaves out.
//
// What surprises: a connection that is lost, or a context that ends, once a write was sent leaves its outcome unknown
// (turns.ErrUnknownOutcome), and the write may still land after a read has missed it. The worker's lease has a
// connection to itself, and checkpoints and endings have two, so that neither a pool full of claims and reads nor slow
// endings can cost a worker its lease.
package postgres
