package scripted

import (
	"encoding/json"
	"fmt"
)

// openaiPart is one part of a message's content on the Chat wire.
type openaiPart struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image *struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File *struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
	} `json:"file"`
}

// openaiMedia counts the images and files of messages, and finds what the vendor refuses of them: those that are not a
// user's, their types and their data.
func openaiMedia(messages []message) (media int, problem string) {
	for i, m := range messages {
		var parts []openaiPart
		if json.Unmarshal(m.Content, &parts) != nil {
			continue
		}
		for n, p := range parts {
			wrong := ""
			switch {
			case p.Type == "text" && p.Text != "", p.Type == "refusal" && m.Role == "assistant":
				continue
			case p.Type == "image_url" && m.Role == "user" && p.Image != nil:
				media++
				wrong = imageURLProblem(p.Image.URL, commonImages)
			case p.Type == "file" && m.Role == "user" && p.File != nil && p.File.Name != "":
				media++
				wrong = imageURLProblem(p.File.Data, []string{mediaPDF})
			default:
				wrong = "invalid content part for this role"
			}
			if wrong != "" && problem == "" {
				problem = fmt.Sprintf("messages[%d].content[%d]: %s", i, n, wrong)
			}
		}
	}
	return media, problem
}
