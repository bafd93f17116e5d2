// Package live keeps the logs of running replies in memory and streams replies to followers.
//
// A follower reads from one of three places, and from the outside they are one: the owner's log, when this worker runs
// the reply; a mirror, fed from the store's checkpoints once a tick, when another worker does; the stored content, once
// the reply has ended. In each it reads by offset and at its own pace. There is no queue for a follower, so a slow one
// costs nothing and gets bigger pieces.
//
// There is one mirror a reply, not one a follower, and all mirrors of a worker are fed by one read a tick.
package live
