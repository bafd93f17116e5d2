package scripted

import (
	"encoding/json"
	"fmt"
	"strings"
)

// responsesPairing finds what this wire refuses of a history: calls and outputs that do not belong together, reasoning
// that nothing follows, and items and parts that it does not know.
func responsesPairing(items []responsesItem) (problem string) {
	calls, outputs := make(map[string]bool), make(map[string]bool)
	for i, item := range items {
		switch item.kind() {
		case "message":
			problem = messageProblem(item)
		case "function_call":
			if item.CallID == "" || item.Name == "" || calls[item.CallID] || !json.Valid([]byte(item.Arguments)) {
				problem = "a function call needs a name, a call_id of its own and arguments that are JSON"
			}
			calls[item.CallID] = true
		case "function_call_output":
			if !calls[item.CallID] || outputs[item.CallID] || len(item.Output) == 0 {
				problem = "no tool call found for function call output with call_id " + item.CallID
			}
			outputs[item.CallID] = true
		case "reasoning":
			problem = reasoningProblem(item, items[i+1:])
		default:
			problem = "unknown type of item"
		}
		if problem != "" {
			return fmt.Sprintf("input[%d]: %s", i, problem)
		}
	}
	for id := range calls {
		if !outputs[id] {
			return "no tool output found for function call " + id
		}
	}
	return ""
}

// messageProblem knows the parts that each role can have. Text of the assistant is output, that of others input.
func messageProblem(item responsesItem) string {
	allowed, known := map[string]string{
		"user": " input_text input_image input_file ", "system": " input_text ", "developer": " input_text ",
		"assistant": " output_text refusal ",
	}[item.Role]
	if !known {
		return "unexpected role"
	}
	var text string
	if json.Unmarshal(item.Content, &text) == nil {
		return ""
	}
	var parts []part
	if json.Unmarshal(item.Content, &parts) != nil || len(parts) == 0 {
		return "content must be a text or parts"
	}
	for _, p := range parts {
		if !strings.Contains(allowed, " "+p.Type+" ") {
			return "invalid type of part for this role"
		}
	}
	return ""
}

// reasoningProblem refuses reasoning that is not sealed, that names an item which nobody keeps here, and that lost what it
// led to.
func reasoningProblem(item responsesItem, rest []responsesItem) string {
	switch {
	case item.ID != "":
		return "item with id " + item.ID + " not found"
	case item.Encrypted == "":
		return "reasoning needs its encrypted_content"
	case item.Summary == nil:
		return "reasoning needs a summary, which may be empty"
	}
	if len(rest) == 0 {
		return "reasoning was provided without its required following item"
	}
	next := rest[0]
	if next.kind() == "reasoning" || next.kind() == "function_call" || next.kind() == "message" && next.Role == "assistant" {
		return ""
	}
	return "reasoning was provided without its required following item"
}
