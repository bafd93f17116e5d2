// Package webhook tells whether a message that came by HTTP is a vendor's own, in the form of Standard Webhooks as OpenAI
// sends it: an id, a time and a signature, HMAC-SHA256 over `id.timestamp.body`, with a secret that both sides know.
//
// A message counts for five minutes before and after its time, and a Memory knows the ids of those that were taken within
// that window, so that one that is recorded and sent again does nothing.
//
// What surprises: a message that is sent again by its vendor has the id of the first try with a new time, and is taken only
// if the first was not.
package webhook
