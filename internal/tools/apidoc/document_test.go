package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func merged(t *testing.T, parts ...string) (object, error) {
	t.Helper()
	dir := t.TempDir()
	var files []string
	for i, part := range parts {
		files = append(files, filepath.Join(dir, string(rune('a'+i))))
		require.NoError(t, os.WriteFile(files[i], []byte(part), 0o600))
	}
	out := filepath.Join(dir, "out.json")
	if err := run(out, files); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(out)
	require.NoError(t, err)
	var doc object
	require.NoError(t, json.Unmarshal(raw, &doc))
	return doc, nil
}

const following = `{"paths":{"/v1/{a.id}/events":{"get":{"operationId":"S_Follow","parameters":[
	{"name":"a.id","in":"path"},{"name":"offset","in":"query"}],"responses":{}}}},
	"components":{"schemas":{"turns.v1.FollowReplyResponse":{},"turns.v1.Event":{"oneOf":[{"required":["b"]},{"required":["a"]}]}}}}`

func TestAStreamHasACursorAndNoOffset(t *testing.T) {
	doc, err := merged(t, following)
	require.NoError(t, err)
	get := doc["paths"].(object)["/v1/{id}/events"].(object)["get"].(object)
	var names []string
	for _, p := range get["parameters"].([]any) {
		names = append(names, p.(object)["name"].(string))
	}
	require.Equal(t, []string{"id", "Last-Event-ID", "cursor"}, names)
	require.Equal(t, "S_Follow", get["operationId"])
	require.Contains(t, get["responses"].(object)["200"].(object)["content"], "text/event-stream")
	schemas := doc["components"].(object)["schemas"].(object)
	require.NotContains(t, schemas, "FollowReplyResponse")
	require.Equal(t, object{"description": "At most one of these is set: a, b."}, schemas["Event"])
}

func TestOnePathOfTwoServicesIsAnError(t *testing.T) {
	_, err := merged(t, following, following)
	require.ErrorContains(t, err, "two documents")
	_, err = merged(t, `{}`)
	require.ErrorContains(t, err, "/events")
	_, err = merged(t, `[`)
	require.Error(t, err)
}
