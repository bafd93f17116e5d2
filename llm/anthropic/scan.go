package anthropic

import "github.com/turnd/turnd/llm/wire"

// The fields of an event, and of its delta, that mean something in the events of text.
var (
	scanned      = []string{"type", "index", "delta", "message", "content_block", "usage", "error"}
	scannedDelta = []string{"type", "text", "thinking", "partial_json", "signature", "citation", "stop_reason", "stop_details"}
)

// scan reads an event that adds to a block's text, which nearly all are, as parse would. False leaves it to parse.
func (ev *event) scan(data []byte) bool {
	ev.forget()
	s := wire.NewScanner(data)
	return s.Object(scanned, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&ev.Type, "content_block_delta")
		case 1:
			return s.Int(&ev.Index)
		case 2:
			return ev.Delta.scan(&s)
		}
		return false
	}) && s.End() && ev.Type != "" && ev.Delta.Type != ""
}

func (d *delta) scan(s *wire.Scanner) bool {
	return s.Object(scannedDelta, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&d.Type, "text_delta", "thinking_delta", "input_json_delta")
		case 1:
			return s.Text(&d.Text)
		case 2:
			return s.Text(&d.Thinking)
		case 3:
			return s.Text(&d.PartialJSON)
		}
		return false
	})
}
