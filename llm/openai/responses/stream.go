package responses

import (
	"encoding/json"
	"fmt"

	"github.com/turnd/turnd/llm/sse"
	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// event is every event of the stream; each type uses some of the fields.
type event struct {
	Type     string    `json:"type"`
	Number   number    `json:"sequence_number"`
	Response *response `json:"response"`
	Index    int       `json:"output_index"`
	Part     part      `json:"part"`
	Delta    wire.Text `json:"delta"`
	Item     *output   `json:"item"`
	Code     string    `json:"code"`
	// Error is where some servers put the code.
	Error *failed `json:"error"`
}

// number is a number that may be missing.
type number struct {
	n     int
	known bool
}

// UnmarshalJSON implements json.Unmarshaler. null is a missing one.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = number{known: string(data) != "null"}
	return json.Unmarshal(data, &n.n)
}

// stream translates the events of one response, over as many connections as it takes.
type stream struct {
	// model is the one that was asked; it is named in the seals.
	model  string
	blocks wire.Blocks
	meter  wire.Meter
	// response is the vendor's id, last the number of the last event that was read; -1 before the first.
	response string
	last     int
	// item is the kind of the open item and index its place; skipping says that it is not read, said that some of it was.
	item     string
	index    int
	open     bool
	said     bool
	skipping bool
	// beside is what is known of the open text besides its words, and of the item's other texts its phase.
	beside  beside
	items   int // that were begun
	calls   bool
	refused bool
	over    bool // the response has ended, however it did
	seen    progress
	event   event // the last one read
}

// handlers are what is read of a stream; events of other types mean nothing here.
var handlers = map[string]func(*stream, *event, []turns.Delta) ([]turns.Delta, error){
	"response.queued":                        (*stream).started,
	"response.created":                       (*stream).started,
	"response.in_progress":                   (*stream).started,
	"response.output_item.added":             (*stream).itemAdded,
	"response.output_item.done":              (*stream).itemDone,
	"response.content_part.added":            (*stream).partAdded,
	"response.content_part.done":             (*stream).partDone,
	"response.reasoning_summary_part.added":  (*stream).summaryAdded,
	"response.output_text.delta":             (*stream).text,
	"response.refusal.delta":                 (*stream).refusal,
	"response.reasoning_summary_text.delta":  (*stream).thinking,
	"response.reasoning_text.delta":          (*stream).thinking,
	"response.function_call_arguments.delta": (*stream).arguments,
	"response.completed":                     (*stream).ended,
	"response.incomplete":                    (*stream).ended,
	"response.failed":                        (*stream).ended,
	"response.cancelled":                     (*stream).ended,
	"error":                                  (*stream).failed,
}

// Translate implements wire.Translator. An event that was read before, on a connection that broke, is skipped.
func (s *stream) Translate(e sse.Event, out []turns.Delta) ([]turns.Delta, bool, error) {
	if len(e.Data) == 0 || string(e.Data) == "[DONE]" {
		return out, false, nil
	}
	ev := &s.event
	if !ev.scan(e.Data) {
		if err := parse(e.Data, ev); err != nil {
			return out, false, err
		}
	}
	handle := handlers[ev.Type]
	if ev.Number.known {
		if ev.Number.n <= s.last {
			return out, false, nil
		}
		s.last = ev.Number.n
	}
	if handle == nil {
		return out, false, nil
	}
	out, err := handle(s, ev, out)
	return out, err == nil && s.over, err
}

// Flush implements wire.Translator.
func (s *stream) Flush(out []turns.Delta) []turns.Delta { return s.blocks.Flush(out) }

// parse reads an event. One of an unknown type may use the names of fields here for something else; it means nothing.
func parse(data []byte, ev *event) error {
	ev.forget()
	if json.Unmarshal(data, ev) == nil {
		return nil
	}
	var head struct {
		Type   string `json:"type"`
		Number number `json:"sequence_number"`
	}
	if json.Unmarshal(data, &head) != nil || handlers[head.Type] != nil {
		return wire.ErrMalformed
	}
	*ev = event{Type: head.Type, Number: head.Number}
	return nil
}

// started takes the id of the response, so that it is known however the call ends.
func (s *stream) started(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Response == nil {
		return out, nil
	}
	return s.named(ev.Response.ID, out), nil
}

