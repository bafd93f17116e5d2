package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// lines writes server-sent events with one of the three line endings.
type lines string

func newLines(end LineEnd) lines {
	switch end {
	case LineEndCRLF:
		return "\r\n"
	case LineEndCR:
		return "\r"
	default:
		return "\n"
	}
}

// event returns one event. An empty name leaves the event line out.
func (l lines) event(name string, data []byte) []byte {
	var out []byte
	if name != "" {
		out = append(out, "event: "+name+string(l)...)
	}
	out = append(out, "data: "...)
	out = append(out, data...)
	return append(out, l+l...)
}

func (l lines) comment() []byte { return []byte(": scripted" + string(l+l)) }

// garbage is a well-framed event whose data is neither JSON nor UTF-8. It bears the name of an event that readers listen
// to, since they may skip one they do not know.
func (l lines) garbage(name string) []byte { return l.event(name, []byte("{\"garbage\": \xff\xfe")) }

// encode is JSON without the escaping for HTML, which neither vendor does.
func encode(v any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("scripted: wire type %T does not encode: %v", v, err))
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
