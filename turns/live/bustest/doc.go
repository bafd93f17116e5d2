// Package bustest is the contract of a live.Bus. Run plays it with several hubs over one store in memory: whatever the bus
// loses, repeats, reorders or makes up, each follower on each hub hears exactly the log, and its end once.
//
// What surprises: the checks run in real time, since a bus is a network. They wait for what has to happen, and never for
// time to pass.
package bustest
