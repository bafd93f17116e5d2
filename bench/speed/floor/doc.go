// Package floor is the bare minimum that a turn can cost: what is left of the service when everything it promises is taken
// away but one thing. A relay passes a provider's reply on and keeps nothing; commits keep a turn and serve nobody; a lookup
// reads one row by its key.
//
// A floor is as fast as we know how to make it with the same tools (grpc-go, net/http, pgx) and does honestly what it says:
// the reply's text is decoded and encoded, the database writes through to its disk. What the service costs above its floors is
// what its promises cost.
package floor
