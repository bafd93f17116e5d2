// Package tenanttest asks every method of the wire about ids that are another tenant's, and about ids that nobody has.
// Nothing crosses tenants (P13): both must be answered alike, byte for byte.
//
// The methods are found by reflection over the wire's own descriptors, and so are the fields of their requests that name
// something. A method without a question, and a field that no question sets, is an error: it has not been thought of.
//
// The package knows the wire alone, so that servers in the test's own process and servers in others are asked the same.
package tenanttest
