// Package oidc finds out who calls by the bearer tokens of an OpenID Connect issuer: JWTs, signed by one of the keys that the
// issuer publishes.
//
// A token is taken for good by three checks in turn. Its form: one compact JWS, of an asymmetric algorithm on the list, no
// larger than auth.MaxToken. Its claims: the issuer, the audience and the times; what they rule out is refused before anything
// is computed or fetched. Its signature, by a key that the issuer publishes now. Only then are a tenant, a subject and
// scopes read from it.
//
// The keys are read by one goroutine, at start and before each lifetime is over, so a key that the issuer takes back stops being good
// within a lifetime. A token that names a key nobody has seen makes it read at once, at most each 10 seconds whatever
// arrives. What can't be read changes nothing: the keys read before go on for the grace. After that, and before the
// first read, callers hear that who they are can't be found out now, and never that they are nobody.
package oidc