func (s *stream) named(id string, out []turns.Delta) []turns.Delta {
	if s.response != "" || id == "" {
		return out
	}
	s.response = id
	return append(out, turns.ResponseStarted{ResponseID: id})
}

func (s *stream) itemAdded(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Item == nil {
		return out, wire.ErrMalformed
	}
	return s.begin(ev.Index, ev.Item, out), nil
}

// begin opens an item. Its blocks begin with what is said in it; only a call has all of its beginning here.
func (s *stream) begin(index int, o *output, out []turns.Delta) []turns.Delta {
	out = s.blocks.End(out)
	s.item, s.index, s.open, s.said, s.beside = o.Type, index, true, false, beside{Phase: o.phase()}
	s.skipping = !o.isRead()
	s.items++
	if o.Type == kindCall {
		s.calls = true
		return s.blocks.StartTool(out, o.CallID, fmt.Sprintf("%s-%d", s.response, index), o.Name)
	}
	return out
}

// partAdded ends the part before: each part is a block of its own.
func (s *stream) partAdded(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if s.open && s.item == kindMessage && ev.Index == s.index {
		out = s.endText(out)
	}
	return out, nil
}

// partDone says what a text cites.
func (s *stream) partDone(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if s.open && s.item == kindMessage && ev.Index == s.index {
		s.beside.Annotations = ev.Part.cited()
	}
	return out, nil
}

// endText ends the open text or refusal with its seal.
func (s *stream) endText(out []turns.Delta) []turns.Delta {
	if kind := s.blocks.Kind(); kind == turns.KindText || kind == turns.KindRefusal {
		out = s.blocks.Seal(out, sealText(s.model, s.beside, kind == turns.KindRefusal))
	}
	s.beside.Annotations = nil
	return s.blocks.End(out)
}

// summaryAdded keeps the parts of a summary apart.
func (s *stream) summaryAdded(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if s.open && s.item == kindReasoning && ev.Index == s.index && s.said {
		s.blocks.Add(wire.Text("\n\n"))
	}
	return out, nil
}

func (s *stream) text(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	return s.more(ev, kindMessage, turns.KindText, out)
}

func (s *stream) refusal(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	return s.more(ev, kindMessage, turns.KindRefusal, out)
}

func (s *stream) thinking(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	return s.more(ev, kindReasoning, turns.KindThinking, out)
}

func (s *stream) arguments(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if !s.open {
		return out, wire.ErrMalformed // nothing says what is called
	}
	return s.more(ev, kindCall, turns.KindToolUse, out)
}

// more adds to the open item. Servers exist that do not say when an item begins; but what belongs to another item than the
// open one has no place it could go to, and a reply without it would not be whole.
func (s *stream) more(ev *event, item string, kind turns.BlockKind, out []turns.Delta) ([]turns.Delta, error) {
	if !s.open {
		out = s.begin(ev.Index, &output{Type: item}, out)
	}
	switch {
	case ev.Index != s.index:
		return out, wire.ErrMalformed
	case s.skipping:
		return out, nil
	case s.item != item:
		return out, wire.ErrMalformed
	}
	return s.say(kind, ev.Delta, out), nil
}

// say is more of the open item, in a block of this kind.
func (s *stream) say(kind turns.BlockKind, text wire.Text, out []turns.Delta) []turns.Delta {
	if len(text) == 0 {
		return out
	}
	s.said = true
	s.refused = s.refused || kind == turns.KindRefusal
	out = s.blocks.In(out, kind)
	s.blocks.Add(text)
	return out
}

// itemDone ends an item. One that never began, or of which nothing was said, is here all at once.
func (s *stream) itemDone(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Item == nil {
		return out, wire.ErrMalformed
	}
	if !s.open || ev.Index != s.index {
		out = s.begin(ev.Index, ev.Item, out)
	}
	return s.finish(ev.Item, out), nil
}

