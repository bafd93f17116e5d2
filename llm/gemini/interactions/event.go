package interactions

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// event is every event of the stream; each type uses some of the fields.
type event struct {
	Type        string          `json:"event_type"`
	ID          string          `json:"event_id"`
	Index       int             `json:"index"`
	Interaction *interaction    `json:"interaction"`
	Step        part            `json:"step"`
	Delta       delta           `json:"delta"`
	Usage       *usage          `json:"usage"`
	Error       *gemini.Failure `json:"error"`
	Metadata    *struct {
		TotalUsage *usage `json:"total_usage"`
	} `json:"metadata"`
}

// interaction is the resource. In events it has no steps; their stream had them.
type interaction struct {
	ID     string            `json:"id"`
	Status string            `json:"status"`
	Usage  *usage            `json:"usage"`
	Steps  json.RawMessage   `json:"steps"`
	Errors []*gemini.Failure `json:"errors"`
	Labels map[string]string `json:"labels"`
}

// part is a step: what it is when it begins, and all of it where it is retrieved.
type part struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Signature string          `json:"signature"`
	Arguments json.RawMessage `json:"arguments"`
	Content   []words         `json:"content"`
	Summary   []words         `json:"summary"`
}

// words are a text with what it cites.
type words struct {
	Text        wire.Text       `json:"text"`
	Annotations json.RawMessage `json:"annotations"`
}

// delta is what a step gains.
type delta struct {
	Type        string          `json:"type"`
	Text        wire.Text       `json:"text"`
	Annotations json.RawMessage `json:"annotations"`
	Content     words           `json:"content"`
	Arguments   wire.Text       `json:"arguments"`
	Signature   string          `json:"signature"`
}

// usage is a running total. Input contains what was read from a cache; thoughts are not in the output, and results of the
// vendor's own tools not in the input.
type usage struct {
	Input   wire.Count `json:"total_input_tokens"`
	Output  wire.Count `json:"total_output_tokens"`
	Cached  wire.Count `json:"total_cached_tokens"`
	Thought wire.Count `json:"total_thought_tokens"`
	ToolUse wire.Count `json:"total_tool_use_tokens"`
}

func (u *usage) turns() turns.Usage {
	return turns.Usage{
		Input:     int64(u.Input) + int64(u.ToolUse),
		CacheRead: int64(u.Cached),
		Output:    int64(u.Output) + int64(u.Thought),
		Reasoning: int64(u.Thought),
	}
}

// parse reads an event into ev. One of a type, a step or a delta that is not known may use
// the names of fields here for something else; the event is given back without it, and so means nothing.
func parse(data []byte, ev *event) error {
	ev.forget()
	if json.Unmarshal(data, ev) == nil {
		return nil
	}
	*ev = event{}
	type typed struct {
		Type string `json:"type"`
	}
	var head struct {
		Type string `json:"event_type"`
		ID   string `json:"event_id"`
	}
	var inner struct {
		Index int   `json:"index"`
		Step  typed `json:"step"`
		Delta typed `json:"delta"`
	}
	if json.Unmarshal(data, &head) != nil {
		return wire.ErrMalformed
	}
	ev.ID = head.ID
	switch {
	case handlers[head.Type] == nil:
		return nil
	case json.Unmarshal(data, &inner) != nil:
		return wire.ErrMalformed
	case head.Type == "step.start" && inner.Step.Type != "" && !kinds[inner.Step.Type]:
		ev.Type, ev.Index, ev.Step.Type = head.Type, inner.Index, inner.Step.Type
		return nil
	case head.Type == "step.delta" && inner.Delta.Type != "" && deltas[inner.Delta.Type] == nil:
		return nil
	}
	return wire.ErrMalformed
}
