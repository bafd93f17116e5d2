package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Gemini's wire: generateContent of the Generative Language API. Declared here a second time, as the others are. The model
// and the choice of streaming stand in the path; the body has neither.

const (
	geminiModels = "/v1beta/models/"
	geminiStream = ":streamGenerateContent"
	geminiWhole  = ":generateContent"
)

// geminiError is the body of an error answer and the data of an error in a stream.
type geminiError struct {
	Error geminiStatus `json:"error"`
}

type geminiStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Status  string `json:"status"`
	Details []any  `json:"details,omitempty"`
}

// geminiRetry is the detail by which this vendor asks to wait.
type geminiRetry struct {
	Type  string `json:"@type"`
	Delay string `json:"retryDelay"`
}

// geminiCall is a call of a tool. The arguments are an object, not text.
type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// geminiResult answers a call.
type geminiResult struct {
	ID       string       `json:"id,omitempty"`
	Name     string       `json:"name"`
	Parts    []geminiPart `json:"parts,omitempty"`
	Response *struct {
		Output string `json:"output"`
		Error  string `json:"error"`
	} `json:"response"`
}

// geminiPart is one part of a message; a thought says so beside its text. Text is absent or, where a signature stands
// alone, empty.
type geminiPart struct {
	Text      *string       `json:"text,omitempty"`
	Thought   bool          `json:"thought,omitempty"`
	Call      *geminiCall   `json:"functionCall,omitempty"`
	Result    *geminiResult `json:"functionResponse,omitempty"`
	Inline    *geminiInline `json:"inlineData,omitempty"`
	File      *geminiFile   `json:"fileData,omitempty"`
	Signature string        `json:"thoughtSignature,omitempty"`
}

type geminiContent struct {
	Parts []geminiPart `json:"parts,omitempty"`
	Role  string       `json:"role,omitempty"`
}

// text joins what the parts say in words.
func (c geminiContent) text() string {
	var texts []string
	for _, p := range c.Parts {
		if p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// words counts those of the results too.
func (c geminiContent) words() int {
	n := len(strings.Fields(c.text()))
	for _, p := range c.Parts {
		if p.Result != nil && p.Result.Response != nil {
			n += len(strings.Fields(p.Result.Response.Output)) + len(strings.Fields(p.Result.Response.Error))
		}
	}
	return n
}

// servesGemini reports whether a path is a method of a model.
func servesGemini(path string) bool {
	model, is := strings.CutPrefix(path, geminiModels)
	return is && (strings.HasSuffix(model, geminiStream) || strings.HasSuffix(model, geminiWhole))
}

// addressGemini takes from the address what other vendors have in the body.
func addressGemini(u *url.URL, r *request) {
	model, _ := strings.CutPrefix(u.Path, geminiModels)
	if r.model, r.stream = strings.CutSuffix(model, geminiStream); !r.stream {
		r.model = strings.TrimSuffix(model, geminiWhole)
	}
	switch {
	case r.problem != "":
	case r.model == "":
		r.problem = "model is required"
	case r.stream && u.Query().Get("alt") != "sse":
		r.problem = "streamed replies are scripted with alt=sse alone"
	}
}

// parseGemini reads what the provider needs and lets the rest pass.
func parseGemini(body []byte) request {
	req := request{wire: wireGemini}
	var in struct {
		Contents []geminiContent `json:"contents"`
		System   geminiContent   `json:"systemInstruction"`
	}
	if json.Unmarshal(body, &in) != nil {
		req.problem = "Invalid JSON payload received."
		return req
	}
	req.words = in.System.words()
	for _, c := range in.Contents {
		req.words += c.words()
		if text := c.text(); c.Role != "model" && text != "" {
			req.userText = text
		}
	}
	media, problem := geminiMedia(in.Contents)
	req.words += media * mediaTokens
	if req.problem = geminiProblem(in.Contents); req.problem == "" {
		req.problem = problem
	}
	return req
}

// geminiProblem finds what the vendor refuses in a history. Signatures are demanded as its newer models do: on the first
// call of each step of the turn that goes on.
func geminiProblem(contents []geminiContent) string {
	if len(contents) == 0 {
		return "contents is not specified"
	}
	current := geminiTurn(contents)
	open := 0 // calls of the message before
	for i, c := range contents {
		calls, results := 0, 0
		for n, p := range c.Parts {
			if problem := p.problem(); problem != "" {
				return fmt.Sprintf("contents[%d].parts[%d]: %s", i, n, problem)
			}
			switch {
			case p.Call != nil && calls == 0 && i > current && p.Signature == "":
				return "Function call is missing a thought_signature in functionCall parts."
			case p.Call != nil:
				calls++
			case p.Result != nil:
				results++
			}
		}
		switch {
		case c.Role != "" && c.Role != "user" && c.Role != "model":
			return "Please use a valid role: user, model."
		case len(c.Parts) == 0:
			return fmt.Sprintf("contents[%d].parts must not be empty", i)
		case c.Role == "model" && (results > 0 || open > 0), c.Role != "model" && calls > 0:
			return "a function call comes from the model, and its response directly after it from the user"
		case results != open:
			return "the number of function response parts must equal that of the function call parts of the turn before"
		}
		open = calls
	}
	if open > 0 || contents[len(contents)-1].Role == "model" {
		return "the last turn must be of the user, and answer every function call"
	}
	return ""
}

// geminiTurn is where the turn that goes on began: the last message of the user's own words.
func geminiTurn(contents []geminiContent) int {
	for i := len(contents) - 1; i > 0; i-- {
		if contents[i].Role != "model" && contents[i].text() != "" {
			return i
		}
	}
	return 0
}

func (p geminiPart) problem() string {
	switch {
	case p.Call != nil && (p.Call.Name == "" || len(p.Call.Args) > 0 && p.Call.Args[0] != '{'):
		return "a function call needs a name, and arguments that are an object"
	case p.Result != nil && (p.Result.Name == "" || p.Result.Response == nil):
		return "a function response needs a name and a response"
	case p.Call == nil && p.Result == nil && p.Inline == nil && p.File == nil && (p.Text == nil || *p.Text == "" && p.Signature == ""):
		return "required oneof field 'data' must have one initialized field"
	}
	return ""
}

// geminiKinds is the vendor's status for each HTTP status.
var geminiKinds = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
	409: "ABORTED", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE",
	504: "DEADLINE_EXCEEDED",
}

// geminiCode is the HTTP status of a kind. The same words stand for two: credit that is gone, and a limit of rate.
func geminiCode(kind string) int {
	for code, usual := range geminiKinds {
		if usual == kind && code != http.StatusPaymentRequired {
			return code
		}
	}
	return http.StatusServiceUnavailable
}

func geminiRefusal(r refusal) []byte {
	kind := r.kind
	if kind == "" {
		kind = geminiKinds[r.status]
	}
	switch {
	case kind != "":
	case r.status >= 500:
		kind = "INTERNAL"
	default:
		kind = "INVALID_ARGUMENT"
	}
	out := geminiStatus{Code: r.status, Message: r.message, Status: kind}
	if out.Message == "" {
		out.Message = "scripted: " + kind
	}
	if r.wait != "" {
		out.Details = append(out.Details, geminiRetry{"type.googleapis.com/google.rpc.RetryInfo", r.wait + "s"})
	}
	return encode(geminiError{out})
}
