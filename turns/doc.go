// Package turns is the domain of turnd: user turns, the replies to them, and the rules by which a reply is claimed,
// made, kept and found again. It owns its ports (Store, Generator, Logs) and knows no database, wire or vendor.
package turns
