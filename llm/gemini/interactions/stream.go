package interactions

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/turnd/turnd/llm/gemini"
	"github.com/turnd/turnd/llm/sse"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// The kinds of steps that are read. Others, such as those of tools that the vendor runs itself, are skipped whole.
const (
	stepOutput  = "model_output"
	stepThought = "thought"
	stepCall    = "function_call"
)

var kinds = map[string]bool{stepOutput: true, stepThought: true, stepCall: true}

// handlers are what is read of a stream; events of other types mean nothing here.
var handlers = map[string]func(*stream, *event, []turns.Delta) ([]turns.Delta, error){
	"interaction.created":         (*stream).created,
	"interaction.status_update":   (*stream).updated,
	"step.start":                  (*stream).stepStart,
	"step.delta":                  (*stream).stepDelta,
	"step.stop":                   (*stream).stepStop,
	"interaction.completed":       (*stream).completed,
	"interaction.requires_action": (*stream).completed,
	"error":                       (*stream).failed,
}

// deltas are the deltas that are read, and the step in which each may come.
var deltas = map[string]*struct {
	step string
	add  func(*stream, *delta, []turns.Delta) []turns.Delta
}{
	"text": {stepOutput, func(s *stream, d *delta, out []turns.Delta) []turns.Delta {
		s.cited.AddAll(d.Annotations)
		return s.say(turns.KindText, d.Text, out)
	}},
	"text_annotation_delta": {stepOutput, func(s *stream, d *delta, out []turns.Delta) []turns.Delta {
		s.cited.AddAll(d.Annotations)
		return out
	}},
	"thought_summary": {stepThought, func(s *stream, d *delta, out []turns.Delta) []turns.Delta {
		return s.say(turns.KindThinking, d.Content.Text, out)
	}},
	"thought_signature": {stepThought, func(s *stream, d *delta, out []turns.Delta) []turns.Delta { s.sign(d.Signature); return out }},
	"arguments_delta":   {stepCall, func(s *stream, d *delta, out []turns.Delta) []turns.Delta { s.blocks.Add(d.Arguments); return out }},
}

// maxSignature bounds the signature of one thought; a longer one is not kept.
const maxSignature = 256 << 10

// notYet are the states in which an interaction has not ended, or would go on by another request.
var notYet = map[string]bool{"": true, "queued": true, "in_progress": true, "requires_continuation": true}

// stopReasons are the vendor's words for how an interaction ended. One that is not here yet becomes empty, which is allowed: a
// paid reply is not lost over one.
var stopReasons = map[string]turns.StopReason{
	"completed":       turns.StopEndTurn,
	"requires_action": turns.StopToolUse,
	"incomplete":      turns.StopLength,
	"budget_exceeded": turns.StopLength,
}

// The states of an interaction that gave no reply. statusCancelled is its code too: the vendor has only a status for it.
const (
	statusFailed    = "failed"
	statusCancelled = "cancelled"
)

// stream translates the events of one interaction, over as many connections as it takes.
type stream struct {
	// model is the one that was asked; it is named in the seals.
	model    string
	blocks   wire.Blocks
	meter    wire.Meter
	reported turns.Usage
	response string
	// last is the id of the last event that was read. behind says that a server begins anew, and what it says is skipped up
	// to that event.
	last   string
	behind bool
	// step is the kind of the open step, empty if none is open or if it is skipped; index is its place, signature what came
	// of its thought's, cited what its text cites, and input what its start said of a call's.
	step      string
	index     int
	begun     bool
	signature string
	cited     wire.Listed
	input     json.RawMessage
	calls     int
	// over says that the interaction ended, however it did.
	over  bool
	event event // the last one read
}

// done is what stands in the stream behind its last event.
var done = []byte("[DONE]")

// Translate implements wire.Translator.
func (s *stream) Translate(e sse.Event, out []turns.Delta) ([]turns.Delta, bool, error) {
	if len(e.Data) == 0 || bytes.Equal(e.Data, done) {
		return out, false, nil
	}
	ev := &s.event
	if !ev.scan(e.Data) {
		if err := parse(e.Data, ev); err != nil {
			return out, false, err
		}
	}
	if s.isBehind(ev) {
		return out, false, nil
	}
	if ev.ID != "" {
		s.last = ev.ID
	}
	handle := handlers[ev.Type]
	if handle == nil {
		return out, false, nil
	}
	out, err := handle(s, ev, out)
	return out, err == nil && s.over, err
}

// Flush implements wire.Translator.
func (s *stream) Flush(out []turns.Delta) []turns.Delta { return s.blocks.Flush(out) }

// isBehind reports whether an event was read before, by a server that begins anew though it was told where to go on.
func (s *stream) isBehind(ev *event) bool {
	if ev.Type == "interaction.created" && s.response != "" && s.last != "" {
		s.behind = true
	}
	if !s.behind {
		return false
	}
	s.behind = ev.ID != s.last
	return true
}

func (s *stream) created(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Interaction == nil {
		return out, nil
	}
	return s.report(ev.Interaction.Usage, s.named(ev.Interaction.ID, out)), nil
}

// named takes the id of the interaction, so that it is known however the call ends.
func (s *stream) named(id string, out []turns.Delta) []turns.Delta {
	if id == "" || s.response != "" {
		return out
	}
	s.response = id
	return append(out, turns.ResponseStarted{ResponseID: id})
}

func (s *stream) updated(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	return s.report(ev.Usage, out), nil
}

// stepStart begins a step. What it holds already is taken.
func (s *stream) stepStart(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	out = s.endStep(out)
	s.begin(ev.Step.Type, ev.Index)
	return s.start(&ev.Step, out), nil
}

