package wire

import (
	"fmt"

	"github.com/turnd/turnd/turns"
)

// perBlock and perRequest are what the JSON of a request takes around a block, and around all of them, at most, besides what
// is said in them.
const (
	perBlock   = 256
	perRequest = 4 << 10
)

// place is where a block stands: in which message, at which index, and inside a result at which of its content.
type place struct {
	message int
	block   int
	inner   int
	depth   int
}

// inside is the place of an index below this one.
func (p place) inside(i int) place {
	if p.depth == 0 {
		p.block = i
	} else {
		p.inner = i
	}
	p.depth++
	return p
}

// before reports whether a place comes before another, or is it.
func (p place) before(q place) bool {
	if p.message != q.message {
		return p.message < q.message
	}
	if p.block != q.block {
		return p.block < q.block
	}
	return p.inner <= q.inner
}

// field is the place as the client that sent it knows it.
func (p place) field(b turns.Block) string {
	at := fmt.Sprintf("input.content[%d]", p.block)
	if p.depth > 1 {
		at += fmt.Sprintf(".content[%d]", p.inner)
	}
	if _, ok := b.(turns.Document); ok {
		return at + ".document"
	}
	return at + ".image"
}

// found is a piece that the endpoint takes, and where it stands.
type found struct {
	block turns.Block
	at    place
}

// makeRoom decides which media the request has room for, the newest first: text goes before all of them. What the newest
// message has must fit whole.
func (h *healer) makeRoom(p turns.Prompt) error {
	rules := h.takes.Media
	var all []found
	for i, m := range p.Messages {
		all = h.found(all, m.Content, place{message: i})
	}
	if len(all) == 0 {
		return nil
	}
	pieces, room := 0, rules.MaxBody-h.textSize(p)
	for i := len(all) - 1; i >= 0; i-- {
		f := all[i]
		pieces, room = pieces+1, room-sentSize(f.block)-perBlock
		crowded, heavy := rules.MaxPieces > 0 && pieces > rules.MaxPieces, rules.MaxBody > 0 && room < 0
		switch {
		case !crowded && !heavy:
		case f.at.message < h.newest:
			h.full, h.hasFull = f.at, true
			return nil
		case crowded:
			return invalidMedia(f, fmt.Sprintf("is one of more than %d images and documents, which is as many as this model's endpoint takes in a request; send fewer", rules.MaxPieces))
		default:
			return invalidMedia(f, fmt.Sprintf("makes the request larger than the %d bytes that this model's endpoint takes; send less", rules.MaxBody))
		}
	}
	return nil
}

// found appends the media that the endpoint takes, in their order.
func (h *healer) found(all []found, content []turns.Block, at place) []found {
	for i, b := range content {
		at := at.inside(i)
		if r, ok := b.(turns.ToolResult); ok {
			all = h.found(all, r.Content, at)
		} else if isMedia(b) && h.takes.Media.problem(b) == "" && !h.goesAsText(b) {
			all = append(all, found{b, at})
		}
	}
	return all
}

func (h *healer) goesAsText(b turns.Block) bool {
	d, ok := b.(turns.Document)
	return ok && h.takes.Media.asText(d)
}

// media is an image or a document as it goes out: itself, its text, or words in its place.
func (h *healer) media(b turns.Block, at place) (turns.Block, error) {
	problem := h.takes.Media.problem(b)
	switch {
	case problem != "" && at.message == h.newest:
		return nil, invalidMedia(found{b, at}, problem)
	case problem != "":
		h.healed.Count(turns.HealedMedia)
		return LeftOut(b, whyNotTaken), nil
	case h.goesAsText(b):
		return turns.Text{Text: TextOfDocument(b.(turns.Document))}, nil
	case h.hasFull && at.before(h.full):
		h.healed.Count(turns.HealedMedia)
		return LeftOut(b, whyNoRoom), nil
	}
	return b, nil
}

func invalidMedia(f found, problem string) *turns.Error {
	return &turns.Error{Code: turns.CodeInvalidField, Field: f.at.field(f.block), Problem: problem}
}

// textSize is what a request takes without its media, in bytes, rather too much than too little.
func (h *healer) textSize(p turns.Prompt) int {
	size := perRequest + jsonSize(p.Options.System)
	for _, t := range p.Options.Tools {
		size += jsonSize(t.Description) + jsonSize(t.InputSchemaJSON) + perBlock
	}
	for _, m := range p.Messages {
		size += h.contentSize(m.Content)
	}
	return size
}

func (h *healer) contentSize(content []turns.Block) (size int) {
	for _, b := range content {
		size += perBlock
		switch b := b.(type) {
		case turns.Text:
			size += jsonSize(b.Text) + len(b.Seal)
		case turns.Refusal:
			size += jsonSize(b.Text) + len(b.Seal)
		case turns.Thinking:
			size += jsonSize(b.Text) + len(b.Seal)
		case turns.ToolUse:
			size += jsonSize(b.InputJSON) + len(b.Seal)
		case turns.Opaque:
			size += len(b.Seal)
		case turns.ToolResult:
			size += h.contentSize(b.Content)
		case turns.Document:
			if h.goesAsText(b) {
				size += jsonSize(string(b.Data))
			}
		}
	}
	return size
}

// jsonSize is the length of a text as a JSON string without its quotes.
func jsonSize(s string) int {
	size := len(s)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t':
			size++
		case c < 0x20:
			size += 5
		case c == 0xE2 && len(s)-i >= 3 && s[i+1] == 0x80 && s[i+2]&0xFE == 0xA8:
			size += 3 // U+2028 and U+2029 are escaped
		case c >= 0xF8:
			size += 2 // no UTF-8: U+FFFD takes three bytes
		}
	}
	return size
}

// Built is a request of a body and the history that is in it. A body larger than what the endpoint takes is refused;
// limit 0 is any size.
func Built(route turns.Route, body any, builderVersion, limit int, history History) (turns.Request, error) {
	encoded, err := Encode(body)
	if err != nil {
		return turns.Request{}, err
	}
	if limit > 0 && len(encoded) > limit {
		return turns.Request{}, &turns.Error{Code: turns.CodePromptTooLarge, Field: "input.content",
			Problem: fmt.Sprintf("makes a request of %d bytes, and this model's endpoint takes %d; send less", len(encoded), limit),
			Meta:    map[string]string{"size": fmt.Sprint(len(encoded)), "limit": fmt.Sprint(limit)}}
	}
	request := turns.NewRequest(route, encoded, builderVersion)
	request.Healed = history.Healed
	return request, nil
}
