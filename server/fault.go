package server

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// faultDepth bounds how deep a fault is looked for; below, it is laid to the message at that depth. No message of the
// wire nests deeper by itself.
const faultDepth = 32

// fault is where and how the bytes of a message are broken.
type fault struct {
	// path is the field as a client writes it; empty for the message itself.
	path string
	// utf8 says that the field is a string which is not UTF-8; else the bytes themselves are no message.
	utf8 bool
	// json says that the bytes are no JSON of the message; path is the place in the text then.
	json bool
	// much says that the message was not decoded, since there is too much in it.
	much bool
}

// findFault looks for the first thing that keeps raw from being decoded as a message, by walking the bytes along its
// descriptor.
func findFault(raw []byte, desc protoreflect.MessageDescriptor) fault {
	f, _ := findIn(raw, desc, "", faultDepth)
	return f
}

// findIn walks in the order in which the decoder does, so that both stop at the same place. A field of another wire type
// than its own is skipped as the decoder skips it: to the decoder it is an unknown field.
func findIn(raw []byte, desc protoreflect.MessageDescriptor, path string, depth int) (f fault, found bool) {
	seen := map[protowire.Number]int{}
	for len(raw) > 0 {
		num, typ, tag := protowire.ConsumeTag(raw)
		if tag < 0 {
			return fault{path: path}, true
		}
		size := protowire.ConsumeFieldValue(num, typ, raw[tag:])
		field := desc.Fields().ByNumber(num)
		if field == nil {
			if size < 0 {
				return fault{path: path}, true
			}
			raw = raw[tag+size:]
			continue
		}
		at := fieldPath(path, field, seen[num])
		if size < 0 {
			return fault{path: at}, true
		}
		if f, found = findInField(raw[tag:tag+size], field, typ, at, depth); found {
			return f, true
		}
		seen[num]++
		raw = raw[tag+size:]
	}
	return fault{path: path}, false
}

func findInField(value []byte, field protoreflect.FieldDescriptor, typ protowire.Type, at string, depth int) (fault, bool) {
	if typ != protowire.BytesType {
		return fault{}, false
	}
	inner, _ := protowire.ConsumeBytes(value)
	switch field.Kind() {
	case protoreflect.StringKind:
		return fault{path: at, utf8: true}, !utf8.Valid(inner)
	case protoreflect.MessageKind:
		if depth == 0 {
			return fault{path: at}, true
		}
		f, found := findIn(inner, field.Message(), at, depth-1)
		if field.IsMap() {
			f.path = at // which entry it was would quote the client's own key
		}
		return f, found
	}
	return fault{}, false
}

// fieldPath writes a field the way clients do: "input.content[2].text".
func fieldPath(path string, field protoreflect.FieldDescriptor, index int) string {
	name := string(field.Name())
	if path != "" {
		name = path + "." + name
	}
	if field.IsList() {
		name = fmt.Sprintf("%s[%d]", name, index)
	}
	return name
}
