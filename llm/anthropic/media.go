package anthropic

import (
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// media are the vendor's rules: an image of at most 5 MB in base64, at most 100 images and documents, 32 MB in all.
// Documents are PDF, or text in a form of its own whatever kind of text it is; only a PDF may be a URL.
var media = wire.Media{
	Images: []string{"image/jpeg", "image/png", "image/gif", "image/webp"},
	Documents: []string{"application/pdf", "text/plain", "text/markdown", "text/html", "text/csv", "text/xml",
		"application/json"},
	ImageURLs:    true,
	DocumentURLs: []string{"application/pdf"},
	MaxImage:     5 << 20,
	MaxPieces:    100,
	MaxBody:      32_000_000,
}

// takes is what goes back to a model: thoughts are its own alone, all else is the vendor's.
func takes(model string) wire.Takes {
	return wire.Takes{
		Media: media, Mine: sealer.IsJSON, Whole: answered, Objects: true,
		Thought: sealer.OfModel(model),
	}
}

// source is where an image or a document is. Data is base64, but for text, which is itself.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      any    `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
}

func sourceOf(mediaType string, data []byte, url string) *source {
	if url != "" {
		return &source{Type: "url", URL: url}
	}
	return &source{Type: "base64", MediaType: mediaType, Data: data}
}

func image(b turns.Image) block {
	return block{Type: "image", Source: sourceOf(b.MediaType, b.Data, b.URL)}
}

func document(b turns.Document) block {
	out := block{Type: "document", Source: sourceOf(b.MediaType, b.Data, b.URL), Title: wire.CleanText(b.Title)}
	if b.IsText() {
		out.Source = &source{Type: "text", MediaType: "text/plain", Data: wire.CleanText(string(b.Data))}
	}
	return out
}
