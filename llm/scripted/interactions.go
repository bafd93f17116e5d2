package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Gemini's other wire: Interactions. A history is a list of steps, and so is a reply. Declared here a second time, as all
// wires are.

type interactionText struct {
	Type        string            `json:"type"`
	Text        string            `json:"text"`
	Annotations []json.RawMessage `json:"annotations,omitempty"`
}

// interactionPart is one part of the content of a step that came in.
type interactionPart struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	URI      string `json:"uri"`
	MIMEType string `json:"mime_type"`
}

// interactionStep is one step of the input, of any kind.
type interactionStep struct {
	Type      string            `json:"type"`
	Content   []interactionPart `json:"content"`
	Summary   []interactionPart `json:"summary"`
	Signature string            `json:"signature"`
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	Arguments json.RawMessage   `json:"arguments"`
	CallID    string            `json:"call_id"`
	Result    json.RawMessage   `json:"result"`
}

// text is what of a step counts as input.
func (s interactionStep) text() string {
	texts := []string{textOf(s.Result)}
	for _, c := range append(s.Content, s.Summary...) {
		texts = append(texts, c.Text)
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// interactionBody is what the provider reads of a request; the rest it lets pass.
type interactionBody struct {
	Model      string            `json:"model"`
	System     string            `json:"system_instruction"`
	Input      json.RawMessage   `json:"input"`
	Stream     bool              `json:"stream"`
	Store      *bool             `json:"store"`
	Background bool              `json:"background"`
	Labels     map[string]string `json:"labels"`
}

func parseInteraction(body []byte) request {
	req := request{wire: wireInteractions}
	var in interactionBody
	if json.Unmarshal(body, &in) != nil {
		req.problem = "Invalid JSON payload received."
		return req
	}
	req.model, req.stream = in.Model, in.Stream
	stored := in.Store == nil || *in.Store
	req.keep = &keeping{stored: stored, background: in.Background, streamed: in.Stream, metadata: in.Labels}
	steps, ok := stepsOf(in.Input)
	req.words = len(strings.Fields(in.System))
	for _, s := range steps {
		req.words += len(strings.Fields(s.text()))
		if text := s.text(); s.Type == "user_input" && text != "" {
			req.userText = text
		}
	}
	media, problem := stepsMedia(steps)
	req.words += media * mediaTokens
	switch {
	case in.Model == "":
		req.problem = "model or agent is required"
	case !ok || len(steps) == 0:
		req.problem = "input is required: a text, or steps"
	case in.Background && !stored:
		req.problem = "background requires store"
	default:
		if req.problem = labelProblem(in.Labels); req.problem == "" {
			req.problem = stepsProblem(steps)
		}
		if req.problem == "" {
			req.problem = problem
		}
	}
	return req
}

// stepsOf reads the input, whose short form is one text of the user.
func stepsOf(raw json.RawMessage) (steps []interactionStep, ok bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []interactionStep{{Type: "user_input", Content: []interactionPart{{Type: "text", Text: text}}}}, true
	}
	return steps, json.Unmarshal(raw, &steps) == nil
}

// label is what a name and a value of a label may be.
var label = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)

func labelProblem(labels map[string]string) string {
	for name, value := range labels {
		if !label.MatchString(name) || !label.MatchString(value) {
			return "labels: lower-case letters, digits, underscores and hyphens, at most 63"
		}
	}
	return ""
}

// stepsProblem finds what the vendor refuses in a history.
func stepsProblem(steps []interactionStep) string {
	open, used := map[string]bool{}, map[string]bool{}
	for i, s := range steps {
		problem := ""
		switch s.Type {
		case "user_input", "model_output":
			problem = contentProblem(s, len(open) > 0)
		case "thought":
			if s.Signature == "" {
				problem = "a thought needs its signature"
			}
		case "function_call":
			if s.ID == "" || used[s.ID] || s.Name == "" || len(s.Arguments) == 0 || s.Arguments[0] != '{' {
				problem = "a function call needs a name, an id of its own and arguments that are an object"
			}
			open[s.ID], used[s.ID] = true, true
		case "function_result":
			if !open[s.CallID] || len(s.Result) == 0 {
				problem = "a function result answers a function call before it"
			}
			delete(open, s.CallID)
		default:
			problem = "unknown type"
		}
		if problem != "" {
			return fmt.Sprintf("input[%d]: %s", i, problem)
		}
	}
	if last := steps[len(steps)-1].Type; len(open) > 0 || last != "user_input" && last != "function_result" {
		return "input: the last step must be of the user, and every function call answered"
	}
	return ""
}

// contentProblem finds what is wrong with words. None may stand between a call and its result.
func contentProblem(s interactionStep, calling bool) string {
	switch {
	case calling:
		return "a function call must be answered first"
	case len(s.Content) == 0:
		return "content is required"
	}
	for _, c := range s.Content {
		if c.Type == "text" && c.Text == "" {
			return "text must not be empty"
		}
	}
	return ""
}

// interactionError is the body of an error answer and part of an error event; the code is a word.
type interactionError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func interactionRefusal(r refusal) []byte {
	kind := r.kind
	if kind == "" {
		kind = strings.ToLower(geminiKinds[r.status])
	}
	switch {
	case kind != "":
	case r.status >= http.StatusInternalServerError:
		kind = "internal"
	default:
		kind = "invalid_argument"
	}
	if r.message == "" {
		r.message = "scripted: " + kind
	}
	return encode(map[string]any{"error": interactionError{kind, r.message}})
}
