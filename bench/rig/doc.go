// Package rig is the equipment of the checks: programs started as processes, a scripted provider steered over HTTP, and
// links, which are TCP proxies that fail on request.
//
// Nothing in it knows the service but by its command line and its ready file. What it starts must be ended by whoever
// started it.
package rig
