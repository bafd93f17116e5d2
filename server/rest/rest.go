// Package rest reads from the wire by which requests of HTTP its methods are called.
package rest

import (
	"net/http"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// Binding is one way to call a method.
type Binding struct {
	Verb string
	// Path is a template: "/v1/conversations/{conversation_id}".
	Path string
	// Body names the field that the body holds, "*" for all that the path has not; empty for no body.
	Body string
}

// Methods are the bindings of all methods of the wire that have any, by full name: "turns.v1.TurnService.GetTurn".
func Methods() map[protoreflect.FullName][]Binding {
	out := map[protoreflect.FullName][]Binding{}
	for _, file := range []protoreflect.FileDescriptor{
		turnsv1.File_turns_v1_turn_service_proto, turnsv1.File_turns_v1_conversation_service_proto, turnsv1.File_turns_v1_operator_service_proto,
	} {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				if found := bindings(methods.Get(j)); len(found) > 0 {
					out[methods.Get(j).FullName()] = found
				}
			}
		}
	}
	return out
}

func bindings(method protoreflect.MethodDescriptor) []Binding {
	rule, _ := proto.GetExtension(method.Options(), annotations.E_Http).(*annotations.HttpRule)
	if rule == nil {
		return nil
	}
	out := []Binding{bindingOf(rule)}
	for _, more := range rule.GetAdditionalBindings() {
		out = append(out, bindingOf(more))
	}
	return out
}

func bindingOf(rule *annotations.HttpRule) Binding {
	b := Binding{Body: rule.GetBody()}
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		b.Verb, b.Path = http.MethodGet, p.Get
	case *annotations.HttpRule_Post:
		b.Verb, b.Path = http.MethodPost, p.Post
	case *annotations.HttpRule_Patch:
		b.Verb, b.Path = http.MethodPatch, p.Patch
	case *annotations.HttpRule_Put:
		b.Verb, b.Path = http.MethodPut, p.Put
	case *annotations.HttpRule_Delete:
		b.Verb, b.Path = http.MethodDelete, p.Delete
	}
	return b
}
