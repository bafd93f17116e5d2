package turns

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const pngMagic = "\x89PNG\r\n\x1A\n"

func TestAnImageOrADocumentThatCanNotBeReadIsRefusedByField(t *testing.T) {
	const secret = "wordsofauser"
	for name, c := range map[string]struct {
		block Block
		field string
	}{
		"no type":                     {Image{Data: []byte(pngMagic)}, "image.media_type"},
		"a type of no image":          {Image{MediaType: "application/pdf", Data: []byte("%PDF-1")}, "image.media_type"},
		"a type that nobody reads":    {Image{MediaType: "image/" + secret, Data: []byte(secret)}, "image.media_type"},
		"neither data nor URL":        {Image{MediaType: "image/png"}, "image.data"},
		"both":                        {Image{MediaType: "image/png", Data: []byte(pngMagic), URL: "https://" + secret}, "image"},
		"bytes of another type":       {Image{MediaType: "image/png", Data: []byte("\xFF\xD8\xFF" + secret)}, "image.data"},
		"the beginning of a type":     {Image{MediaType: "image/webp", Data: []byte("RIFF1234WEB")}, "image.data"},
		"plain http":                  {Image{MediaType: "image/png", URL: "http://example.com/" + secret}, "image.url"},
		"a login":                     {Image{MediaType: "image/png", URL: "https://u:" + secret + "@example.com/"}, "image.url"},
		"no host":                     {Image{MediaType: "image/png", URL: "https:" + secret}, "image.url"},
		"another scheme":              {Image{MediaType: "image/png", URL: "file://localhost/" + secret}, "image.url"},
		"white space":                 {Image{MediaType: "image/png", URL: "https://example.com/a " + secret}, "image.url"},
		"a long URL":                  {Image{MediaType: "image/png", URL: "https://example.com/" + strings.Repeat(secret, 400)}, "image.url"},
		"a PDF that is none":          {Document{MediaType: "application/pdf", Data: []byte(secret)}, "document.data"},
		"a document of no known type": {Document{MediaType: "application/zip", Data: []byte(secret)}, "document.media_type"},
		"text that is none":           {Document{MediaType: "text/plain", Data: []byte(secret + "\xff")}, "document.data"},
		"an empty document":           {Document{MediaType: "text/plain", Title: secret}, "document.data"},
		"a long title":                {Document{MediaType: "text/plain", Title: strings.Repeat(secret, 50), Data: []byte("a")}, "document.title"},
	} {
		t.Run(name, func(t *testing.T) {
			d := plainDelivery()
			d.Input.Content = append(d.Input.Content, c.block)
			err := d.validate(10_000)
			require.Equal(t, CodeInvalidField, CodeOf(err))
			require.Equal(t, "input.content[1]."+c.field, err.(*Error).Field)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

func TestImagesAndDocumentsOfAllKnownTypesAreTaken(t *testing.T) {
	for _, b := range []Block{
		Image{MediaType: "image/png", Data: []byte(pngMagic + "x")},
		Image{MediaType: "image/jpeg", Data: []byte("\xFF\xD8\xFF\xE0")},
		Image{MediaType: "image/gif", Data: []byte("GIF87a")},
		Image{MediaType: "image/gif", Data: []byte("GIF89a")},
		Image{MediaType: "image/webp", Data: []byte("RIFF\x00\x00\x00\x00WEBPVP8 ")},
		Image{MediaType: "image/png", URL: "https://example.com/a.png?signature=x%2Fy"},
		Image{MediaType: "image/png", URL: "http://127.0.0.1:8080/a.png"},
		Image{MediaType: "image/png", URL: "http://[::1]/a.png"},
		Image{MediaType: "image/png", URL: "http://localhost/a.png"},
		Document{MediaType: "application/pdf", Title: "Würfel", Data: []byte("%PDF-1.7\n")},
		Document{MediaType: "application/pdf", URL: "https://example.com/a.pdf"},
		Document{MediaType: "text/plain", Data: []byte("a\x00b")},
		Document{MediaType: "text/markdown", Data: []byte("# 你好")},
		Document{MediaType: "application/json", Data: []byte("{}")},
	} {
		d := plainDelivery()
		d.Input.Content = []Block{b}
		require.NoError(t, d.validate(1000), b)
	}
}

func TestTheBytesOfAnImageCountForTheLimitOfATurnAndForItsIdentity(t *testing.T) {
	d := plainDelivery()
	d.Input.Content = []Block{Image{MediaType: "image/png", Data: []byte(pngMagic + strings.Repeat("x", 992))}}
	require.NoError(t, d.validate(1000))
	require.Equal(t, CodeContentTooLarge, CodeOf(d.validate(999)))

	other := d
	other.Input.Content = []Block{Image{MediaType: "image/png", Data: bytes.ToUpper([]byte(pngMagic + strings.Repeat("x", 992)))}}
	require.NotEqual(t, HashInput(d.Input), HashInput(other.Input), "another image is another turn")
	document := d
	document.Input.Content = []Block{Document{MediaType: "image/png", Data: []byte(pngMagic + strings.Repeat("x", 992))}}
	require.NotEqual(t, HashInput(d.Input), HashInput(document.Input))
}
