package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/turnd/turnd/llm/wire"
	"github.com/turnd/turnd/turns"
)

// maxOpaque bounds what is kept of one block that is not read. A larger one is shown as having been there, and can't go
// back.
const maxOpaque = 384 << 10

// opaque is a block of a kind that is not read: the vendor's JSON of its start, with what its deltas added.
type opaque struct {
	start  json.RawMessage
	fields []field
	// grown says that a delta came, input what deltas said of a call's input, size how much is kept by now.
	grown bool
	input []byte
	size  int
}

// field is one of an object, in the order in which they stand. text is its value once that is a string which grew.
type field struct {
	name  string
	value json.RawMessage
	text  *bytes.Buffer
}

// newOpaque reads the event that starts a block.
func newOpaque(event []byte) *opaque {
	var e struct {
		Block json.RawMessage `json:"content_block"`
	}
	_ = json.Unmarshal(event, &e) // it was read before
	return &opaque{start: e.Block, fields: fieldsOf(e.Block), size: len(e.Block)}
}

// add takes the event of a delta. How deltas of unknown kinds are meant is guessed from those that are known: text goes on
// where text was, and any other value takes the place of the one before. Input of a call comes as parts of its JSON.
func (o *opaque) add(event []byte) {
	if o.size += len(event); o.size > maxOpaque {
		return
	}
	var e struct {
		Delta json.RawMessage `json:"delta"`
	}
	_ = json.Unmarshal(event, &e)
	o.grown = true
	for _, f := range fieldsOf(e.Delta) {
		switch f.name {
		case "type":
		case "partial_json":
			var part string
			_ = json.Unmarshal(f.value, &part)
			o.input = append(o.input, part...)
		default:
			o.grow(f)
		}
	}
}

// grow adds what a delta says of one field.
func (o *opaque) grow(by field) {
	var more string
	isText := json.Unmarshal(by.value, &more) == nil
	f := o.field(by.name)
	if !isText || isNull(by.value) {
		f.value, f.text = by.value, nil
		return
	}
	if f.text == nil {
		var before string
		_ = json.Unmarshal(f.value, &before)
		f.text = bytes.NewBufferString(before)
	}
	f.text.WriteString(more)
}

// field is the field of a name, which is there from now on.
func (o *opaque) field(name string) *field {
	for i := range o.fields {
		if o.fields[i].name == name {
			return &o.fields[i]
		}
	}
	o.fields = append(o.fields, field{name: name})
	return &o.fields[len(o.fields)-1]
}

// JSON is the block as it goes back, or nothing if it is too large. One without deltas is as it came, to the byte.
func (o *opaque) JSON() string {
	switch {
	case o.size > maxOpaque:
		return ""
	case !o.grown:
		return string(o.start)
	}
	if len(o.input) > 0 {
		*o.field("input") = field{name: "input", value: wire.Value(string(o.input))}
	}
	var out bytes.Buffer
	sep := byte('{')
	for _, f := range o.fields {
		out.WriteByte(sep)
		sep = ','
		name, _ := wire.Encode(f.name)
		value := []byte(f.value)
		if f.text != nil {
			value, _ = wire.Encode(f.text.String())
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.String()
}

// fieldsOf reads an object; of anything else it is nil.
func fieldsOf(data json.RawMessage) (fields []field) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil
		}
		f := field{name: name.(string)}
		if d.Decode(&f.value) != nil {
			return nil
		}
		fields = append(fields, f)
	}
	return fields
}

// answered reports whether each tool that the vendor ran itself has its result after it in the same message, and each such
// result its tool: the vendor refuses either alone. A reply that was cut short can end with a tool that still ran.
func answered(content []turns.Block) bool {
	open := make(map[string]bool)
	for _, b := range content {
		o, ok := b.(turns.Opaque)
		if !ok {
			continue
		}
		var ids struct {
			ID        string `json:"id"`
			ToolUseID string `json:"tool_use_id"`
		}
		data, _ := sealer.OpenAny(o.Seal)
		_ = json.Unmarshal([]byte(data), &ids) // what is no object has no ids
		switch {
		case strings.HasSuffix(o.Type, "_tool_use"):
			open[ids.ID] = true
		case strings.HasSuffix(o.Type, "_tool_result"):
			if !open[ids.ToolUseID] {
				return false
			}
			delete(open, ids.ToolUseID)
		}
	}
	return len(open) == 0
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }
