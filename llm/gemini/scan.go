package gemini

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/wire"
)

// The fields of a chunk, of its candidate, of that one's content and of its part that mean something.
var (
	scanned          = []string{"responseId", "candidates", "usageMetadata", "promptFeedback", "error"}
	scannedCandidate = []string{"index", "content", "finishReason"}
	scannedContent   = []string{"parts"}
	scannedPart      = []string{"text", "thought", "thoughtSignature", "functionCall"}
)

// forget makes c an empty chunk. Its room for text is used again.
func (c *chunk) forget() {
	candidates := c.Candidates[:0]
	if cap(candidates) > 0 {
		first := &candidates[:1][0]
		parts := first.Content.Parts[:0]
		if cap(parts) > 0 {
			parts[:1][0] = saidPart{Text: parts[:1][0].Text[:0]}
		}
		*first = candidate{}
		first.Content.Parts = parts
	}
	*c = chunk{Candidates: candidates}
}

// scan reads a chunk that adds to a text of the response id, which most are, as encoding/json would. False leaves it to that.
func (c *chunk) scan(data []byte, id string) bool {
	c.forget()
	s := wire.NewScanner(data)
	return s.Object(scanned, func(field int) bool {
		switch field {
		case 0:
			return s.Word(&c.ResponseID, id)
		case 1:
			return wire.Only(&s, &c.Candidates, func(first *candidate) bool { return first.scan(&s) })
		case 2:
			counts, ok := s.Raw()
			return ok && json.Unmarshal(counts, &c.UsageMetadata) == nil
		}
		return s.Null()
	}) && s.End()
}

func (c *candidate) scan(s *wire.Scanner) bool {
	return s.Object(scannedCandidate, func(field int) bool {
		switch field {
		case 0:
			return s.Int(&c.Index)
		case 1:
			return s.Object(scannedContent, func(int) bool {
				return wire.Only(s, &c.Content.Parts, func(first *saidPart) bool { return first.scan(s) })
			})
		}
		return s.Null()
	})
}

func (p *saidPart) scan(s *wire.Scanner) bool {
	return s.Object(scannedPart, func(field int) bool {
		switch field {
		case 0:
			return s.Text(&p.Text)
		case 1:
			return s.Bool(&p.Thought)
		}
		return s.Null()
	})
}
