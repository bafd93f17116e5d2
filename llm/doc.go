// Package llm is turnd's side towards model providers: it reads which models there are and who serves them, and sends
// each call to the adapter that speaks the endpoint's wire. A Router is a turns.Generator.
//
// It makes one physical call for one Generate and says what became of it. Whether to try again is not decided here.
//
// A Config comes from a models file (Load), from bare keys (FromKeys), or is the demo (Demo). What surprises: a models
// file takes all keys that are documented for it, but a model with more than one entry in its route is refused, since
// nothing falls back to a second one yet. A key is never written in the file; the file names an environment variable or
// another file, and both are read once, at the start.
package llm
