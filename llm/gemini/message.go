package gemini

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// content is a message. The system's has no role.
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is every kind of content; each uses some of the fields. Text alone may be empty, beside a signature.
type part struct {
	Text             *string           `json:"text,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
	InlineData       *blob             `json:"inlineData,omitempty"`
	FileData         *fileData         `json:"fileData,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type functionResponse struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Response response `json:"response"`
	Parts    []part   `json:"parts,omitempty"`
}

// response has one of the two.
type response struct {
	Output *string `json:"output,omitempty"`
	Error  *string `json:"error,omitempty"`
}

var roles = map[turns.Role]string{turns.RoleUser: "user", turns.RoleAssistant: "model"}

// contents are the messages of a history. A message of which nothing is left is left out with it.
func contents(history []turns.Message, model string) (out []content) {
	names := make(map[string]string) // of calls by their ids, which are unique
	for _, m := range history {
		if parts := parts(m.Content, model, names); len(parts) > 0 {
			out = append(out, content{Role: roles[m.Role], Parts: parts})
		}
	}
	return out
}

func parts(blocks []turns.Block, model string, names map[string]string) (out []part) {
	called := false
	var behind []part // the results, before what else the user sent
	for _, b := range blocks {
		if _, result := b.(turns.ToolResult); !result {
			out, behind = append(out, behind...), nil
		}
		switch b := b.(type) {
		case turns.Text:
			signature, _ := sealer.Open(model, b.Seal)
			out = append(out, part{Text: &b.Text, ThoughtSignature: signature})
		case turns.Image:
			out = append(out, mediaPart(b.MediaType, b.Data, b.URL))
		case turns.Document:
			out = append(out, mediaPart(b.MediaType, b.Data, b.URL))
		case turns.Thinking:
			// A signature that came apart from words goes back so: it must not be given to a part that had none.
			if signature, ok := sealer.Open(model, b.Seal); ok && signature != "" {
				out = append(out, part{Text: new(string), ThoughtSignature: signature})
			}
		case turns.ToolUse:
			names[b.ID] = b.Name
			p := part{FunctionCall: &functionCall{b.ID, b.Name, wire.Object(b.InputJSON)}}
			signature, ok := sealer.Open(model, b.Seal)
			if !ok && !called {
				signature = skipSignature
			}
			p.ThoughtSignature, called = signature, true
			out = append(out, p)
		case turns.ToolResult:
			r, images := resultOf(b, names[b.ToolUseID], model)
			out, behind = append(out, part{FunctionResponse: &r}), append(behind, images...)
		}
	}
	return append(out, behind...)
}

func responseOf(r turns.ToolResult) response {
	text := wire.TextOf(r.Content)
	if r.IsError {
		return response{Error: &text}
	}
	return response{Output: &text}
}
