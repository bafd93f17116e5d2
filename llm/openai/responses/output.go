package responses

import (
	"encoding/json"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// The kinds of items that are read. Others, such as those of tools that the vendor runs itself, are skipped whole.
const (
	kindMessage   = "message"
	kindReasoning = "reasoning"
	kindCall      = "function_call"
)

// response is a response in all its states, as far as it is read.
type response struct {
	ID         string          `json:"id"`
	Status     string          `json:"status"`
	Output     json.RawMessage `json:"output"`
	Usage      *usage          `json:"usage"`
	Error      *failed         `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Metadata json.RawMessage `json:"metadata"`
}

// failed is why a response failed. Code may be missing.
type failed struct {
	Code string `json:"code"`
}

// output is an item of a response: what it is when it begins, and all of it when it is over.
type output struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Status    string          `json:"status"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Summary   []part          `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
	Phase     json.RawMessage `json:"phase"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments wire.Text       `json:"arguments"`
}

// UnmarshalJSON implements json.Unmarshaler. An item that is not read may use the names of fields here for something else.
func (o *output) UnmarshalJSON(data []byte) error {
	type plain output
	if json.Unmarshal(data, (*plain)(o)) == nil {
		return nil
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	*o = output{Type: head.Type}
	if o.isRead() {
		return wire.ErrMalformed
	}
	return nil
}

func (o *output) isRead() bool {
	return o.Type == kindMessage || o.Type == kindReasoning || o.Type == kindCall
}

// part is a part of a message or of a summary.
type part struct {
	Type    string    `json:"type"`
	Text    wire.Text `json:"text"`
	Refusal wire.Text `json:"refusal"`
	// Annotations are what a text cites, in a form of their own each.
	Annotations json.RawMessage `json:"annotations"`
}

// cited are the annotations as they go back; nil is none.
func (p *part) cited() json.RawMessage {
	var each []json.RawMessage
	if json.Unmarshal(p.Annotations, &each) != nil || len(each) == 0 {
		return nil
	}
	return p.Annotations
}

// phase is which part of the answer a message is; empty where the vendor does not say.
func (o *output) phase() (phase string) {
	_ = json.Unmarshal(o.Phase, &phase) // what is no text says nothing
	return phase
}

// parts reads the content of an item; what can't be read has none.
func (o *output) parts() (parts []part) {
	_ = json.Unmarshal(o.Content, &parts)
	return parts
}

// usage is the vendor's count. Its totals contain their details.
type usage struct {
	Input        wire.Count `json:"input_tokens"`
	InputDetails struct {
		Cached     wire.Count `json:"cached_tokens"`
		CacheWrite wire.Count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        wire.Count `json:"output_tokens"`
	OutputDetails struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) turns() turns.Usage {
	return turns.Usage{
		Input:      int64(u.Input),
		CacheRead:  int64(u.InputDetails.Cached),
		CacheWrite: int64(u.InputDetails.CacheWrite),
		Output:     int64(u.Output),
		Reasoning:  int64(u.OutputDetails.Reasoning),
	}
}

// incompleteReasons are the vendor's words for why a response was cut short. One that is not here becomes empty, which is
// allowed: a paid reply is not lost over a word.
var incompleteReasons = map[string]turns.StopReason{
	"max_output_tokens": turns.StopLength,
	"max_tokens":        turns.StopLength,
	"content_filter":    turns.StopContentFilter,
}
