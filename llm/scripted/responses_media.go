package scripted

import (
	"encoding/json"
	"fmt"
)

// responsesMedia is a part of a message or of a call's output that is an image or a file.
type responsesMedia struct {
	Type     string `json:"type"`
	ImageURL string `json:"image_url"`
	FileURL  string `json:"file_url"`
	Filename string `json:"filename"`
	FileData string `json:"file_data"`
}

// mediaOf counts the images and files of content, and finds what the vendor refuses of their types and data.
func mediaOf(content json.RawMessage) (media int, problem string) {
	var parts []responsesMedia
	_ = json.Unmarshal(content, &parts) // a text has no parts
	for i, p := range parts {
		wrong := ""
		switch {
		case p.Type == "input_image":
			wrong = imageURLProblem(p.ImageURL, commonImages)
		case p.Type == "input_file" && p.FileURL != "":
			wrong = urlProblem(p.FileURL)
		case p.Type == "input_file" && p.Filename == "":
			wrong = "a file needs its filename"
		case p.Type == "input_file":
			wrong = imageURLProblem(p.FileData, []string{mediaPDF})
		default:
			continue
		}
		if media++; wrong != "" && problem == "" {
			problem = fmt.Sprintf("content[%d]: %s", i, wrong)
		}
	}
	return media, problem
}

// responsesMediaProblem counts the images and files of all items, and says which item the vendor refuses for one.
func responsesMediaProblem(items []responsesItem) (media int, problem string) {
	for i, item := range items {
		for _, content := range []json.RawMessage{item.Content, item.Output} {
			n, wrong := mediaOf(content)
			if media += n; wrong != "" && problem == "" {
				problem = fmt.Sprintf("input[%d].%s", i, wrong)
			}
		}
	}
	return media, problem
}
