package turns_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/turnd/turnd/turns"
)

func TestAnImageTakesTheSameOfAWindowHoweverManyBytesItHas(t *testing.T) {
	small := turns.EstimateContent([]turns.Block{turns.Image{MediaType: "image/png", Data: make([]byte, 10)}})
	large := turns.EstimateContent([]turns.Block{turns.Image{MediaType: "image/png", Data: make([]byte, 4<<20)}})
	linked := turns.EstimateContent([]turns.Block{turns.Image{MediaType: "image/png", URL: "https://example.com/a.png"}})
	assert.Equal(t, int64(1600), small)
	assert.Equal(t, small, large)
	assert.Equal(t, small, linked)
}

func TestContentIsEstimatedByItsKinds(t *testing.T) {
	text := strings.Repeat("word ", 70) // 350 bytes, 100 tokens
	for name, test := range map[string]struct {
		content []turns.Block
		tokens  int64
	}{
		"nothing":         {nil, 0},
		"text":            {[]turns.Block{turns.Text{Text: text}}, 100},
		"a call":          {[]turns.Block{turns.ToolUse{Name: "", InputJSON: text}}, 100},
		"a text document": {[]turns.Block{turns.Document{MediaType: "text/plain", Data: []byte(text)}}, 100},
		"a small PDF":     {[]turns.Block{turns.Document{MediaType: "application/pdf", Data: []byte("%PDF-")}}, 2000},
		"a larger PDF":    {[]turns.Block{turns.Document{MediaType: "application/pdf", Data: bytes.Repeat([]byte{1}, 640<<10)}}, 22_000},
		"a PDF somewhere": {[]turns.Block{turns.Document{MediaType: "application/pdf", URL: "https://example.com/a.pdf"}}, 20_000},
		"a result": {[]turns.Block{turns.ToolResult{Content: []turns.Block{turns.Text{Text: text},
			turns.Image{MediaType: "image/png", Data: make([]byte, 1<<20)}}}}, 1700},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.tokens, turns.EstimateContent(test.content)) })
	}
}
