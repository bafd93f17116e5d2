package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// restRules are the bindings of all methods of the wire, by method.
func restRules() map[protoreflect.FullName][]*annotations.HttpRule {
	out := map[protoreflect.FullName][]*annotations.HttpRule{}
	for _, file := range []protoreflect.FileDescriptor{turnsv1.File_turns_v1_turn_service_proto,
		turnsv1.File_turns_v1_conversation_service_proto, turnsv1.File_turns_v1_operator_service_proto} {
		for i := range file.Services().Len() {
			for methods, j := file.Services().Get(i).Methods(), 0; j < methods.Len(); j++ {
				rule, ok := proto.GetExtension(methods.Get(j).Options(), annotations.E_Http).(*annotations.HttpRule)
				if ok && rule != nil {
					out[methods.Get(j).FullName()] = append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...)
				}
			}
		}
	}
	return out
}

func bindingOf(rule *annotations.HttpRule) (method, path string) {
	switch p := rule.GetPattern().(type) {
	case *annotations.HttpRule_Get:
		return http.MethodGet, p.Get
	case *annotations.HttpRule_Post:
		return http.MethodPost, p.Post
	case *annotations.HttpRule_Patch:
		return http.MethodPatch, p.Patch
	case *annotations.HttpRule_Delete:
		return http.MethodDelete, p.Delete
	}
	return "", ""
}

func TestTheOpenAPIDocumentHasEachPathOfTheWire(t *testing.T) {
	h := start(t, newFake())
	resp, body := exchange(t, h, http.MethodGet, "/openapi.json", "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	var doc struct {
		Paths map[string]map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(body), &doc))
	rules := restRules()
	require.Len(t, rules, 19, "all methods but Turn")
	n := 0
	for _, bindings := range rules {
		for _, rule := range bindings {
			method, path := bindingOf(rule)
			path = strings.NewReplacer("{input.", "{", "{conversation.", "{").Replace(path)
			require.Contains(t, doc.Paths[path], strings.ToLower(method), path)
			n++
		}
	}
	documented := 0
	for _, methods := range doc.Paths {
		documented += len(methods)
	}
	require.Equal(t, n, documented)
}

func TestAClientThatHasTheOpenAPIDocumentIsNotSentItAgain(t *testing.T) {
	h := start(t, newFake())
	resp, _ := exchange(t, h, http.MethodGet, "/openapi.json", "")
	tag := resp.Header.Get("ETag")
	require.NotEmpty(t, tag)
	resp, body := exchange(t, h, http.MethodGet, "/openapi.json", "", "If-None-Match", tag)
	require.Equal(t, http.StatusNotModified, resp.StatusCode)
	require.Empty(t, body)
	resp, _ = exchange(t, h, http.MethodPost, "/openapi.json", "{}")
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
}
