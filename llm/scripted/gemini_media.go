package scripted

import "fmt"

// geminiInline is an image or a document itself, geminiFile where one is.
type geminiInline struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

type geminiFile struct {
	MIMEType string `json:"mimeType"`
	FileURI  string `json:"fileUri"`
}

// geminiMedia counts the images and documents of contents, and finds what the vendor refuses of them: those that are not a
// user's, their types and their data.
func geminiMedia(contents []geminiContent) (media int, problem string) {
	for i, c := range contents {
		for n, p := range c.Parts {
			count, wrong := p.media(c.Role)
			if media += count; wrong != "" && problem == "" {
				problem = fmt.Sprintf("contents[%d].parts[%d]: %s", i, n, wrong)
			}
		}
	}
	return media, problem
}

func (p geminiPart) media(role string) (count int, problem string) {
	switch {
	case p.Result != nil:
		for _, inner := range p.Result.Parts {
			n, wrong := inner.media(role)
			if count += n; problem == "" {
				problem = wrong
			}
			if inner.Inline == nil {
				problem = "only inline data can stand in a function response"
			}
		}
		return count, problem
	case p.Inline == nil && p.File == nil:
		return 0, ""
	case role == "model":
		return 1, "images and documents come from the user"
	case p.Inline != nil:
		return 1, dataProblem(p.Inline.MIMEType, p.Inline.Data, geminiFiles)
	}
	return 1, urlProblem(p.File.FileURI)
}
