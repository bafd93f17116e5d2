package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turnd/turnd/server/rest"
)

func TestTheOpenAPIDocumentHasEachPathOfTheWire(t *testing.T) {
	h := start(t, newFake())
	resp, body := exchange(t, h, http.MethodGet, "/openapi.json", "")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	var doc struct {
		Paths map[string]map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(body), &doc))
	methods := rest.Methods()
	require.Len(t, methods, 21, "all methods but Turn")
	n := 0
	for _, bindings := range methods {
		for _, b := range bindings {
			path := strings.NewReplacer("{input.", "{", "{conversation.", "{").Replace(b.Path)
			require.Contains(t, doc.Paths[path], strings.ToLower(b.Verb), path)
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
