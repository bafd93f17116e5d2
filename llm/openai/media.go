package openai

import (
	"encoding/json"
	"strings"

	"github.com/turnd/turnd/llm"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// maxBody is the vendor's limit of a request with images and files, maxPieces that of their number.
const (
	maxBody   = 50_000_000
	maxPieces = 500
)

// Images are the media types of images that the vendor takes, on all its wires.
func Images() []string { return []string{"image/png", "image/jpeg", "image/webp", "image/gif"} }

// MaxBody and MaxPieces bound a request on all wires of the vendor.
func MaxBody() (bytes, pieces int) { return maxBody, maxPieces }

// takes is what goes out: images, and of documents PDF to the vendor alone; servers that are compatible know no files. A
// refusal goes back as one to the vendor, whose word it is.
func (c *Client) takes() wire.Takes {
	t := wire.Takes{Media: wire.Media{Images: Images(), ImageURLs: true, MaxPieces: maxPieces, MaxBody: maxBody}}
	if c.dialect == llm.DialectVendor {
		t.Media.Documents = []string{"application/pdf"}
		t.Mine = isOurs
	}
	return t
}

// part is a part of a message's content, where it is not text alone.
type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
	File     *file     `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type file struct {
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
}

// content is the content of a message: null, one text, or parts.
type content struct {
	text  *string
	parts []part
}

// MarshalJSON implements json.Marshaler.
func (c content) MarshalJSON() ([]byte, error) {
	if c.parts != nil {
		return wire.Encode(c.parts)
	}
	if c.text == nil {
		return json.RawMessage("null"), nil
	}
	return wire.Encode(*c.text)
}

func textContent(text string) content { return content{text: &text} }

// partsOf are blocks as parts.
func partsOf(blocks []turns.Block) (out []part) {
	for _, b := range blocks {
		switch b := b.(type) {
		case turns.Text:
			out = append(out, part{Type: "text", Text: b.Text})
		case turns.Image:
			out = append(out, part{Type: "image_url", ImageURL: &imageURL{imageAt(b)}})
		case turns.Document:
			out = append(out, part{Type: "file", File: &file{Filename(b), wire.DataURL(b.MediaType, b.Data)}})
		}
	}
	return out
}

func imageAt(b turns.Image) string {
	if b.URL != "" {
		return b.URL
	}
	return wire.DataURL(b.MediaType, b.Data)
}

// Filename is the name under which a document goes out: its title with the ending that the vendor reads its type from.
func Filename(d turns.Document) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, strings.TrimSpace(wire.CleanText(d.Title)))
	if name == "" {
		name = "document"
	}
	if !strings.HasSuffix(strings.ToLower(name), ".pdf") {
		name += ".pdf"
	}
	return name
}
