package turns

// Builder makes the bytes of one request from a prompt: the part of a Generator that BuildRequest needs.
type Builder interface {
	Build(route Route, prompt Prompt) (Request, error)
}

// Question is all that a request is built from.
type Question struct {
	// Path is the history above the turn, newest row first, as ReadPath gives it.
	Path []PathRow
	// Turn is what is asked; its id and content are looked at.
	Turn    UserTurn
	Options Options
	// Defaults of version DefaultsVersion are what Options were filled up from at last.
	Defaults        Options
	DefaultsVersion int32
	Route           Route
	// Pinned is where the window starts; an earlier attempt of the same generation started there. Zero: it is to be found.
	Pinned RowID
	// Partial is the log of an earlier attempt that is to be gone on with; nil is none.
	Partial []Piece
	// Origin goes with the request where the wire has a place for it.
	Origin Origin
}

// Built is a request and how it came about.
type Built struct {
	Request Request
	// Start is the row that the window starts at: a user turn of the path, or the turn itself.
	Start RowID
	// Tokens is what the prompt takes by the measure that its window was cut by.
	Tokens int64
}

// BuildRequest makes the request of a question. It is pure: the same question gives the same bytes on any worker, and
// nothing is read or written. Fails with CodePromptTooLarge if the turn does not fit into the window together with the calls
// that it answers, and with the errors of Build. That its results answer open calls is checked before.
func BuildRequest(b Builder, q Question) (Built, error) {
	w, err := buildWindow(q)
	if err != nil {
		return Built{}, err
	}
	w.prompt.Messages = append(w.prompt.Messages, goOnFrom(q.Partial)...)
	w.prompt.Origin = q.Origin
	request, err := b.Build(q.Route, w.prompt)
	if err != nil {
		return Built{}, err
	}
	request.Mixed = w.prompt.mixed()
	return Built{Request: request, Start: w.start, Tokens: w.tokens}, nil
}
