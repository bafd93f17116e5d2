package tenanttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Method is a method of the wire with the questions that are asked of it.
type Method struct {
	protoreflect.MethodDescriptor
	ask func(IDs) []proto.Message
}

// String is the method as "Service.Method".
func (m Method) String() string { return nameOf(m.MethodDescriptor) }

// Path is the method as gRPC calls it.
func (m Method) Path() string { return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()) }

// Requests are the questions with ids in them.
func (m Method) Requests(ids IDs) []proto.Message { return m.ask(ids) }

func nameOf(m protoreflect.MethodDescriptor) string {
	return string(m.Parent().Name()) + "." + string(m.Name())
}

// Methods are all methods of all services of the wire. It fails if one has no question, if a question is for none, and if a
// field that names something is set by no question.
func Methods() ([]Method, error) {
	var all []Method
	var wrong []error
	known := map[string]bool{}
	wire := turnsv1.File_turns_v1_turn_service_proto.Package()
	protoregistry.GlobalFiles.RangeFilesByPackage(wire, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := Method{MethodDescriptor: methods.Get(j)}
				m.ask = questions[m.String()]
				known[m.String()] = true
				all, wrong = append(all, m), append(wrong, m.complete())
			}
		}
		return true
	})
	for name := range questions {
		if !known[name] {
			wrong = append(wrong, fmt.Errorf("%s has questions and is no method of the wire", name))
		}
	}
	slices.SortFunc(all, func(a, b Method) int { return strings.Compare(a.String(), b.String()) })
	return all, errors.Join(wrong...)
}

// complete tells what no question asks.
func (m Method) complete() error {
	if m.ask == nil {
		return fmt.Errorf("%s has no question", m)
	}
	set := map[protoreflect.FullName]bool{}
	for _, request := range m.ask(IDs{Conversation: "c", Turn: "t", Reply: "r", Tokens: map[string]string{m.String(): "p"}}) {
		if request.ProtoReflect().Descriptor() != m.Input() {
			return fmt.Errorf("a question of %s is a %T", m, request)
		}
		noteSet(request.ProtoReflect(), set)
	}
	var wrong []error
	for _, field := range naming(m.Input(), nil) {
		if !set[field] {
			wrong = append(wrong, fmt.Errorf("no question of %s sets %s", m, field))
		}
	}
	return errors.Join(wrong...)
}

// noteSet notes the fields of a message that are set, at any depth.
func noteSet(m protoreflect.Message, set map[protoreflect.FullName]bool) {
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		set[field.FullName()] = true
		if field.Kind() == protoreflect.MessageKind && !field.IsList() && !field.IsMap() {
			noteSet(v.Message(), set)
		}
		return true
	})
}

// naming are the fields of a message, at any depth, that name a row. What stands in content and options is the client's own.
func naming(m protoreflect.MessageDescriptor, seen []protoreflect.FullName) (found []protoreflect.FullName) {
	if slices.Contains(seen, m.FullName()) || m.FullName() == "turns.v1.Block" || m.FullName() == "turns.v1.GenerationOptions" {
		return nil
	}
	seen = append(seen, m.FullName())
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		name := string(field.Name())
		switch {
		case field.Kind() == protoreflect.MessageKind:
			found = append(found, naming(field.Message(), seen)...)
		case strings.HasSuffix(name, "_id"), strings.HasSuffix(name, "_ids"), name == "page_token":
			found = append(found, field.FullName())
		}
	}
	return found
}
