package openai

import "github.com/turnd/turnd/llm/wire"

// The fields of a chunk, of its choice and of that one's delta that mean something.
var (
	scanned       = []string{"id", "choices", "usage", "error"}
	scannedChoice = []string{"index", "delta", "finish_reason", "error"}
	scannedDelta  = []string{"content", "refusal", "reasoning_content", "reasoning", "tool_calls"}
)

// forget makes c an empty chunk. Its room for text is used again.
func (c *chunk) forget() {
	choices := c.Choices[:0]
	if cap(choices) > 0 {
		d := &choices[:1][0].Delta
		choices[:1][0] = choice{Delta: delta{
			Content: d.Content[:0], Refusal: d.Refusal[:0],
			Reasoning: looseText{d.Reasoning.text[:0]}, Thoughts: looseText{d.Thoughts.text[:0]},
		}}
	}
	*c = chunk{Choices: choices}
}

// scan reads a chunk that adds to a text of the response id, which nearly all are, as encoding/json would. False leaves it to
// that.
func (c *chunk) scan(data []byte, id string) bool {
	c.forget()
	s := wire.NewScanner(data)
	return s.Object(scanned, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&c.ID, id)
		case 1:
			return wire.Only(&s, &c.Choices, func(first *choice) bool { return first.scan(&s) })
		}
		return s.Null()
	}) && s.End()
}

func (c *choice) scan(s *wire.Scanner) bool {
	return s.Object(scannedChoice, func(field int) bool {
		switch field {
		case 0:
			return s.Int(&c.Index)
		case 1:
			return c.Delta.scan(s)
		}
		return s.Null()
	})
}

func (d *delta) scan(s *wire.Scanner) bool {
	return s.Object(scannedDelta, func(field int) bool {
		switch field {
		case 0:
			return s.Text(&d.Content)
		case 1:
			return s.Text(&d.Refusal)
		case 2:
			return s.Text(&d.Reasoning.text)
		case 3:
			return s.Text(&d.Thoughts.text)
		}
		return s.Null()
	})
}
