package openai

import (
	"encoding/json"
	"strings"

	"github.com/turnd/turnd/llm/sse"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// doneMark is the data of the terminal event.
const doneMark = "[DONE]"

// chunk is every event but the terminal one. The last chunk before it has usage and no choices.
type chunk struct {
	ID      string        `json:"id"`
	Choices []choice      `json:"choices"`
	Usage   *usage        `json:"usage"`
	Error   *errorMessage `json:"error"`
}

// choice is one alternative of the reply. One is asked for; what comes at another index is not it.
type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	FinishReason string `json:"finish_reason"`
	// Error is that of servers whose finish_reason says that there is one.
	Error *errorMessage `json:"error"`
}

// delta is what the reply gains. Most fields are null or missing in most chunks, which reads as empty. The two names of
// reasoning are those of compatible servers; some say both, with the same text.
type delta struct {
	Content   wire.Text   `json:"content"`
	Refusal   wire.Text   `json:"refusal"`
	Reasoning looseText   `json:"reasoning_content"`
	Thoughts  looseText   `json:"reasoning"`
	ToolCalls []callDelta `json:"tool_calls"`
}

// looseText is text in a field that is not the vendor's own: whoever puts something else there has put nothing there.
type looseText struct{ text wire.Text }

// UnmarshalJSON implements json.Unmarshaler.
func (t *looseText) UnmarshalJSON(data []byte) error {
	if t.text.UnmarshalJSON(data) != nil {
		t.text = nil
	}
	return nil
}

func (d *delta) reasoning() wire.Text {
	if len(d.Reasoning.text) > 0 {
		return d.Reasoning.text
	}
	return d.Thoughts.text
}

// parts are the fields of a delta that are text, each a kind of block.
var parts = []struct {
	kind turns.BlockKind
	text func(*delta) wire.Text
}{
	{turns.KindThinking, (*delta).reasoning},
	{turns.KindText, func(d *delta) wire.Text { return d.Content }},
	{turns.KindRefusal, func(d *delta) wire.Text { return d.Refusal }},
}

