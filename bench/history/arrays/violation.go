package arrays

import (
	"fmt"
	"strings"
)

// Wire names a vendor's protocol as the models file does.
type Wire string

// The wires.
const (
	AnthropicMessages  Wire = "anthropic.messages"
	OpenAIChat         Wire = "openai.chat"
	OpenAIResponses    Wire = "openai.responses"
	GeminiGenerate     Wire = "gemini.generate"
	GeminiInteractions Wire = "gemini.interactions"
)

// Wires are all wires, in the order of reports.
var Wires = []Wire{AnthropicMessages, OpenAIChat, OpenAIResponses, GeminiGenerate, GeminiInteractions}

// Kind says what rule a body breaks.
type Kind string

// The kinds. What each means is the same on all wires; which wires have it differs.
const (
	// Of the bytes.
	JSONSyntax       Kind = "json_syntax"
	JSONDuplicateKey Kind = "json_duplicate_key"
	JSONUTF8         Kind = "json_utf8"
	JSONSurrogate    Kind = "json_surrogate"
	JSONNUL          Kind = "json_nul"
	JSONDepth        Kind = "json_depth"
	// Of fields, whatever they are for.
	FieldUnknown Kind = "field_unknown"
	FieldMissing Kind = "field_missing"
	FieldType    Kind = "field_type"
	FieldValue   Kind = "field_value"
	// Of the order of messages.
	RoleUnknown  Kind = "role_unknown"
	RoleOrder    Kind = "role_order"
	FirstNotUser Kind = "first_not_user"
	LastNotUser  Kind = "last_not_user"
	TooMany      Kind = "too_many_messages"
	// Of what a message holds.
	ContentEmpty  Kind = "content_empty"
	TextBlank     Kind = "text_blank"
	TrailingSpace Kind = "trailing_space"
	BlockUnknown  Kind = "block_unknown"
	BlockPlace    Kind = "block_place"
	SystemBlank   Kind = "system_blank"
	SystemPlace   Kind = "system_place"
	// Of calls and their results.
	CallID         Kind = "call_id"
	CallReused     Kind = "call_reused"
	CallName       Kind = "call_name"
	CallInput      Kind = "call_input"
	CallUnanswered Kind = "call_unanswered"
	ResultOrphan   Kind = "result_orphan"
	ResultRepeated Kind = "result_repeated"
	ResultOrder    Kind = "result_order"
	ResultName     Kind = "result_name"
	ErrorEmpty     Kind = "error_empty"
	VendorCall     Kind = "vendor_call"
	// Of reasoning.
	ReasoningUnsigned Kind = "reasoning_unsigned"
	ReasoningAlone    Kind = "reasoning_alone"
	ReasoningMissing  Kind = "reasoning_missing"
	ReasoningID       Kind = "reasoning_id"
	// Of options.
	ToolsMissing   Kind = "tools_missing"
	ToolName       Kind = "tool_name"
	ToolRepeated   Kind = "tool_repeated"
	ToolSchema     Kind = "tool_schema"
	ChoiceNoTools  Kind = "choice_without_tools"
	ChoiceUnknown  Kind = "choice_unknown_tool"
	ChoiceThinking Kind = "choice_with_thinking"
	MaxTokens      Kind = "max_tokens"
	ThinkingBudget Kind = "thinking_budget"
	Sampling       Kind = "sampling"
	StopSequences  Kind = "stop_sequences"
	Storing        Kind = "storing"
	Metadata       Kind = "metadata"
	// Of images and documents.
	MediaType Kind = "media_type"
	MediaData Kind = "media_data"
	MediaSize Kind = "media_size"
)

// Violation is one rule that is broken at one place.
type Violation struct {
	Kind Kind
	// At is the place, such as "messages[2].content[0]". It names fields and numbers, and quotes nothing.
	At string
}

// String is kind and place.
func (v Violation) String() string { return fmt.Sprintf("%s at %s", v.Kind, v.At) }

// Kinds are those of a list, each once, in the order of their first violations.
func Kinds(violations []Violation) (kinds []Kind) {
	seen := make(map[Kind]bool)
	for _, v := range violations {
		if !seen[v.Kind] {
			seen[v.Kind] = true
			kinds = append(kinds, v.Kind)
		}
	}
	return kinds
}

// maxViolations bounds a report: a body that is broken throughout is broken enough.
const maxViolations = 50

// Validate says what is wrong with the body of a request; nil is nothing.
func Validate(wire Wire, body []byte) []Violation {
	c := &checker{}
	root := c.parse(string(body))
	if root == nil {
		return c.found
	}
	switch wire {
	case AnthropicMessages:
		c.anthropic(root)
	case OpenAIChat:
		c.chat(root)
	case OpenAIResponses:
		c.responses(root)
	case GeminiGenerate:
		c.generate(root)
	case GeminiInteractions:
		c.interactions(root)
	default:
		c.say(FieldValue, root)
	}
	return c.found
}

// checker collects what is wrong with one body.
type checker struct{ found []Violation }

// say reports a violation at a node.
func (c *checker) say(kind Kind, at *node) {
	if len(c.found) < maxViolations {
		c.found = append(c.found, Violation{kind, at.path()})
	}
}

// demand reports a violation unless something holds, and gives back whether it does.
func (c *checker) demand(holds bool, kind Kind, at *node) bool {
	if !holds {
		c.say(kind, at)
	}
	return holds
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
