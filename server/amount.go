package server

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// maxFields bounds the fields of a request in all, those of its parts among them: several times what the wire's own limits
	// on lists leave room for. A field of two bytes takes a hundred times as much once it is decoded, and longer to hold to the
	// rules, so that a message within its size would otherwise keep a processor busy for many seconds.
	maxFields = 1 << 16
	// leastField is the size in bytes of the smallest field.
	leastField = 2
)

// isTooMuch reports bytes with more fields than a request may have. It looks at them only, and at no more than that many; of a
// message that can't have so many it does not even do that.
func isTooMuch(raw []byte, desc protoreflect.MessageDescriptor) bool {
	return len(raw) > leastField*maxFields && fieldsLeft(raw, desc, maxFields, protowire.DefaultRecursionLimit) < 0
}

// fieldsLeft counts the fields of a message down from what is left, and stops below 0. Bytes that are no message count as far as
// they go: it is for the decoder to refuse them.
func fieldsLeft(raw []byte, desc protoreflect.MessageDescriptor, left, depth int) int {
	for len(raw) > 0 && left >= 0 {
		num, typ, tag := protowire.ConsumeTag(raw)
		if tag < 0 {
			return left
		}
		size := protowire.ConsumeFieldValue(num, typ, raw[tag:])
		if size < 0 {
			return left
		}
		left--
		field := desc.Fields().ByNumber(num)
		if depth > 0 && field != nil && field.Kind() == protoreflect.MessageKind && typ == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(raw[tag:])
			left = fieldsLeft(inner, field.Message(), left, depth-1)
		}
		raw = raw[tag+size:]
	}
	return left
}
