// Package sqlite keeps turns in one SQLite file, for one worker process.
//
// There is one writing connection and a small pool of reading ones. Every write of the port is one immediate
// transaction, so all that it reads is locked before it looks; a transaction that has begun is carried through whatever
// its context says, since it takes no longer than one fsync and an answer given up on would be an unknown outcome. In
// WAL mode readers see the last commit and wait for nobody.
//
// Open takes an exclusive lock on a file beside the database, which the kernel drops when the process dies. That refuses
// a second process, and it proves that every worker in the file is gone: so Open buries them all, and what they left in
// flight can be swept at once instead of after their leases.
//
// What surprises: the clock. SQLite runs inside this process and its own functions count milliseconds, so each
// transaction takes the process's clock once, in microseconds, after its lock is had. It is the only clock that this
// store ever uses.
package sqlite
