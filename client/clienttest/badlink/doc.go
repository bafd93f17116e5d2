// Package badlink plays scripted bad networks to clients of turnd, in whichever language they are written.
//
// A Scenario says what the client does, how each of its calls goes wrong, and what has to come of it in the end. All of them
// are in scenarios.json. A Stage plays one: it speaks gRPC and Connect on one port and reports which calls came. A client in
// Go opens stages itself; one in another language is given them by a Control, which the program in serve runs.
package badlink
