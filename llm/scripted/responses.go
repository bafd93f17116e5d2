package scripted

import (
	"encoding/json"
	"slices"
	"strings"
)

// OpenAI's other wire: Responses. Its items are declared here a second time, as all wires are.

// responsesItem is one entry of the input. Messages may leave out their type.
type responsesItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   []part          `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

func (i responsesItem) kind() string {
	if i.Type == "" && i.Role != "" {
		return "message"
	}
	return i.Type
}

// text is what of the item counts as input.
func (i responsesItem) text() string {
	texts := []string{textOf(i.Content), textOf(i.Output), i.Arguments}
	for _, p := range i.Summary {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, " ")
}

// responsesBody is what the provider reads of a request; the rest it lets pass.
type responsesBody struct {
	Model         string            `json:"model"`
	Stream        bool              `json:"stream"`
	Instructions  string            `json:"instructions"`
	Input         json.RawMessage   `json:"input"`
	Store         *bool             `json:"store"`
	Background    bool              `json:"background"`
	Conversation  json.RawMessage   `json:"conversation"`
	Metadata      map[string]string `json:"metadata"`
	Include       []string          `json:"include"`
	StreamOptions struct {
		Obfuscation *bool `json:"include_obfuscation"`
	} `json:"stream_options"`
}

func parseResponses(body []byte) request {
	req := request{wire: wireResponses}
	var in responsesBody
	if json.Unmarshal(body, &in) != nil {
		req.problem = "the body is not valid JSON of this endpoint"
		return req
	}
	req.model, req.stream = in.Model, in.Stream
	req.sealed = slices.Contains(in.Include, "reasoning.encrypted_content")
	req.padded = in.StreamOptions.Obfuscation == nil || *in.StreamOptions.Obfuscation
	stored := in.Store == nil || *in.Store
	req.keep = &keeping{
		stored: stored, background: in.Background, streamed: in.Stream, metadata: in.Metadata, session: sessionOf(in.Conversation),
	}
	items, raw, ok := inputOf(in.Input)
	req.keep.input = raw
	req.words = len(strings.Fields(in.Instructions))
	for _, item := range items {
		req.words += len(strings.Fields(item.text()))
		if text := textOf(item.Content); item.Role == "user" && text != "" {
			req.userText = text
		}
	}
	media, problem := responsesMediaProblem(items)
	req.words += media * mediaTokens
	switch {
	case in.Model == "":
		req.problem = "you must provide a model parameter"
	case !ok || len(items) == 0:
		req.problem = "input: a text or at least one item is required"
	case in.Background && !stored:
		req.problem = "background responses need store=true"
	case len(in.Metadata) > 16:
		req.problem = "metadata: at most 16 pairs"
	default:
		if req.problem = responsesPairing(items); req.problem == "" {
			req.problem = problem
		}
	}
	return req
}

// sessionOf reads a conversation, named by its id or by an object that holds it.
func sessionOf(raw json.RawMessage) string {
	var id string
	if json.Unmarshal(raw, &id) == nil {
		return id
	}
	var named struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(raw, &named) // what is neither names none
	return named.ID
}

// inputOf reads the input, whose short form is one text of the user.
func inputOf(raw json.RawMessage) (items []responsesItem, each []json.RawMessage, ok bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		each = []json.RawMessage{encode(map[string]any{"type": "message", "role": "user", "content": text})}
	} else if json.Unmarshal(raw, &each) != nil {
		return nil, nil, false
	}
	for _, one := range each {
		var item responsesItem
		if json.Unmarshal(one, &item) != nil {
			return nil, nil, false
		}
		items = append(items, item)
	}
	return items, each, true
}

// responsesRefusal has a code of its own for every complaint about a conversation.
func responsesRefusal(r refusal) []byte {
	if r.kind != "conversation_locked" {
		return openaiRefusal(r)
	}
	return encode(openaiError{openaiDetail{Message: r.message, Type: "invalid_request_error", Code: &r.kind}})
}
