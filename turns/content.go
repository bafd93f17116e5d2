package turns

import "strings"

// Block is one piece of a turn's content. The set is closed: Text, Image, Document, ToolUse, ToolResult, Thinking,
// Refusal, Opaque.
type Block interface{ isBlock() }

// BlockKind names a kind of Block where only the kind matters, and the kinds of blocks in a reply's log.
type BlockKind string

// The kinds of blocks. The first five can stand in a reply.
const (
	KindText       BlockKind = "text"
	KindThinking   BlockKind = "thinking"
	KindToolUse    BlockKind = "tool_use"
	KindRefusal    BlockKind = "refusal"
	KindOpaque     BlockKind = "opaque"
	KindImage      BlockKind = "image"
	KindDocument   BlockKind = "document"
	KindToolResult BlockKind = "tool_result"
)

// Text is plain text. Seal is as that of Thinking: what the vendor wrote beside the words, such as whom it cites. What a
// client sends has none.
type Text struct {
	Text string
	Seal string
}

// Image is an image, inline or by a URL that the provider fetches.
type Image struct {
	MediaType string
	Data      []byte
	URL       string
}

// Document is a document, inline or by a URL that the provider fetches.
type Document struct {
	MediaType string
	Title     string
	Data      []byte
	URL       string
}

// ToolUse is a call of a tool by the model. InputJSON is kept as the model wrote it, to the byte. Seal is as that of
// Thinking; what a client sends has none.
type ToolUse struct {
	ID        string
	Name      string
	InputJSON string
	Seal      string
}

// ToolResult answers a ToolUse of the reply before it.
type ToolResult struct {
	ToolUseID string
	IsError   bool
	Content   []Block
}

// Thinking is reasoning as far as the provider shows it. Seal goes back to the vendor that made it and to nobody else; it
// is no part of any answer to a client.
type Thinking struct {
	Text     string
	Redacted bool
	Seal     string
}

// Refusal holds the model's words of refusal. Seal is as that of Thinking.
type Refusal struct {
	Text     string
	Category string
	Seal     string
}

// Opaque is a piece that only its vendor understands. Seal holds it, in the form in which it goes back there; it is as that
// of Thinking.
type Opaque struct {
	Provider string
	Type     string
	Seal     string
}

func (Text) isBlock()       {}
func (Image) isBlock()      {}
func (Document) isBlock()   {}
func (ToolUse) isBlock()    {}
func (ToolResult) isBlock() {}
func (Thinking) isBlock()   {}
func (Refusal) isBlock()    {}
func (Opaque) isBlock()     {}

// Options say how to make a reply. The zero value of a field is "unset": the conversation's default applies, then the
// model's.
type Options struct {
	Model                string
	System               string
	MaxOutputTokens      int32
	Temperature          *float64
	StopSequences        []string
	Tools                []Tool
	ToolChoice           *ToolChoice
	ThinkingBudgetTokens int32
}

// Tool is a tool the model may call; InputSchemaJSON is JSON text.
type Tool struct {
	Name            string
	Description     string
	InputSchemaJSON string
}

// ToolChoiceMode is a rule about tool calls: "" lets the model decide, "none", "any", "tool".
type ToolChoiceMode string

// The modes, besides leaving it to the model.
const (
	ToolChoiceNone ToolChoiceMode = "none"
	ToolChoiceAny  ToolChoiceMode = "any"
	ToolChoiceTool ToolChoiceMode = "tool"
)

// ToolChoice says which tools must be called; ToolName goes with mode "tool".
type ToolChoice struct {
	Mode     ToolChoiceMode
	ToolName string
}

// Or fills every unset field from defaults.
func (o Options) Or(defaults Options) Options {
	if o.Model == "" {
		o.Model = defaults.Model
	}
	if o.System == "" {
		o.System = defaults.System
	}
	if o.MaxOutputTokens == 0 {
		o.MaxOutputTokens = defaults.MaxOutputTokens
	}
	if o.Temperature == nil {
		o.Temperature = defaults.Temperature
	}
	if len(o.StopSequences) == 0 {
		o.StopSequences = defaults.StopSequences
	}
	if len(o.Tools) == 0 {
		o.Tools = defaults.Tools
	}
	if o.ToolChoice == nil {
		o.ToolChoice = defaults.ToolChoice
	}
	if o.ThinkingBudgetTokens == 0 {
		o.ThinkingBudgetTokens = defaults.ThinkingBudgetTokens
	}
	return o
}

// SizeOf is the size of content in bytes as the limits count it: all text, inline data and names.
func SizeOf(content []Block) int {
	size := 0
	for _, b := range content {
		switch b := b.(type) {
		case Text:
			size += len(b.Text)
		case Image:
			size += len(b.Data) + len(b.URL)
		case Document:
			size += len(b.Data) + len(b.URL) + len(b.Title)
		case ToolUse:
			size += len(b.InputJSON) + len(b.Name)
		case ToolResult:
			size += SizeOf(b.Content)
		case Thinking:
			size += len(b.Text)
		case Refusal:
			size += len(b.Text)
		case Opaque:
			size += len(b.Seal)
		}
	}
	return size
}

// IsBlank reports whether content says nothing: no block, or only text of white space.
func IsBlank(content []Block) bool {
	for _, b := range content {
		text, ok := b.(Text)
		if !ok || strings.TrimSpace(text.Text) != "" {
			return false
		}
	}
	return true
}

// PlainText joins the text blocks of content.
func PlainText(content []Block) string {
	var sb strings.Builder
	for _, b := range content {
		if t, ok := b.(Text); ok {
			sb.WriteString(t.Text)
		}
	}
	return sb.String()
}
