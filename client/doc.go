// Package client sends user turns to turnd and reads their replies, over links that fail.
//
// A turn has one identity, its turn_id. Client mints it before anything leaves the process, writes a Record of the turn,
// and only then sends. From there on every repeat, whatever the reason for it, carries the same id and the same input,
// so that the server answers it with the one reply that the turn has. A repeat costs nothing unless the last attempt
// failed in a way that another may cure.
//
// Send returns a Stream; ranging over its Events sends the turn and follows its reply. A stream that ends without a
// terminal event was lost, even if it ended in good order: Events connects again with a cursor and goes on where it was.
// What the caller gets is the log of the reply without gaps and without repeats, so that deltas can be printed as they
// come. There is one exception: after an event of kind restarted another reply takes the place of the one shown so far,
// and what was shown has to be taken back, unless the event says that it continues.
//
// Leaving is not stopping. A caller that breaks out of the loop or cancels its context only stops listening; the reply
// goes on, and Resume finds it again, also in a later process, as long as the RecordStore outlives this one. Cancel stops
// it; Regenerate makes another in its place, and Select goes back to an earlier one. A repeat of these three changes
// nothing, so they too are made again where their answer was lost.
//
// This package is the only one that tries again. Dial therefore switches off the retries of gRPC and takes no retry
// policy from name resolution; whoever brings a connection of its own must see to that, or tries multiply. What remains
// in gRPC is to send once more what certainly never left, which repeats nothing. Tries are bounded by
// Options.MaxReconnects in a row without progress, with backoff and full jitter between them, and the delay that the
// server asks for is always kept to.
package client
