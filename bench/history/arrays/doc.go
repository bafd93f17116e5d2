// Package arrays says whether a provider would take a request, from its bytes alone.
//
// It is the second opinion on what the service builds, so it shares no line with it: it imports the standard library and
// nothing else, declares each wire once more, and knows no history, only bodies. Where a vendor's rule is known to be lax it
// is held to its strict form: roles alternate though a vendor would merge them, since servers that only speak its wire do
// not; a call is answered in the very next message though another may find it later.
//
// Validate lists what is wrong as violations, each of a Kind that a program can compare. It reads untrusted bytes and never
// panics. Planted is a table of errors, each planted into a body that is valid: a validator that lets one of them through
// has lost a rule.
package arrays
