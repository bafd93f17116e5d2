package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// object is a JSON object. Its keys are written in order, so that the document is the same each time.
type object = map[string]any

// document is what is being put together.
type document struct {
	root, paths, schemas object
	tags                 []any
}

const description = `turnd takes user turns once, however often they are sent, and streams the replies.

Each error is a google.rpc.Status whose details hold a google.rpc.ErrorInfo of the domain "turnd": its reason says what is wrong,
and its metadata "retry" what to do. Fields that are not known are refused.`

func newDocument() *document {
	d := &document{paths: object{}, schemas: object{}}
	d.root = object{
		"openapi": "3.1.0",
		"info": object{"title": "turnd", "version": "v1", "description": description,
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers": []any{object{"url": "/", "description": "Where this document is served."}},
		"paths":   d.paths,
		"components": object{"schemas": d.schemas, "securitySchemes": object{"bearer": object{
			"type": "http", "scheme": "bearer", "description": "A key, or a token of the issuer. With --auth none nothing is asked for."}}},
		"security": []any{object{"bearer": []any{}}, object{}},
	}
	return d
}

// add takes the document of one service.
func (d *document) add(part object) error {
	part = renamed(part).(object)
	paths, _ := part["paths"].(object)
	for path, methods := range paths {
		if _, twice := d.paths[path]; twice {
			return fmt.Errorf("path %s is in two documents", path)
		}
		d.paths[path] = methods
	}
	components, _ := part["components"].(object)
	schemas, _ := components["schemas"].(object)
	maps.Copy(d.schemas, schemas) // those in several documents are of the same message
	tags, _ := part["tags"].([]any)
	d.tags = append(d.tags, tags...)
	return nil
}

// finish mends what the generator can't know.
func (d *document) finish() error {
	for path := range maps.Clone(d.paths) {
		d.flatten(path)
	}
	for path, methods := range d.paths {
		for _, operation := range methods.(object) {
			operation := operation.(object)
			dropMaps(operation)
			operation["operationId"] = operationName(operation["operationId"].(string), path)
		}
	}
	for _, schema := range d.schemas {
		untangle(schema.(object))
	}
	d.root["tags"] = d.tags
	return d.addStreams()
}

// flatten names a path's parameters without what they are in: "{input.conversation_id}" is "{conversation_id}". The name of a
// parameter in a path goes nowhere. A path that only then is another's joins it.
func (d *document) flatten(path string) {
	methods := d.paths[path].(object)
	flat := path
	for _, operation := range methods {
		parameters, _ := operation.(object)["parameters"].([]any)
		for _, p := range parameters {
			p := p.(object)
			name, _ := p["name"].(string)
			last := name[strings.LastIndex(name, ".")+1:]
			if p["in"] == "path" && last != name {
				flat = strings.Replace(flat, "{"+name+"}", "{"+last+"}", 1)
				p["name"] = last
			}
		}
	}
	if flat == path {
		return
	}
	delete(d.paths, path)
	if there, ok := d.paths[flat].(object); ok {
		maps.Copy(there, methods)
		return
	}
	d.paths[flat] = methods
}

// dropMaps leaves out parameters that are maps: a path of REST takes those in a body alone.
func dropMaps(operation object) {
	if parameters, ok := operation["parameters"].([]any); ok {
		operation["parameters"] = slices.DeleteFunc(parameters, func(p any) bool {
			name, _ := p.(object)["name"].(string)
			return strings.Contains(name, "[")
		})
	}
}

// operationName is the service and the method. That of a second path says what is other about it. Without the service it would
// be the name of a message too, "GetTurnResponse", once a generator has a type for what the method answers.
func operationName(id, path string) string {
	name, second := strings.CutSuffix(id, "_1")
	switch {
	case !second:
		return name
	case strings.HasSuffix(path, ":search"):
		return name + "BySearch"
	case strings.Contains(path, "{turn_id}"):
		return name + "ByTurn"
	case strings.Contains(path, "{reply_id}"):
		return name + "ByReply"
	}
	return name + "Anywhere"
}

// untangle takes a oneof for what it is in JSON: fields of which one is set. The generator writes it as a choice between
// nameless types, which no generator of clients makes anything useful of.
func untangle(schema object) {
	choice, ok := schema["oneOf"].([]any)
	if !ok {
		return
	}
	var names []string
	for _, c := range choice {
		required, _ := c.(object)["required"].([]any)
		for _, name := range required {
			names = append(names, name.(string))
		}
	}
	slices.Sort(names)
	delete(schema, "oneOf")
	text, _ := schema["description"].(string)
	schema["description"] = strings.TrimSpace(text + "\n\nAt most one of these is set: " + strings.Join(names, ", ") + ".")
}

// renamed is a value with the short names of schemas: there is one package.
func renamed(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for name, inner := range v {
			out[short(name)] = renamed(inner)
		}
		return out
	case []any:
		for i := range v {
			v[i] = renamed(v[i])
		}
		return v
	case string:
		if strings.HasPrefix(v, "#/components/schemas/") {
			return "#/components/schemas/" + short(strings.TrimPrefix(v, "#/components/schemas/"))
		}
		return v
	}
	return v
}

func short(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "turns.v1."), "google.rpc.")
}
