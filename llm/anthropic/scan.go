package anthropic

import "github.com/turnd/turnd/llm/wire"

// The fields of an event, of its delta and of its block that mean something.
var (
	scanned      = []string{"type", "index", "delta", "message", "content_block", "usage", "error"}
	scannedDelta = []string{"type", "text", "thinking", "partial_json", "signature", "citation", "stop_reason", "stop_details"}
	scannedBlock = []string{"type", "text", "thinking", "signature", "data", "id", "name", "input", "citations"}
)

// scan reads an event that adds to a block's text, which nearly all are, or that begins or ends it or the reply, as parse would.
// False leaves it to parse.
func (ev *event) scan(data []byte) bool {
	ev.forget()
	s := wire.NewScanner(data)
	return s.Object(scanned, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&ev.Type, "content_block_delta", "content_block_start", "content_block_stop", "message_stop")
		case 1:
			return s.Int(&ev.Index)
		case 2:
			return ev.Delta.scan(&s)
		case 4:
			return ev.ContentBlock.scan(&s)
		}
		return false
	}) && s.End() && ev.isWhole()
}

// isWhole reports whether an event that was scanned says what its type makes one expect.
func (ev *event) isWhole() bool {
	switch ev.Type {
	case "content_block_delta":
		return ev.Delta.Type != ""
	case "content_block_start":
		return ev.ContentBlock.Type != ""
	}
	return ev.Type != ""
}

func (b *startBlock) scan(s *wire.Scanner) bool {
	return s.Object(scannedBlock, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&b.Type, "text")
		case 1:
			return s.Text(&b.Text)
		}
		return false
	})
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
