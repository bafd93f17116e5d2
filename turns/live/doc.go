// Package live keeps the logs of running replies in memory and streams replies to followers, on whichever worker they ask.
//
// A follower reads from one of three places, and from the outside they are one: the owner's log, when this worker runs
// the reply; a mirror of it, when another worker does; the stored content, once the reply has ended. In each it reads by
// offset and at its own pace. There is no queue for a follower, so a slow one costs nothing and gets bigger pieces.
//
// There is one mirror a reply, not one a follower, and one loop reads the store for all mirrors of a worker. A bus between
// workers says when a read is worth while. What it carries are hints: the store has the truth, each mirror is read every
// second whatever the bus says, and each tick while the bus says nothing at all. A bus that carries pieces shows them before
// they are stored; a mirror takes them only where they fit its end and its epoch, and compares them with what is stored
// later. Terminal events come from the store alone.
//
// Logs keep their tail in memory once the rest is stored. A follower that is further back reads pages from the store.
//
// What surprises: a follower may be shown bytes that a crash of the owner loses before they are stored, as on the owner
// itself. An abandoned reply's length says how many of them count.
package live
