package turns

import (
	"encoding/json"
	"fmt"
)

// storedBlock is the JSON form of a Block in the store. Fields are only ever added, and an absent one means its zero
// value, so that old rows stay readable.
type storedBlock struct {
	Kind      BlockKind     `json:"kind"`
	Text      string        `json:"text,omitempty"`
	MediaType string        `json:"media_type,omitempty"`
	Title     string        `json:"title,omitempty"`
	Data      []byte        `json:"data,omitempty"`
	URL       string        `json:"url,omitempty"`
	ID        string        `json:"id,omitempty"`
	Name      string        `json:"name,omitempty"`
	IsError   bool          `json:"is_error,omitempty"`
	Redacted  bool          `json:"redacted,omitempty"`
	Category  string        `json:"category,omitempty"`
	Provider  string        `json:"provider,omitempty"`
	Type      string        `json:"type,omitempty"`
	Content   []storedBlock `json:"content,omitempty"`
}

// EncodeContent is the stored form of a user turn's content: JSON text without NUL, which both engines take.
func EncodeContent(content []Block) ([]byte, error) {
	return json.Marshal(toStored(content))
}

// DecodeContent reads what EncodeContent wrote.
func DecodeContent(data []byte) ([]Block, error) {
	c := compact{data}
	if content, ok := c.texts(); ok {
		return content, nil
	}
	var stored []storedBlock
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, fmt.Errorf("decode content: %w", err)
	}
	return fromStored(stored)
}

func toStored(content []Block) []storedBlock {
	stored := make([]storedBlock, 0, len(content))
	for _, b := range content {
		switch b := b.(type) {
		case Text:
			stored = append(stored, storedBlock{Kind: KindText, Text: b.Text})
		case Image:
			stored = append(stored, storedBlock{Kind: KindImage, MediaType: b.MediaType, Data: b.Data, URL: b.URL})
		case Document:
			stored = append(stored, storedBlock{Kind: KindDocument, MediaType: b.MediaType, Title: b.Title, Data: b.Data, URL: b.URL})
		case ToolUse:
			stored = append(stored, storedBlock{Kind: KindToolUse, ID: b.ID, Name: b.Name, Text: b.InputJSON})
		case ToolResult:
			stored = append(stored, storedBlock{Kind: KindToolResult, ID: b.ToolUseID, IsError: b.IsError, Content: toStored(b.Content)})
		case Thinking:
			stored = append(stored, storedBlock{Kind: KindThinking, Text: b.Text, Redacted: b.Redacted})
		case Refusal:
			stored = append(stored, storedBlock{Kind: KindRefusal, Text: b.Text, Category: b.Category})
		case Opaque:
			stored = append(stored, storedBlock{Kind: KindOpaque, Provider: b.Provider, Type: b.Type})
		}
	}
	return stored
}

func fromStored(stored []storedBlock) ([]Block, error) {
	content := make([]Block, 0, len(stored))
	for _, s := range stored {
		switch s.Kind {
		case KindText:
			content = append(content, Text{Text: s.Text})
		case KindImage:
			content = append(content, Image{MediaType: s.MediaType, Data: s.Data, URL: s.URL})
		case KindDocument:
			content = append(content, Document{MediaType: s.MediaType, Title: s.Title, Data: s.Data, URL: s.URL})
		case KindToolUse:
			content = append(content, ToolUse{ID: s.ID, Name: s.Name, InputJSON: s.Text})
		case KindToolResult:
			inner, err := fromStored(s.Content)
			if err != nil {
				return nil, err
			}
			content = append(content, ToolResult{ToolUseID: s.ID, IsError: s.IsError, Content: inner})
		case KindThinking:
			content = append(content, Thinking{Text: s.Text, Redacted: s.Redacted})
		case KindRefusal:
			content = append(content, Refusal{Text: s.Text, Category: s.Category})
		case KindOpaque:
			content = append(content, Opaque{Provider: s.Provider, Type: s.Type})
		default:
			return nil, fmt.Errorf("decode content: unknown kind of block")
		}
	}
	return content, nil
}

// EncodeOptions is the stored form of options as the client sent them.
func EncodeOptions(o Options) ([]byte, error) { return json.Marshal(o) }

// unsetOptions are the stored form of options of which none is set, which most are.
var unsetOptions = func() string {
	data, err := EncodeOptions(Options{})
	if err != nil {
		panic(err) // no option is there to fail
	}
	return string(data)
}()

// DecodeOptions reads what EncodeOptions wrote; no bytes at all are unset options.
func DecodeOptions(data []byte) (Options, error) {
	var o Options
	if len(data) == 0 || string(data) == unsetOptions {
		return o, nil
	}
	if err := json.Unmarshal(data, &o); err != nil {
		return o, fmt.Errorf("decode options: %w", err)
	}
	return o, nil
}
