package server

import (
	"crypto/rand"
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/turnd/turnd/turns"
)

// A request that can't be decoded is a client's error and must come back as one, with the field at fault, whatever the
// library makes of it.

// markField is the number of the unknown field that carries a mark: the highest there is, which no message of the wire
// uses.
const markField = protowire.MaxValidNumber

// codec decodes requests so that bytes which are no message still reach an interceptor: grpc-go answers a failed decode
// by itself, with INTERNAL and no details. Instead the message is left empty but for a mark, an unknown field with what
// is wrong, and complaint reads it. A mark begins with bytes that this codec drew at random, so no client can send one.
type codec struct {
	encoding.CodecV2
	secret [16]byte
}

func newCodec() *codec {
	c := &codec{CodecV2: encoding.GetCodecV2("proto")}
	_, _ = rand.Read(c.secret[:]) // never fails
	return c
}

// Unmarshal implements encoding.CodecV2. It decodes by itself rather than by the wrapped codec, since it needs the bytes
// in one piece again to look for the fault; only then, so that a sound request pays nothing.
func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("decode: %T is not a message", v)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	raw := buf.ReadOnlyData()
	if isTooMuch(raw, m.ProtoReflect().Descriptor()) {
		c.mark(m, fault{much: true})
		return nil
	}
	if proto.Unmarshal(raw, m) != nil {
		c.mark(m, findFault(raw, m.ProtoReflect().Descriptor()))
	}
	return nil
}

func (c *codec) mark(m proto.Message, f fault) {
	proto.Reset(m)
	kind := byte(0)
	switch {
	case f.utf8:
		kind = 1
	case f.much:
		kind = 2
	case f.json:
		kind = 3
	}
	value := append(c.secret[:len(c.secret):len(c.secret)], kind)
	value = append(value, f.path...)
	raw := protowire.AppendTag(nil, markField, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendBytes(raw, value))
}

// complaint is the error of a message whose bytes could not be decoded, nil for any other.
func (c *codec) complaint(m proto.Message) error {
	value := c.marked(m.ProtoReflect().GetUnknown())
	if value == nil {
		return nil
	}
	kind, path := value[0], string(value[1:])
	switch kind {
	case 3:
		return &turns.Error{Code: turns.CodeInvalidField, Field: "body", Problem: "can't be read as the JSON of this request, at " + path}
	case 2:
		return &turns.Error{Code: turns.CodeInvalidField, Problem: fmt.Sprintf("the request has more than %d fields in all; send less at a time", maxFields)}
	case 1:
		return &turns.Error{Code: turns.CodeInvalidField, Field: path, Problem: "is not valid UTF-8; send text as UTF-8"}
	}
	return &turns.Error{Code: turns.CodeInvalidField, Field: path, Problem: "can't be decoded as a protobuf message"}
}

// marked is what a mark says, nil for other unknown fields.
func (c *codec) marked(unknown []byte) []byte {
	num, _, n := protowire.ConsumeTag(unknown)
	if n < 0 || num != markField {
		return nil
	}
	value, n := protowire.ConsumeBytes(unknown[n:])
	if n < 0 || len(value) <= len(c.secret) || string(value[:len(c.secret)]) != string(c.secret[:]) {
		return nil
	}
	return value[len(c.secret):]
}

// markWithin is the mark of a message or of a part of it, nil if there is none.
func (c *codec) markWithin(m protoreflect.Message) (unknown []byte) {
	if c.marked(m.GetUnknown()) != nil {
		return m.GetUnknown()
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Message() != nil && !field.IsList() && !field.IsMap() {
			unknown = c.markWithin(v.Message())
		}
		return unknown == nil
	})
	return unknown
}
