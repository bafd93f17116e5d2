package llm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/turnd/turnd/turns"
)

// Why a call is not sent although its route was good once.
var (
	errNoEndpoint = errors.New("the endpoint is not configured")
	errOtherKey   = errors.New("the endpoint has another key than the one that the call was made for")
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// The bounds of the files that are read.
const (
	maxModelsFile = 1 << 20
	maxKeyFile    = 64 << 10
	modelsVersion = 1
)

// Load reads a models file, and the keys it names. An error holds every problem found, with its line and entry. Values of
// the file are not quoted in it: one of them may be a key that was put in the wrong place.
func Load(path string) (Config, error) {
	data, err := readBounded(path, maxModelsFile)
	if err != nil {
		return Config{}, fmt.Errorf("models file: %w", err)
	}
	c, err := parseModels(data, keySource{dir: filepath.Dir(path), env: os.LookupEnv})
	if err != nil {
		return Config{}, fmt.Errorf("models file %s: %w", path, err)
	}
	return c, nil
}

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return data, nil
}

// keySource finds the keys that a models file names.
type keySource struct {
	dir string
	env func(string) (string, bool)
}

// parseModels checks the whole only once every entry could be read: problems that follow from others help nobody.
func parseModels(data []byte, keys keySource) (Config, error) {
	root, err := oneDocument(data)
	if err != nil {
		return Config{}, err
	}
	d := &decoder{keys: keys, lines: make(map[string]int)}
	c := d.config(root)
	if len(d.problems) == 0 {
		d.join(c.Validate())
	}
	return c, errors.Join(d.problems...)
}

// oneDocument parses the YAML alone; what it means is read from the nodes.
func oneDocument(data []byte) (*yaml.Node, error) {
	var doc, more yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Problem{Path: "version", Text: "the file is empty"}
		}
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &Problem{Path: "version", Text: "the file holds a second document, or ends badly"}
	}
	return doc.Content[0], nil
}

// config reads the whole file. The decoder keeps the problems it meets and goes on.
func (d *decoder) config(root *yaml.Node) Config {
	var c Config
	version := 0
	d.fields(root, "", fields{
		"version":       func(n *yaml.Node, path string) { d.scalar(n, path, &version) },
		"default_model": func(n *yaml.Node, path string) { d.scalar(n, path, &c.DefaultModel) },
		"endpoints": func(n *yaml.Node, path string) {
			d.entries(n, path, func(name string, n *yaml.Node, path string) {
				c.Endpoints = append(c.Endpoints, d.endpoint(name, n, path))
			})
		},
		"models": func(n *yaml.Node, path string) {
			d.entries(n, path, func(name string, n *yaml.Node, path string) {
				c.Models = append(c.Models, d.model(name, n, path))
			})
		},
	})
	if version != modelsVersion {
		d.problem(root, "version", "missing or unknown; this release reads version %d", modelsVersion)
	}
	return c
}

func (d *decoder) endpoint(name string, n *yaml.Node, path string) Endpoint {
	e := Endpoint{Name: name}
	d.fields(n, path, fields{
		"wire":         func(n *yaml.Node, path string) { d.scalar(n, path, (*string)(&e.Wire)) },
		"base_url":     func(n *yaml.Node, path string) { d.scalar(n, path, &e.BaseURL) },
		"key":          func(n *yaml.Node, path string) { e.Key = d.key(n, path) },
		"dialect":      func(n *yaml.Node, path string) { d.scalar(n, path, (*string)(&e.Dialect)) },
		"capabilities": func(n *yaml.Node, path string) { d.capabilities(&e, n, path) },
		"limits":       func(n *yaml.Node, path string) { d.limits(&e.Limits, n, path) },
		"webhook":      func(n *yaml.Node, path string) { d.webhook(&e, n, path) },
		"on_ambiguous": func(n *yaml.Node, path string) { d.scalar(n, path, (*string)(&e.OnAmbiguous)) },
		"on_partial":   func(n *yaml.Node, path string) { d.scalar(n, path, (*string)(&e.OnPartial)) },
		"prices":       func(n *yaml.Node, path string) { d.prices(&e.Prices, n, path) },
	})
	return e
}

func (d *decoder) capabilities(e *Endpoint, n *yaml.Node, path string) {
	c := &e.Capabilities
	d.fields(n, path, fields{
		"idempotency":      func(n *yaml.Node, path string) { d.scalar(n, path, (*string)(&c.Idempotency)) },
		"retention":        func(n *yaml.Node, path string) { d.duration(n, path, &c.Retention) },
		"scope":            func(n *yaml.Node, path string) { d.scalar(n, path, &e.KeyScope) },
		"resume":           func(n *yaml.Node, path string) { d.scalar(n, path, &c.Resume) },
		"lookup":           func(n *yaml.Node, path string) { d.scalar(n, path, &c.Lookup) },
		"cancel":           func(n *yaml.Node, path string) { d.scalar(n, path, &c.Cancel) },
		"fence":            func(n *yaml.Node, path string) { d.scalar(n, path, &c.Fence) },
		"usage_on_abort":   func(n *yaml.Node, path string) { d.scalar(n, path, &c.UsageOnAbort) },
		"disconnect_stops": func(n *yaml.Node, path string) { d.scalar(n, path, &e.DisconnectStops) },
	})
}

