package scripted

import (
	"encoding/json"
	"fmt"
)

// anthropicSource is where an image or a document is.
type anthropicSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// anthropicMedia counts the images and documents of content, and finds what the vendor refuses of them: where they stand,
// their types and their data, and citations of a user.
func anthropicMedia(content json.RawMessage, role string) (media int, problem string) {
	var parts []struct {
		Type      string            `json:"type"`
		Source    *anthropicSource  `json:"source"`
		Content   json.RawMessage   `json:"content"`
		Citations []json.RawMessage `json:"citations"`
	}
	_ = json.Unmarshal(content, &parts) // a text has no parts, and other content has no media
	for i, p := range parts {
		wrong := ""
		switch {
		case p.Type == "tool_result":
			var inner int
			inner, wrong = anthropicMedia(p.Content, role)
			media += inner
		case p.Type == "text" && role != "assistant" && len(p.Citations) > 0:
			wrong = "citations: not allowed in a user message"
		case p.Type != "image" && p.Type != "document":
			continue
		case role != "user":
			wrong = p.Type + " blocks are only allowed in user messages"
		case p.Source == nil:
			wrong = "source: field required"
		default:
			media++
			wrong = p.Source.problem(p.Type)
		}
		if wrong != "" && problem == "" {
			problem = fmt.Sprintf("content.%d: %s", i, wrong)
		}
	}
	return media, problem
}

func (s anthropicSource) problem(kind string) string {
	switch {
	case s.Type == "url":
		return urlProblem(s.URL)
	case s.Type == "text" && kind == "document" && s.MediaType == "text/plain":
		if s.Data == "" {
			return "source.data: must not be empty"
		}
		return ""
	case s.Type != "base64":
		return "source.type: unexpected value"
	case kind == "document":
		return dataProblem(s.MediaType, s.Data, []string{mediaPDF})
	case len(s.Data) > 5<<20:
		return fmt.Sprintf("image exceeds 5 MB maximum: %d bytes > %d bytes", len(s.Data), 5<<20)
	}
	return dataProblem(s.MediaType, s.Data, commonImages)
}
