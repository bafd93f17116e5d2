package server

import (
	"regexp"
	"strings"

	"connectrpc.com/vanguard"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// jsonForm is how messages are written as JSON: with names in lowerCamelCase, and with zeros, so that a script that reads
// event.offset need not know that an absent one is 0.
var jsonForm = protojson.MarshalOptions{EmitDefaultValues: true}

// jsonCodec reads and writes JSON. What can't be read is marked as codec does it, and so gets an error of the gate's with the
// place in it; a field that is not known is refused, since in a text that people write it is a slip.
type jsonCodec struct {
	vanguard.JSONCodec
	marks *codec
}

func newJSONCodec(marks *codec, types vanguard.TypeResolver) jsonCodec {
	write := jsonForm
	write.Resolver = types
	return jsonCodec{vanguard.JSONCodec{MarshalOptions: write, UnmarshalOptions: protojson.UnmarshalOptions{Resolver: types}}, marks}
}

// Unmarshal implements vanguard.Codec.
func (c jsonCodec) Unmarshal(data []byte, m proto.Message) error {
	if fault, ok := c.read(data, func() error { return c.JSONCodec.Unmarshal(data, m) }); ok {
		c.marks.mark(m, fault)
	}
	return nil
}

// UnmarshalField implements vanguard.RESTCodec.
func (c jsonCodec) UnmarshalField(data []byte, m proto.Message, field protoreflect.FieldDescriptor) error {
	if fault, ok := c.read(data, func() error { return c.JSONCodec.UnmarshalField(data, m, field) }); ok {
		c.marks.mark(m, fault)
	}
	return nil
}

func (c jsonCodec) read(data []byte, decode func() error) (f fault, found bool) {
	if jsonValues(data) > maxFields {
		return fault{much: true}, true
	}
	if err := decode(); err != nil {
		return fault{json: true, path: jsonPlace(err)}, true
	}
	return fault{}, false
}

// jsonValues counts the values of a JSON text that were begun, by what separates them; in a text that is no JSON it counts
// something else, and none too few.
func jsonValues(data []byte) (n int) {
	inside := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}

var (
	jsonAt      = regexp.MustCompile(`\(line (\d+):(\d+)\)`)
	jsonUnknown = "unknown field"
)

// jsonPlace is where the decoder of JSON gave up. Its own words quote what was sent, so that no more is taken of them.
func jsonPlace(err error) string {
	what := ""
	if strings.Contains(err.Error(), jsonUnknown) {
		what = ", a field that this server does not know"
	}
	if at := jsonAt.FindStringSubmatch(err.Error()); at != nil {
		return "line " + at[1] + ", column " + at[2] + what
	}
	return "its end" + what
}

// bridgeCodec writes requests for gRPC. A mark that is inside a part of one, as REST reads parts alone, is of the whole.
type bridgeCodec struct {
	*vanguard.ProtoCodec
	marks *codec
}

// MarshalAppend implements vanguard.Codec.
func (c bridgeCodec) MarshalAppend(base []byte, m proto.Message) ([]byte, error) {
	if unknown := c.marks.markWithin(m.ProtoReflect()); unknown != nil {
		proto.Reset(m)
		m.ProtoReflect().SetUnknown(unknown)
	}
	out, err := c.ProtoCodec.MarshalAppend(base, m)
	if err != nil { // only text that is not UTF-8 can't be written
		c.marks.mark(m, fault{utf8: true})
		return c.ProtoCodec.MarshalAppend(base, m)
	}
	return out, nil
}
