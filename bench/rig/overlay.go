package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Edit takes something out of a source for one build.
type Edit struct {
	// File is the path of the source below the working directory.
	File string
	// Old stands once in the file and is replaced by New.
	Old, New string
}

// Overlay writes the edited sources into dir, and the file for go build -overlay that puts them in place of the real ones,
// which stay as they are. That what is to be replaced does not stand there once is an error.
func Overlay(dir, name string, edits ...Edit) (string, error) {
	sources, replaced := map[string]string{}, map[string]string{}
	for _, e := range edits {
		path, err := filepath.Abs(e.File)
		if err != nil {
			return "", err
		}
		if _, known := sources[path]; !known {
			data, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			sources[path] = string(data)
		}
		if n := strings.Count(sources[path], e.Old); n != 1 {
			return "", fmt.Errorf("%s: %q stands %d times in %s", name, e.Old, n, e.File)
		}
		sources[path] = strings.Replace(sources[path], e.Old, e.New, 1)
	}
	for path, source := range sources {
		replaced[path] = filepath.Join(dir, fmt.Sprintf("%s-%d%s", name, len(replaced), filepath.Ext(path)))
		if err := os.WriteFile(replaced[path], []byte(source), 0o600); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, name+".json")
	return file, os.WriteFile(file, data, 0o600)
}
