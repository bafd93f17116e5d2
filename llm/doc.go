// Package llm is turnd's side towards model providers: it reads which models there are and who serves them, and sends
// each call to the adapter that speaks the endpoint's wire. A Router is a turns.Generator.
//
// It makes one physical call for one Generate and says what became of it. Whether to try again, and whom to ask then, is not
// decided here; a breaker for each model at each endpoint says only who had better not be asked now.
//
// A Config comes from a models file (Load), from bare keys (FromKeys), or is the demo (Demo). A file that loads is kept to
// the letter: what an endpoint's wire can't have is refused with its line. A key is never written in the file; the file
// names an environment variable or another file, which is read whenever the file is.
//
// What surprises: a Router's Config may be replaced at any time, and a Route that was given out before is then served as
// the new one says, or not at all. Ready is advice, and Generate holds to the breaker whether it was asked or not.
package llm
