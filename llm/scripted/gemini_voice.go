package scripted

import (
	"encoding/base64"
	"encoding/json"
)

// geminiUsage is a running total. Thoughts are no part of the candidates' tokens.
type geminiUsage struct {
	Prompt     int `json:"promptTokenCount"`
	Cached     int `json:"cachedContentTokenCount,omitempty"`
	Candidates int `json:"candidatesTokenCount"`
	Thoughts   int `json:"thoughtsTokenCount,omitempty"`
	Total      int `json:"totalTokenCount"`
}

type geminiCandidate struct {
	Content      geminiContent `json:"content"`
	FinishReason string        `json:"finishReason,omitempty"`
	Continuation string        `json:"continuationToken,omitempty"`
	Index        int           `json:"index"`
}

type geminiFeedback struct {
	BlockReason string `json:"blockReason"`
}

// geminiReply is a chunk, and the whole answer.
type geminiReply struct {
	Candidates   []geminiCandidate `json:"candidates,omitempty"`
	Feedback     *geminiFeedback   `json:"promptFeedback,omitempty"`
	Usage        *geminiUsage      `json:"usageMetadata,omitempty"`
	ModelVersion string            `json:"modelVersion"`
	ResponseID   string            `json:"responseId"`
}

// geminiBlocked and geminiContinued are stop reasons of their own here: a prompt that is not answered at all, and a stream
// that would go on in another request.
const (
	geminiBlocked   = "blocked"
	geminiContinued = "CONTINUATION"
)

// geminiUnsigned is the signature of a call for which the script has none: newer models sign each.
var geminiUnsigned = base64.StdEncoding.EncodeToString([]byte("scripted"))

// geminiVoice speaks unnamed chunks. A call comes whole. A thought's signature comes with the first call after it, or at
// the end in a part of its own.
type geminiVoice struct {
	reply
	content   contents
	parts     []geminiPart // all of them, for an answer that is not streamed
	sum       totals       // so far
	signature string       // of thoughts, not yet sent
	called    bool
}

func newGeminiVoice(r reply) voice { return &geminiVoice{reply: r} }

func (v *geminiVoice) answer(candidates ...geminiCandidate) geminiReply {
	return geminiReply{Candidates: candidates, Usage: v.figures(), ModelVersion: v.model, ResponseID: v.id}
}

// chunk frames parts. Of a prompt that is blocked there is no candidate.
func (v *geminiVoice) chunk(parts ...geminiPart) []byte {
	if v.stop == geminiBlocked {
		return nil
	}
	return v.lines.event("", encode(v.answer(geminiCandidate{Content: geminiContent{parts, "model"}})))
}

// say keeps a part, joined to the one before where both are words of a kind, and frames it.
func (v *geminiVoice) say(p geminiPart) []byte {
	if n := len(v.parts); n > 0 && p.Text != nil && p.Signature == "" && v.parts[n-1].Text != nil &&
		v.parts[n-1].Signature == "" && v.parts[n-1].Thought == p.Thought {
		joined := *v.parts[n-1].Text + *p.Text
		v.parts[n-1].Text = &joined
	} else {
		v.parts = append(v.parts, p)
	}
	return v.chunk(p)
}

// figures are the totals so far, as the plan wants them.
func (v *geminiVoice) figures() *geminiUsage {
	u := geminiUsage{Prompt: v.input}
	switch v.usage {
	case UsageZero:
		return &geminiUsage{}
	case UsageNone:
		return nil
	case UsageFull:
		u.Candidates, u.Thoughts = v.sum.output-v.sum.thinking, v.sum.thinking
	}
	u.Total = u.Prompt + u.Candidates + u.Thoughts
	return &u
}

// begin says the first chunk, which has no words yet.
func (v *geminiVoice) begin() []byte { return v.chunk(geminiPart{Text: new(string)}) }

func (v *geminiVoice) piece(p piece) []byte {
	v.content.add(p)
	if p.isDelta() {
		v.sum.output++
	}
	switch p.kind {
	case pieceText, pieceRefusal:
		part := geminiPart{Text: &p.text}
		if v.content[len(v.content)-1].said.Len() == len(p.block.Text) {
			part.Signature = p.block.Signature // with the last words
		}
		return v.say(part)
	case pieceThinking:
		v.sum.thinking++
		return v.say(geminiPart{Text: &p.text, Thought: true})
	case pieceSignature:
		if p.block.Text == "" {
			v.signature = p.text
		}
	case pieceOpen:
		if p.block.Redacted != "" {
			return v.say(geminiPart{Text: new(string), Thought: true, Signature: p.block.Redacted})
		}
	case pieceShut:
		if p.block.ToolUse != nil {
			return v.say(v.call(v.content[len(v.content)-1]))
		}
	}
	return nil
}

// call is a whole call. The first of a reply is signed.
func (v *geminiVoice) call(c content) geminiPart {
	args := json.RawMessage("{}")
	if said := c.said.String(); json.Valid([]byte(said)) {
		args = json.RawMessage(said)
	}
	part := geminiPart{Call: &geminiCall{ID: c.block.ToolUse.ID, Name: c.block.ToolUse.Name, Args: args}}
	if !v.called && v.signature == "" {
		v.signature = geminiUnsigned
	}
	part.Signature, v.signature, v.called = v.signature, "", true
	return part
}

// wrapUp says nothing: the totals were said with every chunk.
func (v *geminiVoice) wrapUp(totals) []byte { return nil }

func (v *geminiVoice) terminal() []byte {
	if v.stop == geminiBlocked {
		return v.lines.event("", encode(v.blocked()))
	}
	return v.lines.event("", encode(v.answer(v.last(v.rest()))))
}

// rest is a signature that no call took.
func (v *geminiVoice) rest() []geminiPart {
	if v.signature == "" {
		return nil
	}
	return []geminiPart{{Text: new(string), Signature: v.signature}}
}

// last is the candidate as it ends.
func (v *geminiVoice) last(parts []geminiPart) geminiCandidate {
	c := geminiCandidate{Content: geminiContent{parts, "model"}, FinishReason: v.finishReason()}
	if c.FinishReason == geminiContinued {
		c.Continuation = geminiUnsigned
	}
	return c
}

func (v *geminiVoice) blocked() geminiReply {
	reply := v.answer()
	reply.Feedback = &geminiFeedback{"PROHIBITED_CONTENT"}
	return reply
}

// finishReason puts Anthropic's word into this vendor's, which has none for calls and for sequences.
func (v *geminiVoice) finishReason() string {
	switch v.stop {
	case "end_turn", "stop_sequence", "tool_use":
		return "STOP"
	case "max_tokens":
		return "MAX_TOKENS"
	case "refusal", "content_filter":
		return "SAFETY"
	default:
		return v.stop
	}
}

func (v *geminiVoice) failure(kind string) []byte {
	if kind == "" {
		kind = "UNAVAILABLE"
	}
	return v.lines.event("", geminiRefusal(refusal{status: geminiCode(kind), kind: kind}))
}

func (v *geminiVoice) failureStatus(kind string) int { return geminiCode(kind) }

func (v *geminiVoice) reports(bool) bool { return v.usage == UsageFull }

func (v *geminiVoice) whole(totals) []byte {
	if v.stop == geminiBlocked {
		return encode(v.blocked())
	}
	return encode(v.answer(v.last(append(v.parts, v.rest()...))))
}
