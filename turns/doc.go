// Package turns is the domain of turnd: user turns, the replies to them, and the rules by which a reply is claimed,
// made, kept and found again. It owns its ports (Store, Generator, Logs, Spool) and knows no database, wire or vendor.
//
// # Why a turn is not a function call
//
// A model call is slow, costs money, and is sent again by everybody: the user who taps twice, the phone that died, the
// queue that redelivers, the worker that restarts. A timeout is not a cancellation: the provider went on, finished and
// billed. So a turn has an identity, minted by its client, and one row at most stands for its live reply. That row is
// the claim. It is committed before any money is spent, and whoever comes second finds it.
//
// # One turn, start to end
//
// Submit normalises and hashes the input and looks how things stand, in one read. A known turn with the same hash is
// attached to its running reply or answered with its finished one, and nothing else happens; with another hash it is
// refused. A new turn has its request built from the path above it and is claimed: reply, user turn, ledger row and the
// conversation's new leaf are one commit, which is a compare-and-set on the conversation's version. Whoever loses it
// looks again.
//
// The worker that won makes the reply under its own context, so that leaving is not stopping. Each physical call has a
// row in the ledger before it leaves. What comes back grows a log in memory, which followers read; a tick stores the
// tails of all running logs in one statement and learns from its answer which replies were lost or must stop. At the
// end content, usage and ledger are one commit, and only then are followers told.
//
// # What the database decides and what a clock may decide
//
// Where two workers could disagree, a constraint or a guarded write decides. The guard of every write of a reply is:
// this id, in flight, this epoch, this owner. A write whose guard fails changes nothing. A commit that got no answer is
// never assumed to stand or to be lost: the row is read again by the id that was minted for it.
//
// Leases are one row a worker. A worker is buried, by a guarded update on the database's clock, before any of its
// claims is touched, and the dead stay dead. This worker's own clock decides only that it holds back: it sends nothing
// when its lease may have run out, and it condemns nobody until it has itself been in touch for a whole lease.
//
// # What becomes of a failed call
//
// Decide is the only place where that is decided, and it is pure. Another call follows by itself only where the last
// one is known to have left nothing behind, within a budget that is kept in the store and holds over all attempts and
// workers of a turn. An unknown outcome is an answer of its own: the reply is abandoned as ambiguous, its slot is free,
// and the client's next delivery is the deliberate retry.
//
// # Stop, again, another
//
// Cancel marks the generation, so that nothing of it starts any more, and asks the owner, which ends the reply with the
// exact partial; a silent owner's reply is ended for it after a second, a buried one's at once. Regenerate is a
// compare-and-set on the turn's generation, Select one on the conversation's version. A worker that finds its reply ended
// from outside revives it while it streams, salvages it once it is whole, or settles what it knows of it, once; the
// indexes decide whether the slot is free.
//
// # States
//
// Transitions is the table of all that may become of a reply. In short:
//
//	claim -> in_flight -> complete -> abandoned(superseded) -> complete again, by select
//	                   -> abandoned(reason), by its owner, or from outside once the owner is buried or asked to stop
//	                   -> in_flight under the next epoch, by another worker, once the owner is buried and that is free or safe
//
// Held and replace stand in the table, and the stores' constraints allow for them; nothing makes them yet.
//
// # What a failover may lose
//
// A standby that had not received the last commits takes acknowledged rows away. A reply's worker finds no row at its next
// write and claims it again, under the same id and the next epoch; if the slot is taken by then, what it made is kept as an
// abandoned reply. A follower's cursor that names a reply which is nowhere is answered from the start of the one that is.
//
// # What surprises
//
// An abandoned reply may be shorter than what its followers saw, by what its dead worker had not yet stored; it says
// its length. Replies are addressed in bytes: a block's start takes 1, its text takes its UTF-8 bytes, its end takes 1.
// A claim is not torn off when its caller leaves: Submit goes on for some seconds without it.
package turns
