// Package server is turnd's front: one port on which gRPC is served beside HTTP/1.1, and a second one for operators.
//
// By HTTP come Connect, gRPC-Web and REST, which are translated to calls of gRPC (transcoding.go), and event streams, which are
// calls of FollowReply in another form (events.go). All pass the same gate (interceptor.go).
//
// It turns wire messages into domain values and back, and decides nothing else. Three things have one place each: errors
// become statuses in errors.go, events of a reply become messages in stream.go, and a connection's protocol is told by
// its first four bytes in split.go.
//
// Every status that leaves here carries an ErrorInfo with a reason and advice, also for bytes that are no message, for
// panics and for unknown methods. What surprises: a message beyond the receive limit is refused by grpc-go before any
// code of this package runs, so that call fails with RESOURCE_EXHAUSTED and no details.
package server
