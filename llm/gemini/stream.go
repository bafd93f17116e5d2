package gemini

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/turnd/turnd/llm/sse"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// chunk is every event of the stream: a part of the answer, or an error.
type chunk struct {
	ResponseID     string      `json:"responseId"`
	Candidates     []candidate `json:"candidates"`
	PromptFeedback *feedback   `json:"promptFeedback"`
	UsageMetadata  *usage      `json:"usageMetadata"`
	Error          *Failure    `json:"error"`
}

// candidate is one of the answers; only one is ever asked for.
type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []saidPart `json:"parts"`
	} `json:"content"`
	FinishReason string `json:"finishReason"`
}

// saidPart is a part that came. Those of other kinds have none of these fields.
type saidPart struct {
	Text         wire.Text `json:"text"`
	Thought      bool      `json:"thought"`
	Signature    string    `json:"thoughtSignature"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

type feedback struct {
	BlockReason string `json:"blockReason"`
}

// usage is a running total of the response. The prompt contains what was read from a cache; thoughts are not in the
// candidates, and results of the vendor's own tools not in the prompt.
type usage struct {
	Prompt     *wire.Count `json:"promptTokenCount"`
	Cached     *wire.Count `json:"cachedContentTokenCount"`
	Candidates *wire.Count `json:"candidatesTokenCount"`
	Thoughts   *wire.Count `json:"thoughtsTokenCount"`
	ToolUse    *wire.Count `json:"toolUsePromptTokenCount"`
}

// notYet are the reasons with which a stream does not end: it goes on, or would by another request.
var notYet = map[string]bool{"": true, "FINISH_REASON_UNSPECIFIED": true, "CONTINUATION": true}

// stopReasons are the vendor's words for why a reply ended. A call that could not be read, or that nobody asked for, is no
// reason that clients know, as is any word that is not here: it becomes empty, and the reply stays whole as far as it came.
var stopReasons = map[string]turns.StopReason{
	"STOP":                     turns.StopEndTurn,
	"MAX_TOKENS":               turns.StopLength,
	"SAFETY":                   turns.StopContentFilter,
	"RECITATION":               turns.StopContentFilter,
	"BLOCKLIST":                turns.StopContentFilter,
	"PROHIBITED_CONTENT":       turns.StopContentFilter,
	"SPII":                     turns.StopContentFilter,
	"IMAGE_SAFETY":             turns.StopContentFilter,
	"IMAGE_PROHIBITED_CONTENT": turns.StopContentFilter,
	"IMAGE_RECITATION":         turns.StopContentFilter,
	"LANGUAGE":                 "",
	"MALFORMED_FUNCTION_CALL":  "",
	"UNEXPECTED_TOOL_CALL":     "",
	"TOO_MANY_TOOL_CALLS":      "",
	"OTHER":                    "",
}

// stream translates the chunks of one response.
type stream struct {
	// model is the one that was asked; it is named in the seals.
	model    string
	blocks   wire.Blocks
	meter    wire.Meter
	response string
	calls    int
	total    usage
	reported turns.Usage
	chunk    chunk // the last one read
}

// Translate implements wire.Translator.
func (s *stream) Translate(e sse.Event, out []turns.Delta) ([]turns.Delta, bool, error) {
	if len(e.Data) == 0 {
		return out, false, nil
	}
	c := &s.chunk
	if !c.scan(e.Data, s.response) {
		if *c = (chunk{}); json.Unmarshal(e.Data, c) != nil {
			return out, false, wire.ErrMalformed
		}
	}
	if c.ResponseID != "" && s.response == "" {
		s.response = c.ResponseID
		out = append(out, turns.ResponseStarted{ResponseID: s.response})
	}
	if c.Error != nil {
		return s.report(c.UsageMetadata, out), false, c.Error.EventError()
	}
	finished := ""
	for i := range c.Candidates {
		if a := &c.Candidates[i]; a.Index == 0 {
			finished = a.FinishReason
			for j := range a.Content.Parts {
				out = s.part(out, &a.Content.Parts[j])
			}
		}
	}
	out = s.report(c.UsageMetadata, out)
	if c.PromptFeedback != nil && c.PromptFeedback.BlockReason != "" {
		return s.finish(out, turns.StopContentFilter), true, nil
	}
	if notYet[finished] {
		return out, false, nil
	}
	return s.finish(out, s.stopReason(finished)), true, nil
}

// Flush implements wire.Translator.
func (s *stream) Flush(out []turns.Delta) []turns.Delta { return s.blocks.Flush(out) }

// part takes one part. The vendor does not mark where a text begins and ends: it is over where something else begins, and
// where it is signed.
func (s *stream) part(out []turns.Delta, p *saidPart) []turns.Delta {
	switch {
	case p.FunctionCall != nil:
		return s.call(out, p)
	case p.Thought:
		return s.thought(out, p)
	}
	if len(p.Text) > 0 {
		out = s.blocks.In(out, turns.KindText)
		s.blocks.Add(p.Text)
	}
	if p.Signature == "" {
		return out
	}
	if len(p.Text) == 0 {
		out = s.blocks.Start(out, turns.BlockStarted{Kind: turns.KindThinking, Redacted: true})
	}
	out = s.blocks.Seal(out, sealer.Seal(s.model, p.Signature))
	return s.blocks.End(out)
}

func (s *stream) thought(out []turns.Delta, p *saidPart) []turns.Delta {
	if len(p.Text) > 0 {
		out = s.blocks.In(out, turns.KindThinking)
		s.blocks.Add(p.Text)
	}
	if p.Signature == "" {
		return out
	}
	if s.blocks.Kind() != turns.KindThinking {
		out = s.blocks.Start(out, turns.BlockStarted{Kind: turns.KindThinking, Redacted: true})
	}
	out = s.blocks.Seal(out, sealer.Seal(s.model, p.Signature))
	return s.blocks.End(out)
}

// call is a whole call. One without an id gets one that is the same each time the stream is read.
func (s *stream) call(out []turns.Delta, p *saidPart) []turns.Delta {
	f := p.FunctionCall
	fallback := fmt.Sprintf("call_%.12x", sha256.Sum256(fmt.Appendf(nil, "%d %s", s.calls, s.response)))
	s.calls++
	out = s.blocks.StartTool(out, f.ID, fallback, f.Name)
	if len(f.Args) > 0 && f.Args[0] == '{' {
		s.blocks.Add(wire.Text(f.Args))
	}
	out = s.blocks.Seal(out, sealer.Seal(s.model, p.Signature))
	return s.blocks.End(out)
}

func (s *stream) finish(out []turns.Delta, why turns.StopReason) []turns.Delta {
	out = s.blocks.End(out)
	out = s.meter.Finish(out, s.blocks.HasContent())
	return append(out, turns.Finished{StopReason: why})
}

// stopReason reads the vendor's word. It has none for a reply that ends with calls.
func (s *stream) stopReason(word string) turns.StopReason {
	if word == "STOP" && s.calls > 0 {
		return turns.StopToolUse
	}
	return stopReasons[word]
}

// report merges what a chunk says of usage and reports the total where it changed.
func (s *stream) report(u *usage, out []turns.Delta) []turns.Delta {
	if u == nil {
		return out
	}
	s.total.merge(u)
	thoughts := s.total.Thoughts.Value()
	merged := turns.Usage{
		Input:     s.total.Prompt.Value() + s.total.ToolUse.Value(),
		CacheRead: s.total.Cached.Value(),
		Output:    s.total.Candidates.Value() + thoughts,
		Reasoning: thoughts,
	}
	if merged == s.reported && merged != (turns.Usage{}) {
		return out
	}
	s.reported = merged
	return s.meter.Report(out, merged)
}

// merge replaces what v names: a count that is zero is left out by this vendor.
func (u *usage) merge(v *usage) {
	for _, f := range []struct{ to, from **wire.Count }{
		{&u.Prompt, &v.Prompt}, {&u.Cached, &v.Cached}, {&u.Candidates, &v.Candidates}, {&u.Thoughts, &v.Thoughts},
		{&u.ToolUse, &v.ToolUse},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
}
