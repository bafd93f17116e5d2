package scripted

import (
	"encoding/json"
	"fmt"
)

// stepsMedia counts the images and documents of a history, and finds what the vendor refuses of them: those that are neither
// a user's nor in a result, their types and their data.
func stepsMedia(steps []interactionStep) (media int, problem string) {
	for i, s := range steps {
		parts := s.Content
		if s.Type == "function_result" {
			_ = json.Unmarshal(s.Result, &parts) // a result that is a text, or any object, has no parts
		}
		for n, p := range parts {
			wrong := ""
			switch {
			case p.Type == "text":
				continue
			case p.Type != "image" && p.Type != "document":
				wrong = "unknown type of content"
			case s.Type == "model_output":
				wrong = "images and documents come from the user"
			case p.URI != "":
				wrong = urlProblem(p.URI)
			case p.Type == "image":
				wrong = dataProblem(p.MIMEType, p.Data, geminiImages)
			default:
				wrong = dataProblem(p.MIMEType, p.Data, geminiFiles)
			}
			if media++; wrong != "" && problem == "" {
				problem = fmt.Sprintf("input[%d].content[%d]: %s", i, n, wrong)
			}
		}
	}
	return media, problem
}