// webhook reads how the vendor's calls back are verified. An entry without a secret would take them from anybody.
func (d *decoder) webhook(e *Endpoint, n *yaml.Node, path string) {
	d.fields(n, path, fields{
		"secret": func(n *yaml.Node, path string) { e.WebhookSecret = d.key(n, path) },
	})
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		d.problem(n, path, "must have a secret")
	}
}

func (d *decoder) limits(l *turns.Limits, n *yaml.Node, path string) {
	d.fields(n, path, fields{
		"first_byte":        func(n *yaml.Node, path string) { d.duration(n, path, &l.FirstByte) },
		"idle":              func(n *yaml.Node, path string) { d.duration(n, path, &l.Idle) },
		"total":             func(n *yaml.Node, path string) { d.duration(n, path, &l.Total) },
		"window_tokens":     func(n *yaml.Node, path string) { d.scalar(n, path, &l.WindowTokens) },
		"max_output_tokens": func(n *yaml.Node, path string) { d.scalar(n, path, &l.MaxOutputTokens) },
	})
}

func (d *decoder) prices(p *Prices, n *yaml.Node, path string) {
	d.fields(n, path, fields{
		"input":       func(n *yaml.Node, path string) { d.scalar(n, path, &p.Input) },
		"output":      func(n *yaml.Node, path string) { d.scalar(n, path, &p.Output) },
		"cache_read":  func(n *yaml.Node, path string) { d.scalar(n, path, &p.CacheRead) },
		"cache_write": func(n *yaml.Node, path string) { d.scalar(n, path, &p.CacheWrite) },
	})
}

func (d *decoder) model(name string, n *yaml.Node, path string) Model {
	m := Model{Name: name}
	d.fields(n, path, fields{"route": func(n *yaml.Node, path string) {
		if n.Kind != yaml.SequenceNode {
			d.problem(n, path, "must be a list of entries like {endpoint: name, model: name}")
			return
		}
		for _, entry := range n.Content {
			var t Target
			d.fields(entry, path, fields{
				"endpoint": func(n *yaml.Node, path string) { d.scalar(n, path, &t.Endpoint) },
				"model":    func(n *yaml.Node, path string) { d.scalar(n, path, &t.Model) },
			})
			m.Route = append(m.Route, t)
		}
	}})
	return m
}

// key reads the credential that an entry names.
func (d *decoder) key(n *yaml.Node, path string) Secret {
	var env, file string
	if n.Kind != yaml.MappingNode {
		d.problem(n, path, "must be {env: NAME} or {file: PATH}; the key itself does not belong in this file")
		return ""
	}
	d.fields(n, path, fields{
		"env":  func(n *yaml.Node, path string) { d.scalar(n, path, &env) },
		"file": func(n *yaml.Node, path string) { d.scalar(n, path, &file) },
	})
	switch {
	case (env == "") == (file == ""):
		d.problem(n, path, "must have exactly one of env and file")
	case env != "" && !variableName.MatchString(env):
		d.problem(n, path, "env must be the name of an environment variable")
	case env != "":
		if value, ok := d.keys.env(env); ok && value != "" {
			return Secret(value)
		}
		d.problem(n, path, "the environment variable %s is not set", env)
	default:
		return d.keyFile(n, path, file)
	}
	return ""
}

// keyFile reads a key from a file, whose path is relative to the models file. White space around the key is no part of it.
func (d *decoder) keyFile(n *yaml.Node, path, file string) Secret {
	if !filepath.IsAbs(file) {
		file = filepath.Join(d.keys.dir, file)
	}
	data, err := readBounded(file, maxKeyFile)
	if err != nil {
		var opening *fs.PathError
		if errors.As(err, &opening) {
			err = opening.Err // the path itself may be a key that was put in the wrong place
		}
		d.problem(n, path, "can't read the key: %v", err)
		return ""
	}
	key := strings.TrimSpace(string(data))
	if key == "" {
		d.problem(n, path, "the key's file is empty")
	}
	return Secret(key)
}

// join takes over the problems of Validate and gives them the lines of the nearest entries.
func (d *decoder) join(err error) {
	if err == nil {
		return
	}
	joined, _ := err.(interface{ Unwrap() []error })
	for _, e := range joined.Unwrap() {
		var p *Problem
		if errors.As(e, &p) {
			p.Line = d.lineOf(p.Path)
		}
		d.problems = append(d.problems, e)
	}
	slices.SortStableFunc(d.problems, func(a, b error) int { return a.(*Problem).Line - b.(*Problem).Line })
}