func (s *stream) begin(kind string, index int) {
	s.index, s.begun, s.step = index, true, ""
	if kinds[kind] {
		s.step = kind
	}
}

// start says what a step holds. A block begins with its first word: only then it is known whether a thought shows any.
func (s *stream) start(p *part, out []turns.Delta) []turns.Delta {
	switch s.step {
	case stepOutput:
		for _, w := range p.Content {
			s.cited.AddAll(w.Annotations)
			out = s.say(turns.KindText, w.Text, out)
		}
	case stepThought:
		for _, w := range p.Summary {
			out = s.say(turns.KindThinking, w.Text, out)
		}
		s.sign(p.Signature)
	case stepCall:
		s.input = p.Arguments
		fallback := fmt.Sprintf("call_%.12x", sha256.Sum256(fmt.Appendf(nil, "%d %s", s.calls, s.response)))
		s.calls++
		out = s.blocks.StartTool(out, p.ID, fallback, p.Name)
	}
	return out
}

// stepDelta adds to the open step. Some servers leave out the start of a step of words; what has no place it could go to
// makes the reply less than whole.
func (s *stream) stepDelta(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Metadata != nil {
		out = s.report(ev.Metadata.TotalUsage, out)
	}
	d := deltas[ev.Delta.Type]
	if d == nil {
		return out, nil
	}
	if !s.begun && d.step != stepCall {
		s.begin(d.step, ev.Index)
	}
	switch {
	case !s.begun || ev.Index != s.index:
		return out, wire.ErrMalformed
	case s.step == "":
		return out, nil
	case s.step != d.step:
		return out, wire.ErrMalformed
	}
	return d.add(s, &ev.Delta, out), nil
}

// say adds words to the open step.
func (s *stream) say(kind turns.BlockKind, t wire.Text, out []turns.Delta) []turns.Delta {
	if len(t) == 0 {
		return out
	}
	out = s.blocks.In(out, kind)
	s.blocks.Add(t)
	return out
}

// sign adds to the signature, which may come in parts. One that grows too long is given up.
func (s *stream) sign(part string) {
	if len(s.signature) <= maxSignature {
		s.signature += part
	}
}

func (s *stream) stepStop(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if s.begun && ev.Index == s.index {
		out = s.endStep(out)
	}
	return s.report(ev.Usage, out), nil
}

// endStep ends the open step, if there is one, with its seal. A thought of which nothing was shown is its seal alone. A call
// that was given its whole input at its start has it from there.
func (s *stream) endStep(out []turns.Delta) []turns.Delta {
	switch s.step {
	case stepOutput:
		if s.blocks.Kind() == turns.KindText {
			out = s.blocks.Seal(out, sealer.SealSome(s.model, s.cited.JSON()))
		}
	case stepThought:
		if len(s.signature) > maxSignature {
			s.signature = ""
		}
		if s.blocks.Kind() != turns.KindThinking && s.signature != "" {
			out = s.blocks.Start(out, turns.BlockStarted{Kind: turns.KindThinking, Redacted: true})
		}
		out = s.blocks.Seal(out, sealer.SealSome(s.model, s.signature))
	case stepCall:
		if s.blocks.Silent() && len(s.input) > 0 && s.input[0] == '{' {
			s.blocks.Add(wire.Text(s.input))
		}
	}
	s.step, s.begun, s.signature, s.cited, s.input = "", false, "", wire.Listed{}, nil
	return s.blocks.End(out)
}

// completed ends the reply as the interaction says.
func (s *stream) completed(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Interaction == nil {
		return out, wire.ErrMalformed
	}
	return s.conclude(ev.Interaction, out)
}

func (s *stream) conclude(i *interaction, out []turns.Delta) ([]turns.Delta, error) {
	out = s.report(i.Usage, s.named(i.ID, out))
	if notYet[i.Status] {
		return out, nil
	}
	out = s.endStep(out)
	s.over = true
	if i.Status == statusFailed || i.Status == statusCancelled {
		return out, &wire.EventError{Verdict: verdictOf(i)}
	}
	reason := stopReasons[i.Status]
	if reason == turns.StopEndTurn && s.calls > 0 {
		reason = turns.StopToolUse
	}
	out = s.meter.Finish(out, s.blocks.HasContent())
	return append(out, turns.Finished{StopReason: reason}), nil
}

// failed is an error event. It does not end an interaction in the background by itself: only its status does.
func (s *stream) failed(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	return out, certain(ev.Error.EventError())
}

// verdictOf is how an interaction failed.
func verdictOf(i *interaction) wire.Verdict {
	switch {
	case i.Status == statusCancelled:
		return wire.Verdict{Class: turns.ClassTerminal, Word: statusCancelled}
	case len(i.Errors) > 0:
		return certain(i.Errors[0].EventError()).Verdict
	}
	return wire.Verdict{Class: turns.ClassTransient}
}

// certain makes of an error whose word no table knows one that may be tried again: the vendor says that it failed.
func certain(err *wire.EventError) *wire.EventError {
	if err.Verdict.Class == turns.ClassAmbiguous && err.Verdict.Word != "" && !gemini.IsKnown(err.Verdict.Word) {
		err.Verdict.Class = turns.ClassTransient
	}
	return err
}

// report reports a total where it changed.
func (s *stream) report(u *usage, out []turns.Delta) []turns.Delta {
	if u == nil {
		return out
	}
	total := u.turns()
	if total == s.reported && total != (turns.Usage{}) {
		return out
	}
	s.reported = total
	return s.meter.Report(out, total)
}
