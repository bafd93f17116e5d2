package anthropic

import (
	"encoding/json"

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

// startBlock is a block's kind, and text that some servers put there already.
type startBlock struct {
	Type string    `json:"type"`
	Text wire.Text `json:"text"`
}

// delta is both what a block gains and, in message_delta, why the message stopped.
type delta struct {
	Type       string    `json:"type"`
	Text       wire.Text `json:"text"`
	StopReason string    `json:"stop_reason"`
}

// usage holds only what an event names: a later event may name less than an earlier one.
type usage struct {
	Input         *wire.Count `json:"input_tokens"`
	CacheCreation *wire.Count `json:"cache_creation_input_tokens"`
	CacheRead     *wire.Count `json:"cache_read_input_tokens"`
	Output        *wire.Count `json:"output_tokens"`
	OutputDetails *struct {
		Thinking *wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// stream translates the events of one response.
type stream struct {
	blocks wire.Blocks
	meter  wire.Meter
	// index is the open block's, and skipping says that it is of a kind that is not read.
	index    int
	begun    bool
	skipping bool
	total    usage
	stop     string
	event    event // the last one read
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

// kinds are the blocks that are read, and textDeltas the deltas that add to their text.
var (
	kinds      = map[string]turns.BlockKind{"text": turns.KindText}
	textDeltas = map[string]bool{"text_delta": true}
)

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
	if err := parse(e.Data, ev); err != nil {
		return out, false, err
	}
	handle := handlers[ev.Type]
	if handle == nil {
		return out, false, nil
	}
	out, err := handle(s, ev, out)
	return out, err == nil && ev.Type == "message_stop", err
}

// parse reads an event into ev, whose room for text is used again. An event of an unknown type may use the names of
// fields here for something else; it is given back empty, and so means nothing.
func parse(data []byte, ev *event) error {
	*ev = event{Delta: delta{Text: ev.Delta.Text[:0]}}
	if json.Unmarshal(data, ev) == nil {
		return nil
	}
	var head struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &head) != nil || handlers[head.Type] != nil {
		return wire.ErrMalformed
	}
	*ev = event{}
	return nil
}

// start takes the id of the response, so that it is known however the call ends. The output it counts is a first guess and
// is left out: a reply whose output was never counted shall show 0, not the guess.
func (s *stream) start(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Message.ID != "" {
		out = append(out, turns.ResponseStarted{ResponseID: ev.Message.ID})
	}
	if ev.Message.Usage != nil {
		ev.Message.Usage.Output = nil
	}
	return s.report(ev.Message.Usage, out), nil
}

func (s *stream) blockStart(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	kind, known := kinds[ev.ContentBlock.Type]
	s.index, s.begun, s.skipping = ev.Index, true, !known
	if !known {
		return s.blocks.End(out), nil
	}
	out = s.blocks.Start(out, kind)
	return s.blocks.Add(out, ev.ContentBlock.Text), nil
}

// blockDelta adds text to the open block. Text for a block that never began, or that is over, has no place it could go
// to; a reply without it would not be whole.
func (s *stream) blockDelta(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if !textDeltas[ev.Delta.Type] {
		return out, nil
	}
	if !s.begun || ev.Index != s.index {
		return out, wire.ErrMalformed
	}
	if s.skipping {
		return out, nil
	}
	return s.blocks.Add(out, ev.Delta.Text), nil
}

// blockStop ends the open block. The end of a block that was never opened changes nothing: there is no text to lose.
func (s *stream) blockStop(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if !s.begun || ev.Index != s.index {
		return out, nil
	}
	s.begun = false
	return s.blocks.End(out), nil
}

// messageDelta may come several times; the last stop reason holds, and its usage counts the whole message each time.
func (s *stream) messageDelta(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Delta.StopReason != "" {
		s.stop = ev.Delta.StopReason
	}
	return s.report(ev.Usage, out), nil
}

// messageStop is the terminal event. A block that is still open then is taken as ended.
func (s *stream) messageStop(_ *event, out []turns.Delta) ([]turns.Delta, error) {
	out = s.blocks.End(out)
	out = s.meter.Finish(out, s.blocks.HasContent())
	return append(out, turns.Finished{StopReason: stopReasons[s.stop]}), nil
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
	read, write := s.total.CacheRead.Value(), s.total.CacheCreation.Value()
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
}

func (u *usage) reasoning() int64 {
	if u.OutputDetails == nil {
		return 0
	}
	return u.OutputDetails.Thinking.Value()
}
