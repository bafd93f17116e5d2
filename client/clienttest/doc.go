// Package clienttest stands in for a turnd server where programs on package client are tested.
//
// A Server listens on loopback and speaks real gRPC. It stores nothing and decides nothing: each call is answered by the
// next of the answers it was given, which can play events, fail with a status as turnd would, end early in good order, or
// cut the connection. What was asked is kept for the test to look at.
package clienttest
