package server

import (
	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
	"github.com/turnd/turnd/turns"
)

// optionsFromWire reads options; no message at all is the same as one with nothing set.
func optionsFromWire(field string, o *turnsv1.GenerationOptions) (turns.Options, error) {
	out := turns.Options{
		Model:                o.GetModel(),
		System:               o.GetSystem(),
		MaxOutputTokens:      o.GetMaxOutputTokens(),
		StopSequences:        o.GetStopSequences(),
		ThinkingBudgetTokens: o.GetThinkingBudgetTokens(),
	}
	if o != nil && o.Temperature != nil {
		t := o.GetTemperature()
		out.Temperature = &t
	}
	for _, t := range o.GetTools() {
		out.Tools = append(out.Tools, turns.Tool{Name: t.GetName(), Description: t.GetDescription(), InputSchemaJSON: t.GetInputSchemaJson()})
	}
	if c := o.GetToolChoice(); c != nil {
		mode, ok := toolChoiceModes.domain(c.GetMode())
		if !ok {
			return turns.Options{}, invalidField(field+".tool_choice.mode", "is not a value that this server knows")
		}
		out.ToolChoice = &turns.ToolChoice{Mode: mode, ToolName: c.GetToolName()}
	}
	return out, nil
}

// optionsToWire writes options; nothing set is no message at all.
func optionsToWire(o turns.Options) *turnsv1.GenerationOptions {
	out := &turnsv1.GenerationOptions{
		Model:                o.Model,
		System:               o.System,
		MaxOutputTokens:      o.MaxOutputTokens,
		StopSequences:        o.StopSequences,
		ThinkingBudgetTokens: o.ThinkingBudgetTokens,
		Temperature:          o.Temperature,
	}
	for _, t := range o.Tools {
		out.Tools = append(out.Tools, &turnsv1.Tool{Name: t.Name, Description: t.Description, InputSchemaJson: t.InputSchemaJSON})
	}
	if c := o.ToolChoice; c != nil {
		out.ToolChoice = &turnsv1.ToolChoice{Mode: toolChoiceModes.wire(c.Mode), ToolName: c.ToolName}
	}
	if isUnset(o) {
		return nil
	}
	return out
}

func isUnset(o turns.Options) bool {
	return o.Model == "" && o.System == "" && o.MaxOutputTokens == 0 && o.ThinkingBudgetTokens == 0 && o.Temperature == nil &&
		o.ToolChoice == nil && len(o.StopSequences) == 0 && len(o.Tools) == 0
}

// optionsSize is the room that options take, in bytes of their texts.
func optionsSize(o turns.Options) int {
	size := len(o.Model) + len(o.System)
	for _, s := range o.StopSequences {
		size += len(s)
	}
	for _, t := range o.Tools {
		size += len(t.Name) + len(t.Description) + len(t.InputSchemaJSON)
	}
	return size
}