// finish says what of the open item was not said so far, gives reasoning its seal and closes the item.
func (s *stream) finish(o *output, out []turns.Delta) []turns.Delta {
	s.open = false
	if s.skipping {
		return out
	}
	if !s.said {
		out = s.whole(o, out)
	}
	if s.item == kindMessage {
		return s.endMessage(o, out)
	}
	if s.item == kindReasoning {
		sealed := sealer.SealSome(s.model, o.Encrypted)
		if s.blocks.Kind() == "" && sealed != "" {
			out = s.blocks.Start(out, turns.BlockStarted{Kind: turns.KindThinking, Redacted: true})
		}
		out = s.blocks.Seal(out, sealed)
	}
	return s.blocks.End(out)
}

// endMessage ends a message's last part, of which the item tells once more what it cites.
func (s *stream) endMessage(o *output, out []turns.Delta) []turns.Delta {
	if phase := o.phase(); phase != "" {
		s.beside.Phase = phase
	}
	if parts := o.parts(); len(parts) > 0 && s.beside.Annotations == nil {
		s.beside.Annotations = parts[len(parts)-1].cited()
	}
	return s.endText(out)
}

// whole says an item that came in one piece.
func (s *stream) whole(o *output, out []turns.Delta) []turns.Delta {
	switch s.item {
	case kindCall:
		return s.say(turns.KindToolUse, o.Arguments, out)
	case kindReasoning:
		for i, p := range append(o.Summary, o.parts()...) {
			if i > 0 && s.said {
				out = s.say(turns.KindThinking, wire.Text("\n\n"), out)
			}
			out = s.say(turns.KindThinking, p.Text, out)
		}
		return out
	}
	s.beside.Phase = o.phase()
	for _, p := range o.parts() {
		out = s.endText(out)
		s.beside.Annotations = p.cited()
		switch p.Type {
		case "output_text", "text":
			out = s.say(turns.KindText, p.Text, out)
		case "refusal":
			out = s.say(turns.KindRefusal, p.Refusal, out)
		}
	}
	return out
}

func (s *stream) ended(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	if ev.Response == nil {
		return out, wire.ErrMalformed
	}
	if ev.Response.Status == "" {
		ev.Response.Status = ev.Type[len("response."):]
	}
	return s.conclude(ev.Response, out)
}

// conclude ends the reply as its response says. Where no item came as it was made, all are taken from there.
func (s *stream) conclude(r *response, out []turns.Delta) ([]turns.Delta, error) {
	out = s.named(r.ID, out)
	if s.items == 0 {
		out = s.all(r.Output, out)
	}
	out = s.blocks.End(out)
	if r.Usage != nil {
		out = s.meter.Report(out, r.Usage.turns())
	}
	s.over = true
	var reason turns.StopReason
	switch r.Status {
	case "completed":
		reason = s.stopReason()
	case "incomplete":
		if r.Incomplete != nil {
			reason = incompleteReasons[r.Incomplete.Reason]
		}
	default:
		return out, &wire.EventError{Verdict: verdictOf(r)}
	}
	out = s.meter.Finish(out, s.blocks.HasContent())
	return append(out, turns.Finished{StopReason: reason}), nil
}

// all says the items of a response that is over.
func (s *stream) all(data json.RawMessage, out []turns.Delta) []turns.Delta {
	var items []output
	_ = json.Unmarshal(data, &items) // what can't be read holds nothing that could be said
	for i := range items {
		out = s.begin(i, &items[i], out)
		out = s.finish(&items[i], out)
	}
	return out
}

// verdictOf is how a response failed.
func verdictOf(r *response) wire.Verdict {
	switch {
	case r.Error != nil:
		return failure(r.Error.Code)
	case r.Status == codeCancelled:
		return failure(codeCancelled)
	}
	return failure("")
}

// stopReason is that of a response which was completed. A refusal has no word of its own.
func (s *stream) stopReason() turns.StopReason {
	switch {
	case s.calls:
		return turns.StopToolUse
	case s.refused:
		return turns.StopRefusal
	}
	return turns.StopEndTurn
}

// failed is the event of an error that is not said to be the response's. It may still be made.
func (s *stream) failed(ev *event, out []turns.Delta) ([]turns.Delta, error) {
	code := ev.Code
	if code == "" && ev.Error != nil {
		code = ev.Error.Code
	}
	said := wire.Said{Own: true, Code: code}
	return out, &wire.EventError{Verdict: wire.Verdict{Class: rules.Event(said), Word: code}}
}
