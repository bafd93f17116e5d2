package wire

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/turnd/turnd/turns"
)

// Media are an endpoint's rules for images and documents. The zero value takes neither.
type Media struct {
	// Images are the media types of images that it takes, Documents those of documents. A document of text that is not
	// among them goes out as text all the same.
	Images, Documents []string
	// ImageURLs says that an image may be a URL which the provider fetches, DocumentURLs of which documents it may.
	ImageURLs    bool
	DocumentURLs []string
	// MaxImage and MaxDocument bound the data of one piece, in bytes as they are sent: base64 is a third longer.
	MaxImage, MaxDocument int
	// MaxPieces bounds the images and documents of one request, MaxBody its bytes. Zero bounds nothing.
	MaxPieces, MaxBody int
}

// problem is why a piece can't be sent, for a person; empty if it can.
func (m Media) problem(b turns.Block) string {
	switch b := b.(type) {
	case turns.Image:
		switch {
		case len(m.Images) == 0:
			return "can't be read by this model's endpoint, which takes no images; describe it in words, or ask another model"
		case !slices.Contains(m.Images, b.MediaType):
			return fmt.Sprintf("is %s, and this model's endpoint takes %s", b.MediaType, oneOf(m.Images))
		case b.URL != "" && !m.ImageURLs:
			return "is a URL, and this model's endpoint fetches none; send the bytes"
		}
		return tooLong(len(b.Data), m.MaxImage)
	case turns.Document:
		switch {
		case b.URL != "" && !slices.Contains(m.DocumentURLs, b.MediaType):
			return fmt.Sprintf("is a URL of %s, which this model's endpoint does not fetch; send the bytes", b.MediaType)
		case !b.IsText() && !slices.Contains(m.Documents, b.MediaType):
			return fmt.Sprintf("is %s, which this model's endpoint does not take; send its text, or ask another model", b.MediaType)
		case b.IsText():
			return ""
		}
		return tooLong(len(b.Data), m.MaxDocument)
	}
	return ""
}

func oneOf(types []string) string {
	last := len(types) - 1
	if last == 0 {
		return types[0] + " alone"
	}
	return strings.Join(types[:last], ", ") + " and " + types[last]
}

func tooLong(size, limit int) string {
	if sent := base64.StdEncoding.EncodedLen(size); limit > 0 && sent > limit {
		return fmt.Sprintf("is %d bytes, %d as they are sent, and this model's endpoint takes %d; send a smaller one", size, sent, limit)
	}
	return ""
}

// asText reports whether a document goes out as text, since the endpoint has no other form for it.
func (m Media) asText(d turns.Document) bool {
	return d.URL == "" && d.IsText() && !slices.Contains(m.Documents, d.MediaType)
}

// TextOfDocument is a document of text as words, with its title before it.
func TextOfDocument(d turns.Document) string {
	name := "Document"
	if title := CleanText(d.Title); strings.TrimSpace(title) != "" {
		name += ` "` + title + `"`
	}
	return name + ":\n\n" + CleanText(string(d.Data))
}

// LeftOut is what stands in a history in place of a piece that the endpoint can't be sent.
func LeftOut(b turns.Block, why string) turns.Text {
	what := "image"
	if d, ok := b.(turns.Document); ok {
		what = "document"
		if title := CleanText(d.Title); strings.TrimSpace(title) != "" {
			what += ` "` + title + `"`
		}
	}
	return turns.Text{Text: "[" + what + " left out: " + why + "]"}
}

// Why a piece of an older turn is left out.
const (
	whyNotTaken = "the model that answers now can't be sent it"
	whyNoRoom   = "there was no room for it beside what came later"
)

// DataURL is data with its media type, as a URL.
func DataURL(mediaType string, data []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// isMedia reports whether a block is an image or a document.
func isMedia(b turns.Block) bool {
	switch b.(type) {
	case turns.Image, turns.Document:
		return true
	}
	return false
}

// HasMedia reports whether content is more than text, results aside.
func HasMedia(content []turns.Block) bool { return slices.ContainsFunc(content, isMedia) }

// sentSize is what a piece takes of a request, in bytes.
func sentSize(b turns.Block) int {
	switch b := b.(type) {
	case turns.Image:
		return base64.StdEncoding.EncodedLen(len(b.Data)) + len(b.URL)
	case turns.Document:
		if b.IsText() {
			return jsonSize(string(b.Data)) + len(b.URL) + len(b.Title)
		}
		return base64.StdEncoding.EncodedLen(len(b.Data)) + len(b.URL) + len(b.Title)
	}
	return 0
}
