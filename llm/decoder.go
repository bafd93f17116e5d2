package llm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder reads the nodes of a models file by hand, for errors that name line and entry, and for the certainty that no
// value is quoted in one.
type decoder struct {
	keys     keySource
	problems []error
	lines    map[string]int // where each entry begins
}

// fields are the keys that a mapping may have, and what reads their values.
type fields map[string]func(n *yaml.Node, path string)

func (d *decoder) problem(n *yaml.Node, path, format string, args ...any) {
	d.problems = append(d.problems, &Problem{Path: path, Line: n.Line, Text: fmt.Sprintf(format, args...)})
}

// fields reads a mapping of known keys.
func (d *decoder) fields(n *yaml.Node, path string, known fields) {
	d.entries(n, path, func(key string, n *yaml.Node, entry string) {
		if read := known[key]; read != nil {
			read(n, entry)
			return
		}
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		d.problem(n, entry, "unknown key; known here: %s", strings.Join(names, ", "))
	})
}

// entries reads a mapping of any keys, each once.
func (d *decoder) entries(n *yaml.Node, path string, read func(key string, n *yaml.Node, path string)) {
	if n.Kind != yaml.MappingNode {
		d.problem(n, orTop(path), "must be a mapping")
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		entry := strings.TrimPrefix(path+"."+key.Value, ".")
		if key.Kind != yaml.ScalarNode || seen[key.Value] {
			d.problem(key, entry, "the same key twice, or no plain key")
			continue
		}
		seen[key.Value] = true
		d.lines[entry] = key.Line
		read(key.Value, value, entry)
	}
}

func orTop(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

// scalar reads a plain value of to's type: string, bool, int or float64.
func (d *decoder) scalar(n *yaml.Node, path string, to any) {
	_, whole := to.(*int)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || (whole && n.Tag != "!!int") || n.Decode(to) != nil {
		d.problem(n, path, "must be %s", kindOf(to))
	}
}

func kindOf(to any) string {
	switch to.(type) {
	case *bool:
		return "true or false"
	case *int:
		return "a whole number"
	case *float64:
		return "a number"
	}
	return "text"
}

func (d *decoder) duration(n *yaml.Node, path string, to *time.Duration) {
	value, err := time.ParseDuration(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		d.problem(n, path, "must be a duration such as 30s or 2m")
		return
	}
	*to = value
}

// lineOf is the line of an entry, or of the nearest one around it.
func (d *decoder) lineOf(path string) int {
	for {
		if line, ok := d.lines[path]; ok {
			return line
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return 0
		}
		path = path[:i]
	}
}