// usage is the vendor's count. Unlike on other wires its totals contain their details.
type usage struct {
	Prompt        wire.Count `json:"prompt_tokens"`
	Completion    wire.Count `json:"completion_tokens"`
	PromptDetails struct {
		Cached     wire.Count `json:"cached_tokens"`
		CacheWrite wire.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// stopReasons are the vendor's words for why a reply ended, and after them those of compatible servers and of gateways
// before other vendors. One that is not here becomes empty, which is allowed: a paid reply is not lost over a word.
var stopReasons = map[string]turns.StopReason{
	"stop":           turns.StopEndTurn,
	"length":         turns.StopLength,
	"tool_calls":     turns.StopToolUse,
	"function_call":  turns.StopToolUse,
	"content_filter": turns.StopContentFilter,

	"end_turn":      turns.StopEndTurn,
	"stop_sequence": turns.StopSequence,
	"max_tokens":    turns.StopLength,
	"tool_use":      turns.StopToolUse,
	"refusal":       turns.StopRefusal,
	"pause_turn":    turns.StopPause,
	"model_length":  turns.StopContextExceeded,
	"eos":           turns.StopEndTurn,
	"safety":        turns.StopContentFilter,

	"model_context_window_exceeded": turns.StopContextExceeded,
}

// failures are the words of compatible servers for a reply that broke off: one that failed there, and one that somebody
// else ended.
var failures = map[string]turns.CallClass{
	"error": turns.ClassTransient,
	"abort": turns.ClassAmbiguous,
}

// stream translates the chunks of one response.
type stream struct {
	// model is the one that was asked; it is named in the seals.
	model   string
	blocks  wire.Blocks
	meter   wire.Meter
	calls   calls
	id      string
	refused bool
	finish  string
	chunk   chunk // the last one read
}

// Translate implements wire.Translator.
func (s *stream) Translate(e sse.Event, out []turns.Delta) ([]turns.Delta, bool, error) {
	switch string(e.Data) {
	case "":
		return out, false, nil
	case doneMark:
		return s.done(out)
	}
	c := &s.chunk
	if !c.scan(e.Data, s.id) {
		if *c = (chunk{}); json.Unmarshal(e.Data, c) != nil {
			return out, false, wire.ErrMalformed
		}
	}
	if c.Error != nil {
		said := c.Error.said()
		return out, false, &wire.EventError{Verdict: wire.Verdict{Class: rules.Event(said), Word: said.Word()}}
	}
	out = s.start(c.ID, out)
	for i := range c.Choices {
		var err error
		if out, err = s.choice(&c.Choices[i], out); err != nil {
			return out, false, err
		}
	}
	return s.report(c.Usage, out), false, nil
}

// Flush implements wire.Translator.
func (s *stream) Flush(out []turns.Delta) []turns.Delta { return s.blocks.Flush(out) }

// start takes the id of the response from the first chunk that has one; all chunks repeat it.
func (s *stream) start(id string, out []turns.Delta) []turns.Delta {
	if s.id != "" || id == "" {
		return out
	}
	s.id = id
	return append(out, turns.ResponseStarted{ResponseID: id})
}

// choice adds what a chunk says of the reply. After its finish_reason nothing is added any more. Text that comes after
// calls ends them: it has to stand behind them.
func (s *stream) choice(c *choice, out []turns.Delta) ([]turns.Delta, error) {
	if c.Index != 0 || s.finish != "" {
		return out, nil
	}
	for _, p := range parts {
		text := p.text(&c.Delta)
		if len(text) == 0 {
			continue
		}
		s.refused = s.refused || p.kind == turns.KindRefusal
		out = s.calls.end(out, &s.blocks, s.id)
		if s.blocks.Kind() != p.kind {
			out = s.blocks.Start(out, turns.BlockStarted{Kind: p.kind})
			if p.kind == turns.KindRefusal {
				out = s.blocks.Seal(out, sealer.Seal(s.model, ""))
			}
		}
		s.blocks.Add(text)
	}
	for i := range c.Delta.ToolCalls {
		var err error
		if out, err = s.calls.add(out, &s.blocks, s.id, &c.Delta.ToolCalls[i]); err != nil {
			return out, err
		}
	}
	if c.FinishReason == "" {
		return out, nil
	}
	if class, failed := failures[c.FinishReason]; failed {
		return out, broken(class, c)
	}
	s.finish = c.FinishReason
	out = s.calls.end(out, &s.blocks, s.id)
	return s.blocks.End(out), nil
}

// broken says how a reply broke off, by its error's own code where that says more than the word.
func broken(class turns.CallClass, c *choice) error {
	said := c.Error.said()
	if !said.Own {
		return &wire.EventError{Verdict: wire.Verdict{Class: class, Word: c.FinishReason}}
	}
	return &wire.EventError{Verdict: wire.Verdict{Class: rules.Event(said), Word: said.Word()}}
}

// report passes on the vendor's totals: cached input and reasoning are in them already. A server that reports a running
// total in every chunk is followed as it goes.
func (s *stream) report(u *usage, out []turns.Delta) []turns.Delta {
	if u == nil {
		return out
	}
	return s.meter.Report(out, turns.Usage{
		Input:      int64(u.Prompt),
		CacheRead:  int64(u.PromptDetails.Cached),
		CacheWrite: int64(u.PromptDetails.CacheWrite),
		Output:     int64(u.Completion),
		Reasoning:  int64(u.CompletionDetails.Reasoning),
	})
}

// done ends the reply, if the model said before why it stopped.
func (s *stream) done(out []turns.Delta) ([]turns.Delta, bool, error) {
	if s.finish == "" {
		return out, false, wire.ErrNoTerminal
	}
	out = s.meter.Finish(out, s.blocks.HasContent())
	return append(out, turns.Finished{StopReason: s.stopReason()}), true, nil
}

// stopReason maps the vendor's word. A refusal has none of its own: it stops like any other reply. Some compatible servers
// say the same of a reply that waits for results.
func (s *stream) stopReason() turns.StopReason {
	reason := stopReasons[strings.ToLower(s.finish)]
	switch {
	case reason == turns.StopEndTurn && s.refused:
		return turns.StopRefusal
	case reason == turns.StopEndTurn && len(s.calls.all) > 0:
		return turns.StopToolUse
	}
	return reason
}
