package turns

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
)

// toolName is what every provider takes as the name of a tool.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// validateTools checks tools and the choice among them as they were sent. A choice of a tool that only the conversation's
// defaults define is checked where the two are put together.
func (o Options) validateTools(field string) error {
	named := make(map[string]bool, len(o.Tools))
	for i, t := range o.Tools {
		at := fmt.Sprintf("%s.tools[%d]", field, i)
		switch {
		case !toolName.MatchString(t.Name):
			return invalid(at+".name", "must be 1 to 64 letters, digits, underscores and hyphens")
		case named[t.Name]:
			return invalid(at+".name", "is the name of another tool too")
		case t.InputSchemaJSON != "" && !isObject(t.InputSchemaJSON):
			return invalid(at+".input_schema_json", "must be a JSON object")
		}
		named[t.Name] = true
	}
	if o.ThinkingBudgetTokens < 0 {
		return invalid(field+".thinking_budget_tokens", "must not be negative")
	}
	return o.ToolChoice.validate(field + ".tool_choice")
}

func (c *ToolChoice) validate(field string) error {
	switch {
	case c == nil:
	case (c.Mode == ToolChoiceTool) != (c.ToolName != ""):
		return invalid(field+".tool_name", "goes with TOOL_CHOICE_MODE_TOOL, and that with a name")
	case c.Mode != "" && c.Mode != ToolChoiceNone && c.Mode != ToolChoiceAny && c.Mode != ToolChoiceTool:
		return invalid(field+".mode", "is not a value that this server knows")
	}
	return nil
}

// checkToolChoice demands of options as they take effect that what must be called is on offer.
func (o Options) checkToolChoice() error {
	c := o.ToolChoice
	if c == nil || c.Mode == "" || c.Mode == ToolChoiceNone {
		return nil
	}
	if len(o.Tools) == 0 {
		return invalid("input.options.tool_choice", "asks for a call and no tool is on offer; send tools with it")
	}
	for _, t := range o.Tools {
		if c.Mode == ToolChoiceAny || t.Name == c.ToolName {
			return nil
		}
	}
	return invalid("input.options.tool_choice.tool_name", "is none of the tools on offer")
}

// isObject reports whether text is one JSON object.
func isObject(text string) bool {
	data := bytes.TrimLeft([]byte(text), " \t\r\n")
	return len(data) > 0 && data[0] == '{' && json.Valid(data)
}
