package server

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// refuseUnknown refuses a message that has a field this server does not know, at any depth. A turn is identified by a
// hash of its input; a field that no hash covers would make two different turns look the same.
func refuseUnknown(m protoreflect.Message, path string) (err error) {
	if raw := m.GetUnknown(); len(raw) > 0 {
		num, _, _ := protowire.ConsumeTag(raw)
		return invalidField(path, fmt.Sprintf("has a field with number %d, which this server does not know; leave it out", num))
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if field.Kind() != protoreflect.MessageKind || field.IsMap() {
			return true
		}
		if !field.IsList() {
			err = refuseUnknown(v.Message(), fieldPath(path, field, 0))
			return err == nil
		}
		for i := range v.List().Len() {
			if err = refuseUnknown(v.List().Get(i).Message(), fieldPath(path, field, i)); err != nil {
				return false
			}
		}
		return true
	})
	return err
}
