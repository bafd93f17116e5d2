package scripted

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// mediaTokens is what an image or a document counts as input, whatever its size.
const mediaTokens = 100

// The media types that the vendors take. Documents of text are Anthropic's own form; the others have PDF here.
var (
	commonImages = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	geminiImages = []string{"image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"}
	geminiFiles  = append(slices.Clone(geminiImages), mediaPDF, "text/plain", "text/html", "text/csv", "text/xml", "application/json")
)

const mediaPDF = "application/pdf"

// mediaStarts are how the data of a type begins. A vendor looks at the bytes and not at their name alone.
var mediaStarts = map[string]string{
	"image/jpeg": "\xFF\xD8\xFF", "image/png": "\x89PNG\r\n\x1A\n", "image/gif": "GIF8", "image/webp": "RIFF", mediaPDF: "%PDF-",
}

// dataProblem is what is wrong with base64 data of a type, in no vendor's words; empty if nothing is.
func dataProblem(mediaType, data string, types []string) string {
	raw, err := base64.StdEncoding.DecodeString(data)
	switch {
	case !slices.Contains(types, mediaType):
		return "unsupported media type"
	case err != nil:
		return "data is not valid base64"
	case len(raw) == 0:
		return "data must not be empty"
	case !strings.HasPrefix(string(raw), mediaStarts[mediaType]):
		return "data does not match its media type"
	}
	return ""
}

// urlProblem is what is wrong with a URL that is to be fetched.
func urlProblem(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "must be a URL that can be fetched"
	}
	return ""
}

// imageURLProblem is what is wrong with a URL that may hold the data itself.
func imageURLProblem(at string, types []string) string {
	held, ok := strings.CutPrefix(at, "data:")
	if !ok {
		return urlProblem(at)
	}
	mediaType, data, ok := strings.Cut(held, ";base64,")
	if !ok {
		return "must be base64"
	}
	return dataProblem(mediaType, data, types)
}
