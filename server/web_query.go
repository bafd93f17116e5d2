package server

import (
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	turnsv1 "github.com/turnd/turnd/proto/turns/v1"
)

// plainQuery refuses parameters of a path of REST that would be taken for something else than they read: what can't be parsed
// would be left out, and what names a field that the path has would win over the path, which a proxy may have gone by.
func plainQuery(next http.Handler) http.Handler {
	inPaths := pathFields()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			refuse(w, r, http.StatusBadRequest, statusOf(errQuery))
			return
		}
		for name := range values {
			if inPaths[spelling(name)] {
				refuse(w, r, http.StatusBadRequest, statusOf(invalidField(name, "is said by the path, and is no parameter")))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

var errQuery = invalidField("query", "can't be parsed; escape what is no letter or digit")

// pathFields are the fields that the path of some method says, in one spelling.
func pathFields() map[string]bool {
	fields := map[string]bool{}
	for _, file := range []protoreflect.FileDescriptor{
		turnsv1.File_turns_v1_turn_service_proto, turnsv1.File_turns_v1_conversation_service_proto, turnsv1.File_turns_v1_operator_service_proto,
	} {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				rule, _ := proto.GetExtension(methods.Get(j).Options(), annotations.E_Http).(*annotations.HttpRule)
				for _, r := range append(rule.GetAdditionalBindings(), rule) {
					addPathFields(fields, r)
				}
			}
		}
	}
	return fields
}

func addPathFields(fields map[string]bool, r *annotations.HttpRule) {
	for _, template := range []string{r.GetGet(), r.GetPost(), r.GetPatch(), r.GetPut(), r.GetDelete()} {
		for _, part := range strings.Split(template, "{")[1:] {
			name, _, _ := strings.Cut(part, "}")
			fields[spelling(name)] = true
		}
	}
}

// spelling makes the two spellings of a field one.
func spelling(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
