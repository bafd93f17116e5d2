package anthropic

import (
	"encoding/json"
	"fmt"

	"github.com/turnd/turnd/llm/sse"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// event is every event of the stream; each type uses some of the fields.
type event struct {
	Type         string        `json:"type"`
	Message      startMessage  `json:"message"`
	Index        int           `json:"index"`
	ContentBlock startBlock    `json:"content_block"`
	Delta        delta         `json:"delta"`
	Usage        *usage        `json:"usage"`
	Error        *errorMessage `json:"error"`
}

// startMessage opens the stream. Its usage is the whole input: the only figure that a call which is cut will ever have.
type startMessage struct {
	ID    string `json:"id"`
	Usage *usage `json:"usage"`
}

// startBlock is a block's kind, and content that some servers put there already.
type startBlock struct {
	Type      string          `json:"type"`
	Text      wire.Text       `json:"text"`
	Thinking  wire.Text       `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Citations json.RawMessage `json:"citations"`
}

// delta is both what a block gains and, in message_delta, why the message stopped.
type delta struct {
	Type        string          `json:"type"`
	Text        wire.Text       `json:"text"`
	Thinking    wire.Text       `json:"thinking"`
	PartialJSON wire.Text       `json:"partial_json"`
	Signature   string          `json:"signature"`
	Citation    json.RawMessage `json:"citation"`
	StopReason  string          `json:"stop_reason"`
	StopDetails refusal         `json:"stop_details"`
}

// refusal is how the vendor files a refusal. In another form than this one it says nothing. The explanation beside it is
// text of the vendor's, which must not go back as if the model had said it.
type refusal struct{ category string }

// UnmarshalJSON implements json.Unmarshaler.
func (r *refusal) UnmarshalJSON(data []byte) error {
	var v struct {
		Category string `json:"category"`
	}
	if json.Unmarshal(data, &v) == nil {
		r.category = v.Category
	}
	return nil
}

// usage holds only what an event names: a later event may name less than an earlier one.
type usage struct {
	Input         *wire.Count `json:"input_tokens"`
	CacheCreation *wire.Count `json:"cache_creation_input_tokens"`
	CacheRead     *wire.Count `json:"cache_read_input_tokens"`
	// CacheSplit is CacheCreation by how long it is kept; some servers have the parts and not the sum.
	CacheSplit *struct {
		FiveMinutes *wire.Count `json:"ephemeral_5m_input_tokens"`
		Hour        *wire.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output        *wire.Count `json:"output_tokens"`
	OutputDetails *struct {
		Thinking *wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// stream translates the events of one response.
type stream struct {
	// model is the one that was asked; it is named in the seals.
	model  string
	blocks wire.Blocks
	meter  wire.Meter
	// response is the vendor's id of the message. signature is the open block's so far, cited what its text cites, and input
	// what its start said of a call's input.
	response  string
	signature string
	cited     wire.Listed
	input     json.RawMessage
	// index is the open block's. opaque is the block itself if it is of a kind that is not read.
	index   int
	begun   bool
	opaque  *opaque
	total   usage
	stop    string
	refusal refusal
	event   event // the last one read, and data its bytes
	data    []byte
}

// handlers are what is read of a stream; events of other types mean nothing here. Only stop is terminal.
var handlers = map[string]func(*stream, *event, []turns.Delta) ([]turns.Delta, error){
	"message_start":       (*stream).start,
	"content_block_start": (*stream).blockStart,
	"content_block_delta": (*stream).blockDelta,
	"content_block_stop":  (*stream).blockStop,
	"message_delta":       (*stream).messageDelta,
	"message_stop":        (*stream).messageStop,
	"error":               (*stream).failed,
}

// kinds are the blocks that are read. Others, such as those of tools that the vendor runs itself, are kept as they are.
var kinds = map[string]turns.BlockStarted{
	"text":              {Kind: turns.KindText},
	"thinking":          {Kind: turns.KindThinking},
	"redacted_thinking": {Kind: turns.KindThinking, Redacted: true},
	"tool_use":          {Kind: turns.KindToolUse},
}

// textDeltas are the deltas that add to a block's text: to which kind, and what.
var textDeltas = map[string]struct {
	kind turns.BlockKind
	text func(*delta) wire.Text
}{
	"text_delta":       {turns.KindText, func(d *delta) wire.Text { return d.Text }},
	"thinking_delta":   {turns.KindThinking, func(d *delta) wire.Text { return d.Thinking }},
	"input_json_delta": {turns.KindToolUse, func(d *delta) wire.Text { return d.PartialJSON }},
}

const (
	signatureDelta = "signature_delta"
	citationsDelta = "citations_delta"
)

// maxSignature bounds the signature of one block; a longer one is not kept.
const maxSignature = 256 << 10

// stopReasons are the vendor's words for why a reply ended. One that is not here yet becomes empty, which is allowed:
// the vendor adds words within a version, and a paid reply is not lost over one.
var stopReasons = map[string]turns.StopReason{
	"end_turn":                      turns.StopEndTurn,
	"max_tokens":                    turns.StopLength,
	"stop_sequence":                 turns.StopSequence,
	"tool_use":                      turns.StopToolUse,
	"pause_turn":                    turns.StopPause,
	"refusal":                       turns.StopRefusal,
	"model_context_window_exceeded": turns.StopContextExceeded,
}

// Translate implements wire.Translator.
func (s *stream) Translate(e sse.Event, out []turns.Delta) ([]turns.Delta, bool, error) {
	if len(e.Data) == 0 || e.Name == "ping" {
		return out, false, nil
	}
	ev := &s.event
	s.data = e.Data
	if !ev.scan(e.Data) {
		if err := parse(e.Data, ev); err != nil {
			return out, false, err
		}
	}
	handle := handlers[ev.Type]
	if handle == nil {
		return out, false, nil
	}
	out, err := handle(s, ev, out)
	return out, err == nil && ev.Type == "message_stop", err
}

// Flush implements wire.Translator.
func (s *stream) Flush(out []turns.Delta) []turns.Delta { return s.blocks.Flush(out) }

// forget makes ev an empty event. Its room for text is used again.
func (ev *event) forget() {
	d := &ev.Delta
	*ev = event{Delta: delta{Text: d.Text[:0], Thinking: d.Thinking[:0], PartialJSON: d.PartialJSON[:0]}}
}

// parse reads an event into ev. An event, block or delta of an unknown type may use the
// names of fields here for something else; the event is given back without it, and so means nothing.
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
		Index int   `json:"index"`
		Block typed `json:"content_block"`
		Delta typed `json:"delta"`
	}
	var kind typed
	switch {
	case json.Unmarshal(data, &kind) != nil:
		return wire.ErrMalformed
	case handlers[kind.Type] == nil:
		return nil
	case json.Unmarshal(data, &head) != nil:
		return wire.ErrMalformed
	case kind.Type == "content_block_start" && head.Block.Type != "" && kinds[head.Block.Type].Kind == "":
		ev.Type, ev.Index, ev.ContentBlock.Type = kind.Type, head.Index, head.Block.Type
		return nil
	case kind.Type == "content_block_delta" && head.Delta.Type != "" && !known(head.Delta.Type):
		ev.Type, ev.Index, ev.Delta.Type = kind.Type, head.Index, head.Delta.Type
		return nil
	}
	return wire.ErrMalformed
}

func known(delta string) bool {
	return textDeltas[delta].text != nil || delta == signatureDelta || delta == citationsDelta
}

// start takes the id of the response, so that it is known however the call ends. The output it counts is a first guess and
// is left out: a reply whose output was never counted shall show 0, not the guess.
func (s *stream) start(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Message.ID != "" {
		s.response = ev.Message.ID
		out = append(out, turns.ResponseStarted{ResponseID: ev.Message.ID})
	}
	if ev.Message.Usage != nil {
		ev.Message.Usage.Output = nil
	}
	return s.report(ev.Message.Usage, out), nil
}

func (s *stream) blockStart(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	out = s.endBlock(out)
	b := &ev.ContentBlock
	start, known := kinds[b.Type]
	s.index, s.begun = ev.Index, true
	if !known {
		s.opaque = newOpaque(s.data)
		if b.Type == "" {
			return out, nil
		}
		return s.blocks.Start(out, turns.BlockStarted{Kind: turns.KindOpaque, Type: b.Type}), nil
	}
	s.signature, s.input = b.Signature+b.Data, nil
	if start.Kind == turns.KindToolUse {
		s.input = b.Input
		return s.blocks.StartTool(out, b.ID, fmt.Sprintf("%s-%d", s.response, ev.Index), b.Name), nil
	}
	out = s.blocks.Start(out, start)
	if start.Kind == turns.KindText {
		s.cited.AddAll(b.Citations)
		s.blocks.Add(b.Text)
		return out, nil
	}
	s.blocks.Add(b.Thinking)
	return out, nil
}

// blockDelta adds to the open block. Text for a block that never began, that is over, or that is of another kind, has no
// place it could go to; a reply without it would not be whole.
func (s *stream) blockDelta(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	here := s.begun && ev.Index == s.index
	switch {
	case here && s.opaque != nil:
		s.opaque.add(s.data)
		return out, nil
	case !known(ev.Delta.Type):
		return out, nil
	case !here:
		return out, wire.ErrMalformed
	}
	switch ev.Delta.Type {
	case signatureDelta:
		s.sign(ev.Delta.Signature)
		return out, nil
	case citationsDelta:
		s.cited.Add(ev.Delta.Citation)
		return out, nil
	}
	more := textDeltas[ev.Delta.Type]
	if more.kind != s.blocks.Kind() {
		return out, wire.ErrMalformed
	}
	s.blocks.Add(more.text(&ev.Delta))
	return out, nil
}

// sign adds to the signature, which may come in parts. One that grows too long is given up, for this block.
func (s *stream) sign(part string) {
	if len(s.signature) <= maxSignature {
		s.signature += part
	}
}

// blockStop ends the open block. The end of a block that was never opened changes nothing: there is no text to lose.
func (s *stream) blockStop(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if !s.begun || ev.Index != s.index {
		return out, nil
	}
	s.begun = false
	return s.endBlock(out), nil
}

// endBlock ends the open block, if there is one, with its seal. A call that was given its whole input at its start, as
// some servers do, has it from there.
func (s *stream) endBlock(out []turns.Delta) []turns.Delta {
	switch s.blocks.Kind() {
	case turns.KindText:
		out = s.blocks.Seal(out, sealer.SealSome(s.model, s.cited.JSON()))
	case turns.KindThinking:
		if len(s.signature) <= maxSignature {
			out = s.blocks.Seal(out, sealer.SealSome(s.model, s.signature))
		}
	case turns.KindToolUse:
		if s.blocks.Silent() && len(s.input) > 0 && s.input[0] == '{' {
			s.blocks.Add(wire.Text(s.input))
		}
	case turns.KindOpaque:
		out = s.blocks.Seal(out, sealer.SealSome(s.model, s.opaque.JSON()))
	}
	s.signature, s.input, s.opaque, s.cited = "", nil, nil, wire.Listed{}
	return s.blocks.End(out)
}

// messageDelta may come several times; the last stop reason holds, and its usage counts the whole message each time.
func (s *stream) messageDelta(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Delta.StopReason != "" {
		s.stop, s.refusal = ev.Delta.StopReason, ev.Delta.StopDetails
	}
	return s.report(ev.Usage, out), nil
}

// messageStop is the terminal event. A block that is still open then is taken as ended.
func (s *stream) messageStop(_ *event, out []turns.Delta) ([]turns.Delta, error) {
	out = s.endBlock(out)
	out = s.meter.Finish(out, s.blocks.HasContent())
	if s.stop == "refusal" {
		out = s.refuse(out)
	}
	return append(out, turns.Finished{StopReason: stopReasons[s.stop]}), nil
}

// refuse says how the vendor files its refusal, by a block without text: what the model had said until then stands before it.
func (s *stream) refuse(out []turns.Delta) []turns.Delta {
	if s.refusal.category == "" {
		return out
	}
	out = s.blocks.Start(out, turns.BlockStarted{Kind: turns.KindRefusal, Type: s.refusal.category})
	return s.blocks.End(out)
}

func (s *stream) failed(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	said := ev.Error.said()
	return out, &wire.EventError{Verdict: wire.Verdict{Class: rules.Event(said), Word: said.Word()}}
}

// report merges what an event says of usage and reports the sum: the vendor counts cached input apart, turns does not.
func (s *stream) report(u *usage, out []turns.Delta) []turns.Delta {
	if u == nil {
		return out
	}
	s.total.merge(u)
	read, write := s.total.CacheRead.Value(), s.total.cacheWrite()
	merged := turns.Usage{
		Input:      s.total.Input.Value() + read + write,
		CacheRead:  read,
		CacheWrite: write,
		Output:     s.total.Output.Value(),
		Reasoning:  s.total.reasoning(),
	}
	return s.meter.Report(out, merged)
}

// merge replaces what v names.
func (u *usage) merge(v *usage) {
	for _, f := range []struct{ to, from **wire.Count }{
		{&u.Input, &v.Input}, {&u.CacheCreation, &v.CacheCreation}, {&u.CacheRead, &v.CacheRead}, {&u.Output, &v.Output},
	} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	if v.OutputDetails != nil {
		u.OutputDetails = v.OutputDetails
	}
	if v.CacheSplit != nil {
		u.CacheSplit = v.CacheSplit
	}
}

func (u *usage) cacheWrite() int64 {
	if u.CacheCreation != nil || u.CacheSplit == nil {
		return u.CacheCreation.Value()
	}
	return u.CacheSplit.FiveMinutes.Value() + u.CacheSplit.Hour.Value()
}

func (u *usage) reasoning() int64 {
	if u.OutputDetails == nil {
		return 0
	}
	return u.OutputDetails.Thinking.Value()
}
