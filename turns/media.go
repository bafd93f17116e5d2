package turns

import (
	"bytes"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode/utf8"
)

// Bounds of what stands beside an image or a document. Signed URLs of object stores are about 2,000 bytes long.
const (
	maxMediaURL   = 4096
	maxMediaTitle = 512
)

// imageTypes are the media types of images, those that models read, each with how its data begins.
var imageTypes = map[string]func(data []byte) bool{
	"image/jpeg": beginsWith("\xFF\xD8\xFF"),
	"image/png":  beginsWith("\x89PNG\r\n\x1A\n"),
	"image/gif":  func(data []byte) bool { return beginsWith("GIF87a")(data) || beginsWith("GIF89a")(data) },
	"image/webp": func(data []byte) bool {
		return len(data) >= 12 && beginsWith("RIFF")(data) && beginsWith("WEBP")(data[8:])
	},
}

// documentTypes are those of documents. All but PDF are text.
var documentTypes = map[string]func(data []byte) bool{
	mediaPDF:           beginsWith("%PDF-"),
	"text/plain":       utf8.Valid,
	"text/markdown":    utf8.Valid,
	"text/html":        utf8.Valid,
	"text/csv":         utf8.Valid,
	"text/xml":         utf8.Valid,
	"application/json": utf8.Valid,
}

func beginsWith(magic string) func([]byte) bool {
	return func(data []byte) bool { return bytes.HasPrefix(data, []byte(magic)) }
}

// IsText reports whether a document is text, which any model reads as such.
func (d Document) IsText() bool { return d.MediaType != mediaPDF }

// validate checks an image as a client sends it.
func (b Image) validate(field string) error {
	return validateSource(field, imageTypes, "image/jpeg, image/png, image/gif or image/webp", b.MediaType, b.Data, b.URL)
}

// validate checks a document as a client sends it.
func (b Document) validate(field string) error {
	switch {
	case len(b.Title) > maxMediaTitle:
		return invalid(field+".title", fmt.Sprintf("is longer than %d bytes", maxMediaTitle))
	case !utf8.ValidString(b.Title):
		return invalid(field+".title", "is not valid UTF-8")
	}
	return validateSource(field, documentTypes, "application/pdf, application/json, or text of the kinds plain, markdown, html, csv or xml",
		b.MediaType, b.Data, b.URL)
}

// validateSource checks a type among those that are known, and that exactly one of data and a URL is there.
func validateSource(field string, types map[string]func([]byte) bool, known, mediaType string, data []byte, at string) error {
	begins := types[mediaType]
	switch {
	case begins == nil:
		return invalid(field+".media_type", "must be "+known)
	case len(data) == 0 && at == "":
		return invalid(field+".data", "is empty; send the bytes, or a URL")
	case len(data) > 0 && at != "":
		return invalid(field, "has both data and a URL; send one of them")
	case at != "":
		return validateMediaURL(field+".url", at)
	case !begins(data):
		return invalid(field+".data", "is not what media_type says; send the type that the bytes have")
	}
	return nil
}

// validateMediaURL takes what a provider can fetch: https, without a login in it. Plain http is for a provider on the same
// machine.
func validateMediaURL(field, at string) error {
	if len(at) > maxMediaURL {
		return invalid(field, fmt.Sprintf("is longer than %d bytes", maxMediaURL))
	}
	u, err := url.Parse(at)
	switch {
	case err != nil || !utf8.ValidString(at) || strings.ContainsAny(at, " \t\r\n"):
		return invalid(field, "is no URL")
	case u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return invalid(field, "must be an https URL; it is the provider that fetches it")
	case u.User != nil:
		return invalid(field, "must not hold a login")
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
