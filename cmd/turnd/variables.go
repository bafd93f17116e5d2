package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	variablePrefix = "TURND_"
	// testPrefix is for variables that tests read; turnd itself does not.
	testPrefix = "TURND_TEST_"
)

// unknownVariables finds variables that look like settings and are none. Their values are not repeated: one may be a
// password under a mistyped name.
func unknownVariables(environ, known []string) error {
	var problems []error
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || strings.HasPrefix(name, testPrefix) || slices.Contains(known, name) {
			continue
		}
		problems = append(problems, fmt.Errorf("unknown variable %s; did you mean %s?", name, nearest(name, known)))
	}
	return errors.Join(problems...)
}

// nearest is the known name with the fewest edits, the first of several.
func nearest(name string, known []string) string {
	return slices.MinFunc(known, func(a, b string) int { return edits(name, a) - edits(name, b) })
}

// edits counts the bytes to insert, remove or replace to make a into b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
