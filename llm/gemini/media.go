package gemini

import (
	"strings"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// MediaOf are the vendor's rules, on all its wires: at most 3,600 images, 100 MB in all and 50 MB for a PDF. The models of
// two generations ago fetch no URLs.
func MediaOf(model string) wire.Media {
	m := wire.Media{
		Images: []string{"image/png", "image/jpeg", "image/webp"}, Documents: []string{"application/pdf"},
		MaxDocument: 50_000_000, MaxPieces: 3600, MaxBody: maxBody,
	}
	if !isOf(model, "gemini-1", "gemini-2.0") {
		m.ImageURLs = true
		m.DocumentURLs = []string{"application/pdf", "text/plain", "text/html", "text/csv", "text/xml", "application/json"}
	}
	return m
}

const maxBody = 100_000_000

// isOf reports whether a model is of one of some families, by the beginnings of their names.
func isOf(model string, families ...string) bool {
	_, name := nameOf(model)
	for _, f := range families {
		if strings.HasPrefix(name, f) {
			return true
		}
	}
	return false
}

// takes is what goes back to a model: what it signed, and no other.
func takes(model string) wire.Takes {
	mine := sealer.OfModel(model)
	return wire.Takes{Media: MediaOf(model), Mine: mine, Thought: mine, Objects: true}
}

// blob is data inline, fileData where the vendor fetches it.
type blob struct {
	MIMEType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type fileData struct {
	MIMEType string `json:"mimeType"`
	FileURI  string `json:"fileUri"`
}

// mediaPart is an image or a document as a part.
func mediaPart(mediaType string, data []byte, url string) part {
	if url != "" {
		return part{FileData: &fileData{mediaType, url}}
	}
	return part{InlineData: &blob{mediaType, data}}
}

// resultOf is the result of a call, and the parts that follow all results of the message. Only the newer models take images
// inside of a result, and no URLs there; else an image follows, behind words that say where it belongs.
func resultOf(b turns.ToolResult, name, model string) (functionResponse, []part) {
	r := functionResponse{ID: b.ToolUseID, Name: name, Response: responseOf(b)}
	var behind []part
	for _, inner := range b.Content {
		image, ok := inner.(turns.Image)
		if !ok {
			continue
		}
		p := mediaPart(image.MediaType, image.Data, image.URL)
		if image.URL == "" && !isOf(model, "gemini-1", "gemini-2") {
			r.Parts = append(r.Parts, p)
			continue
		}
		words := "[Image of the result of " + name + ", call " + b.ToolUseID + ":]"
		behind = append(behind, part{Text: &words}, p)
	}
	return r, behind
}
