package responses

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/openai"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// media are the vendor's rules on this wire, where a file may be a URL too.
var media = mediaOf()

func mediaOf() wire.Media {
	body, pieces := openai.MaxBody()
	pdf := []string{"application/pdf"}
	return wire.Media{Images: openai.Images(), Documents: pdf, ImageURLs: true, DocumentURLs: pdf, MaxPieces: pieces, MaxBody: body}
}

// takes is what goes back to a model: reasoning is its own alone, all else is the vendor's.
func takes(model string) wire.Takes {
	return wire.Takes{
		Media: media, Mine: isOurs,
		Thought: sealer.OfModel(model),
	}
}

// contentPart is a part of a message or of a call's output, where it is not text alone.
type contentPart struct {
	Type        string          `json:"type"`
	Text        string          `json:"text,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Refusal     string          `json:"refusal,omitempty"`
	ImageURL    string          `json:"image_url,omitempty"`
	Detail      string          `json:"detail,omitempty"`
	Filename    string          `json:"filename,omitempty"`
	FileData    string          `json:"file_data,omitempty"`
	FileURL     string          `json:"file_url,omitempty"`
}

// inputParts are blocks of a user, or of a result, as parts.
func inputParts(blocks []turns.Block) (out []contentPart) {
	for _, b := range blocks {
		switch b := b.(type) {
		case turns.Text:
			out = append(out, contentPart{Type: "input_text", Text: b.Text})
		case turns.Image:
			p := contentPart{Type: "input_image", ImageURL: b.URL, Detail: "auto"}
			if b.URL == "" {
				p.ImageURL = wire.DataURL(b.MediaType, b.Data)
			}
			out = append(out, p)
		case turns.Document:
			p := contentPart{Type: "input_file", FileURL: b.URL}
			if b.URL == "" {
				p.Filename, p.FileData = openai.Filename(b), wire.DataURL(b.MediaType, b.Data)
			}
			out = append(out, p)
		}
	}
	return out
}
