package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// maxScriptBytes bounds a script: room for a reply of several MiB given as blocks.
const maxScriptBytes = 16 << 20

// FieldError says which field of a script cannot be used, by its JSON path, and why.
type FieldError struct {
	Field   string
	Problem string
}

// Error joins the path and the problem.
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// ParseScript reads one JSON script of at most 16 MiB and validates it. Fields it does not know are refused: a
// misspelt fault would otherwise be a test that proves nothing. A field that cannot be used is a *FieldError.
func ParseScript(r io.Reader) (Script, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxScriptBytes+1))
	if err != nil {
		return Script{}, fmt.Errorf("read script: %w", err)
	}
	if len(raw) > maxScriptBytes {
		return Script{}, &FieldError{"script", fmt.Sprintf("longer than %d bytes", maxScriptBytes)}
	}
	script, err := decodeScript(raw)
	if err != nil {
		return Script{}, err
	}
	return script, script.Validate()
}

// decodeScript looks for unknown fields in the tree first, and then decodes.
func decodeScript(raw []byte) (Script, error) {
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return Script{}, &FieldError{"script", "not one JSON value: " + err.Error()}
	}
	if _, ok := tree.(map[string]any); !ok {
		return Script{}, &FieldError{"script", "must be an object"}
	}
	if path := unknownField(tree, reflect.TypeFor[Script](), ""); path != "" {
		return Script{}, &FieldError{path, "unknown field"}
	}
	var script Script
	err := json.Unmarshal(raw, &script)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return Script{}, &FieldError{wrong.Field, "must be a " + wrong.Type.String() + ", not a " + wrong.Value}
	}
	if err != nil {
		return Script{}, &FieldError{"script", err.Error()}
	}
	return script, nil
}

// unknownField returns the path of the first key in v that type t has no field for, or "". The decoder could refuse such
// keys too, but names neither the path nor a key that differs by case.
func unknownField(v any, t reflect.Type, path string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice {
			return ""
		}
		for i, element := range v {
			if bad := unknownField(element, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); bad != "" {
				return bad
			}
		}
	case map[string]any:
		return unknownKey(v, t, path)
	}
	return ""
}

func unknownKey(object map[string]any, t reflect.Type, path string) string {
	if t.Kind() != reflect.Struct {
		return ""
	}
	if path != "" {
		path += "."
	}
	keys := make([]string, 0, len(object))
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		field, known := fieldByTag(t, key)
		if !known {
			return path + key
		}
		if bad := unknownField(object[key], field.Type, path+key); bad != "" {
			return bad
		}
	}
	return ""
}

// fieldByTag finds the field that a key is decoded into, by the exact name.
func fieldByTag(t reflect.Type, key string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == key {
			return t.Field(i), true
		}
	}
	return reflect.StructField{}, false
}
