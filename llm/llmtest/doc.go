// Package llmtest holds the one suite that every adapter of a provider passes (Run), and what it is made of: a reader of
// calls that checks the order of what they yield (Collect), the wires' own words (Voice), and a provider that a test plays
// by hand, byte for byte (Play, Pipe). The scripted provider plays the rest.
package llmtest
