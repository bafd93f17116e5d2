// Package group lets callers share what is written for them: a statement, and with it a commit, serves those who wait.
//
// A caller that finds a writer free goes at once and alone; none waits for company. Those who come while all writers are busy
// gather, and the next writer that is free takes them together. Each caller is answered for its own item, and an answer is
// given as soon as it is known, whatever becomes of the others.
//
// Items of one key are never written at the same time: they follow each other in the order in which they came. Between tenants
// turns are taken, so that one with thousands waiting keeps no other's item out of the next statement.
//
// What is written belongs to no single caller. One that gives up leaves the others their statement; only when the last one has
// given up is the statement's context cancelled. Writers are goroutines that end when nobody waits, and that Close waits for.
package group
