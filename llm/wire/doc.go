// Package wire is what the adapters of all providers share: one HTTP request, its stream, its limits and its failures.
//
// What it guarantees for a call:
//
//   - One request is written to the wire, never a second. Go's client resends a POST by itself in several cases (a reused
//     connection that dies while an Idempotency-Key is set, a refused HTTP/2 stream, a redirect); here it can't, because
//     the request has no way to be read twice and no client that follows redirects is in the path. The writes are counted
//     all the same, and a second one is an error.
//   - The reply is whole only when the vendor's terminal event was read. Reading stops there, whatever the server still
//     has to say, and the connection is released on every exit.
//   - Text comes out as whole runes without NUL, cut where the provider cut it or a little later.
//   - A failure says how far the call got. "Not sent" means that not one byte of the request left this process on its
//     connection; what can't be told apart from sent counts as sent.
//   - No text of a request, a reply or a key is in any error.
//
// What surprises: a deadline of the caller's context counts as a limit (Timeout), a cancel of it as ClassCancelled. The
// silence limit runs only while a read waits, so a slow consumer doesn't look like a silent provider. Any byte counts as
// life, pings and comments too; the total limit ends a stream that has only those.
package wire
