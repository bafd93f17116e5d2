package interactions

import "github.com/turnd/turnd/llm/wire"

// The fields of an event, and of its delta, that mean something.
var (
	scanned      = []string{"event_type", "event_id", "index", "delta", "interaction", "step", "usage", "error", "metadata"}
	scannedDelta = []string{"type", "text", "arguments", "annotations", "content", "signature"}
)

// forget makes ev an empty event. Its room for text is used again.
func (ev *event) forget() {
	d := &ev.Delta
	*ev = event{Delta: delta{Text: d.Text[:0], Content: words{Text: d.Content.Text[:0]}, Arguments: d.Arguments[:0]}}
}

// scan reads an event that adds to the text of a step, which nearly all are, as parse would. False leaves it to parse.
func (ev *event) scan(data []byte) bool {
	ev.forget()
	s := wire.NewScanner(data)
	return s.Object(scanned, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&ev.Type, "step.delta")
		case 1:
			return s.Plain(&ev.ID)
		case 2:
			return s.Int(&ev.Index)
		case 3:
			return ev.Delta.scan(&s)
		}
		return false
	}) && s.End() && ev.Type != "" && ev.Delta.Type != ""
}

func (d *delta) scan(s *wire.Scanner) bool {
	return s.Object(scannedDelta, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&d.Type, "text", "arguments_delta")
		case 1:
			return s.Text(&d.Text)
		case 2:
			return s.Text(&d.Arguments)
		}
		return false
	})
}
