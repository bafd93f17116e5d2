package arrays

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Bounds of inline data, in bytes of what is encoded.
const (
	maxImage    = 5 << 20
	maxDocument = 32 << 20
)

// imageTypes are what all vendors read.
var imageTypes = map[string]bool{"image/jpeg": true, "image/png": true, "image/gif": true, "image/webp": true}

var (
	webAddress = regexp.MustCompile(`^https?://[^\s/]+`)
	dataURL    = regexp.MustCompile(`^data:([a-z]+/[a-z0-9.+-]+);base64,`)
)

// base64Of checks data in base64, with padding, and its size.
func (c *checker) base64Of(n *node, most int) {
	if n == nil {
		return
	}
	c.encoded(n, n.text, most)
}

func (c *checker) encoded(n *node, text string, most int) {
	size, ok := decodedLen(text)
	switch {
	case !ok || size == 0:
		c.say(MediaData, n)
	case size > most:
		c.say(MediaSize, n)
	}
}

// decodedLen is the length of what base64 text stands for.
func decodedLen(text string) (int, bool) {
	if strings.ContainsAny(text, "\r\n") { // the decoder passes over them, and servers do not
		return 0, false
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	return len(data), err == nil
}

// geminiImages are those that Gemini reads of them.
var geminiImages = map[string]bool{"image/jpeg": true, "image/png": true, "image/webp": true}

// imageType checks a media type of an image.
func (c *checker) imageType(n *node) {
	if n != nil {
		c.demand(imageTypes[n.text], MediaType, n)
	}
}

// address checks a URL that the vendor fetches.
func (c *checker) address(n *node) {
	if n != nil {
		c.demand(webAddress.MatchString(n.text), MediaData, n)
	}
}

// imageURL checks an address, or an image in the form of one.
func (c *checker) imageURL(n *node) { c.inlineURL(n, imageTypes, maxImage) }

// inlineURL checks an address or a data URL of one of some types; no types are any.
func (c *checker) inlineURL(n *node, types map[string]bool, most int) {
	if n == nil {
		return
	}
	inline := dataURL.FindStringSubmatch(n.text)
	if inline == nil {
		c.address(n)
		return
	}
	c.demand(types == nil || types[inline[1]], MediaType, n)
	c.encoded(n, n.text[len(inline[0]):], most)
}

// signature checks a seal in base64, of either alphabet and with or without padding.
func signature(text string) bool {
	if text == "" {
		return false
	}
	text = strings.TrimRight(text, "=")
	if strings.ContainsAny(text, "-_") {
		_, err := base64.RawURLEncoding.DecodeString(text)
		return err == nil
	}
	_, err := base64.RawStdEncoding.DecodeString(text)
	return err == nil
}

// documentTypes are the documents that may stand inline. Text goes as text.
var documentTypes = map[string]bool{"application/pdf": true}
