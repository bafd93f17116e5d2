package interactions

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// takes is what goes back to a model: thoughts are its own alone, what a text cites is the vendor's.
func takes(model string) wire.Takes {
	return wire.Takes{
		Media: gemini.MediaOf(model), Mine: sealer.IsJSON, Objects: true,
		Thought: sealer.OfModel(model),
	}
}

// piece is a part of the content of a step, or of a result that is more than text.
type piece struct {
	Type        string          `json:"type"`
	Text        string          `json:"text,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Data        []byte          `json:"data,omitempty"`
	URI         string          `json:"uri,omitempty"`
	MIMEType    string          `json:"mime_type,omitempty"`
}

func textOf(s string) piece { return piece{Type: "text", Text: s} }

// pieceOf is a block as a part of content; ok is false for one that is a step of its own.
func pieceOf(b turns.Block) (p piece, ok bool) {
	switch b := b.(type) {
	case turns.Text:
		cited, _ := sealer.OpenAny(b.Seal)
		return piece{Type: "text", Text: b.Text, Annotations: json.RawMessage(cited)}, true
	case turns.Image:
		return piece{Type: "image", Data: b.Data, URI: b.URL, MIMEType: b.MediaType}, true
	case turns.Document:
		return piece{Type: "document", Data: b.Data, URI: b.URL, MIMEType: b.MediaType}, true
	}
	return p, false
}

// resultOf is the result of a call: a text, or content where it is more than that.
func resultOf(b turns.ToolResult) any {
	text := true
	var pieces []piece
	for _, inner := range b.Content {
		p, _ := pieceOf(inner)
		pieces, text = append(pieces, p), text && p.Type == "text"
	}
	if text {
		return wire.TextOf(b.Content)
	}
	return pieces
}
