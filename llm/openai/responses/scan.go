package responses

import "github.com/turnd/turnd/llm/wire"

// scanned are the fields of an event that mean something.
var scanned = []string{"type", "sequence_number", "output_index", "delta", "response", "part", "item", "code", "error"}

// forget makes ev an empty event. Its room for text is used again.
func (ev *event) forget() { *ev = event{Delta: ev.Delta[:0]} }

// scan reads an event that adds to a text, which nearly all are, as parse would. False leaves it to parse.
func (ev *event) scan(data []byte) bool {
	ev.forget()
	s := wire.NewScanner(data)
	return s.Object(scanned, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&ev.Type, "response.output_text.delta", "response.refusal.delta", "response.reasoning_summary_text.delta",
				"response.reasoning_text.delta", "response.function_call_arguments.delta")
		case 1:
			ev.Number.known = true
			return s.Int(&ev.Number.n)
		case 2:
			return s.Int(&ev.Index)
		case 3:
			return s.Text(&ev.Delta)
		}
		return false
	}) && s.End() && ev.Type != ""
}
