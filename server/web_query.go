package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/turnd/turnd/server/rest"
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
	for _, bindings := range rest.Methods() {
		for _, b := range bindings {
			for _, part := range strings.Split(b.Path, "{")[1:] {
				name, _, _ := strings.Cut(part, "}")
				fields[spelling(name)] = true
			}
		}
	}
	return fields
}

// spelling makes the two spellings of a field one.
func spelling(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
