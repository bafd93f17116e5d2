package turns

// What a model is told of a reply that broke off: the partial stands in the history as what it said, and this after it, so
// that it is no prefill, which many models refuse, and nothing pretends that the reply was whole.
const cutOffNotice = "Your reply above was cut off by a technical failure before you had finished it. " +
	"Go on exactly where it ends, without repeating any of it and without a word about the interruption."

// continuable gives a partial log as the beginning of another reply, a piece for each block, with the last one ended.
// A log with anything but text and thoughts is none: a tool call that broke off can't be gone on with.
func continuable(partial []Piece) (pieces []Piece) {
	text := false
	for _, p := range merged(partial) {
		switch p.Kind {
		case KindText:
			text = text || p.Text != ""
		case KindThinking:
		default:
			return nil
		}
		p.Ends = true
		pieces = append(pieces, p)
	}
	if !text {
		return nil
	}
	return pieces
}

// goOnFrom are the messages by which a model is asked to go on with a partial reply.
func goOnFrom(partial []Piece) []Message {
	var said []Block
	for _, p := range merged(partial) {
		if p.Kind == KindText && p.Text != "" {
			said = append(said, Text{Text: p.Text})
		}
	}
	if len(said) == 0 {
		return nil
	}
	return []Message{{Role: RoleAssistant, Content: said}, {Role: RoleUser, Content: []Block{Text{Text: cutOffNotice}}}}
}
