package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/turnd/turnd/turns"
)

// PlainMessage is a message that holds only text: its blocks, none of them blank.
type PlainMessage struct {
	Role  turns.Role
	Texts []string
}

// PlainMessages is a prompt's messages as text. Neighbours of the same role become one, since some servers insist that
// roles alternate. Blank blocks, and messages of nothing else, are left out: every vendor refuses them. NUL is dropped.
//
// What is no text yet is turns.CodeUnimplemented, naming what. An assistant's refusal goes back as the text it is.
func PlainMessages(p turns.Prompt) ([]PlainMessage, error) {
	if err := refuseOptions(p.Options); err != nil {
		return nil, err
	}
	var plain []PlainMessage
	for _, m := range p.Messages {
		texts, err := plainTexts(m)
		if err != nil {
			return nil, err
		}
		if n := len(plain); n > 0 && plain[n-1].Role == m.Role {
			plain[n-1].Texts = append(plain[n-1].Texts, texts...)
		} else if len(texts) > 0 {
			plain = append(plain, PlainMessage{m.Role, texts})
		}
	}
	if n := len(plain); n == 0 || plain[n-1].Role != turns.RoleUser {
		return nil, &turns.Error{Code: turns.CodeContentEmpty, Field: "input.content",
			Problem: "the prompt does not end with something from the user; send some text"}
	}
	return plain, nil
}

// plainTexts are the texts of a message that are not blank.
func plainTexts(m turns.Message) ([]string, error) {
	var texts []string
	for _, b := range m.Content {
		var text string
		switch b := b.(type) {
		case turns.Text:
			text = b.Text
		case turns.Refusal:
			text = b.Text
		default:
			return nil, unimplemented("input.content", nameOf(b))
		}
		if text = CleanText(text); strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	return texts, nil
}

// CleanText is text as JSON can carry it to any provider: valid UTF-8 without NUL.
func CleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

func nameOf(b turns.Block) string {
	switch b.(type) {
	case turns.Image:
		return "an image"
	case turns.Document:
		return "a document"
	case turns.ToolUse:
		return "a tool call"
	case turns.ToolResult:
		return "a tool result"
	case turns.Thinking:
		return "thinking"
	}
	return "a block that only its vendor understands"
}

// refuseOptions refuses what must not be dropped: a model without the tools it was promised answers another question.
func refuseOptions(o turns.Options) error {
	switch {
	case len(o.Tools) > 0:
		return unimplemented("input.options.tools", "a tool definition")
	case o.ToolChoice != nil:
		return unimplemented("input.options.tool_choice", "a choice of tools")
	case o.ThinkingBudgetTokens > 0:
		return unimplemented("input.options.thinking_budget_tokens", "a budget for thinking")
	}
	return nil
}

func unimplemented(field, what string) *turns.Error {
	return &turns.Error{Code: turns.CodeUnimplemented, Field: field,
		Problem: fmt.Sprintf("%s can't be sent to a model yet; send text alone", what)}
}

// MaxOutput is how many tokens a reply may take: what the options ask for, within the limit of the endpoint. 0 is
// neither.
func MaxOutput(o turns.Options, l turns.Limits) int {
	asked, limit := int(o.MaxOutputTokens), l.MaxOutputTokens
	if asked == 0 || limit == 0 {
		return max(asked, limit)
	}
	return min(asked, limit)
}

// Encode is the body of a request. A struct has one order of fields, so the same value makes the same bytes anywhere.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// versioned is a path that already names an API version, such as /v1 or /v1beta.
var versioned = regexp.MustCompile(`/v[0-9]+[a-z0-9]*$`)

// Join is the URL of a vendor's method below a base URL. A base that ends in a version, as those of compatible servers
// often do, keeps it; to any other /v1 is added.
func Join(base, method string) string {
	base = strings.TrimRight(base, "/")
	if !versioned.MatchString(base) {
		base += "/v1"
	}
	return base + "/" + method
}

// PlainSystem is the system text of a prompt, or nothing if it is blank.
func PlainSystem(o turns.Options) []string {
	if text := CleanText(o.System); strings.TrimSpace(text) != "" {
		return []string{text}
	}
	return nil
}
