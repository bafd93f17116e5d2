package server

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the document
	"encoding/hex"
	"net/http"
	"time"
)

// openAPIPath is where the document is.
const openAPIPath = "/openapi.json"

// openAPI is generated from the wire, by make generate.
//
//go:embed openapi.json
var openAPI []byte

// serveOpenAPI serves the document of what REST can do. A client that has it is told so by its tag.
func serveOpenAPI() http.Handler {
	sum := sha256.Sum256(openAPI)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuseMethod(w, r, "GET, HEAD")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(openAPI))
	})
}
